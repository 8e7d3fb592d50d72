//! The speed and memory targets. A figure and the rival's are measured in the same run, in turn, and shown as medians.
//! `cargo xtask bench` builds everything with optimisation and starts it; everything stays on this machine's loopback,
//! is bounded in count and time, and stops by itself.

mod agent_turn;
mod bare;
mod bundle;
mod client;
mod cycles;
mod disk;
mod fan_out;
mod first_rows;
mod hostile_text;
mod inbox;
mod pages;
mod peers;
mod pgbench;
mod queue;
mod report;
mod server;
mod servers;
mod sockets;
mod store;
mod years;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Parser;
use report::{Report, Row};
use serde_json::json;
use tests::Browser;

/// What to measure, and how long.
#[derive(Parser)]
pub struct Options {
    /// A line of JSON for each row, instead of the table.
    #[arg(long)]
    json: bool,
    /// Only the groups of rows, such as `queue_sqlite`, whose name contains this; `years` and `peers` are measured only where they are
    /// named: the first makes a large log, the second installs other systems.
    #[arg(long, default_value = "")]
    only: String,
    /// Rounds of each measurement.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of one round.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Seconds for which the console is watched while others make 50 entries a second; 3600 for the whole hour.
    #[arg(long, default_value_t = 90)]
    storm: u64,
    /// Entries of the larger log of `years`; the smaller one has a hundredth of them.
    #[arg(long, default_value_t = 10_000_000)]
    entries: usize,
    /// The server's binary.
    #[arg(long, env = "COUNTERSIGN_BIN")]
    binary: PathBuf,
    /// The folder of the console's bundle.
    #[arg(long, default_value = "frontend/dist")]
    bundle: PathBuf,
    /// A PostgreSQL administrator's address without a database, for the rows that need one.
    #[arg(long, env = "COUNTERSIGN_TEST_POSTGRES")]
    postgres: Option<String>,
}

/// The server's allocator, so that rivals in this process are not slowed down by another one.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((what, _)) if what == fan_out::RIVAL => return fan_out::broadcast_lines().await,
        Some((what, arguments)) if what == peers::LOAD => return peers::load(arguments).await,
        Some((what, arguments)) if what == peers::EMBEDDED => return peers::embedded(arguments).await,
        _ => {}
    }
    let options = Options::parse();
    if options.only == peers::ONLY {
        return peers::compare(&options);
    }
    let mut report = Report::new(options.json);
    let wanted = |name: &str| name.contains(&options.only);
    // `|admin|` stands for the address of an administrator of PostgreSQL. Without one, its rows are left out.
    macro_rules! measure {
        ($name:literal, |$admin:ident| $rows:expr) => {
            if let Some($admin) = options.postgres.as_deref().filter(|_| wanted($name)) {
                report.add($rows.await?);
            }
        };
        ($name:literal, $rows:expr) => {
            if wanted($name) {
                report.add($rows.await?);
            }
        };
    }
    if wanted("bundle") {
        report.add([bundle::size(&options.bundle)?]);
    }
    measure!("bundle_first_rows", first_rows::painted(&options));
    measure!("bundle_hostile", hostile_text::laid_out(&options));
    measure!("cycles_sqlite", cycles::on_sqlite(&options));
    measure!("agent_turn_sqlite", agent_turn::of_two_gated_calls(&options, "sqlite", None));
    measure!("store_sqlite", store::against_bare_loop(&options));
    measure!("pages_of", pages::of_one_commit());
    measure!("cycles_postgres", |admin| cycles::on_postgres(&options, admin));
    measure!("agent_turn_postgres", |admin| agent_turn::of_two_gated_calls(&options, "postgres", Some(admin)));
    measure!("servers", |admin| servers::on_one_database(&options, admin));
    measure!("queue_sqlite", queue::pages(&options, "sqlite", None));
    measure!("queue_postgres", |admin| queue::pages(&options, "postgres", Some(admin)));
    // Creating the logs takes minutes, so `years` is measured only if `--only` names it.
    if !options.only.is_empty() {
        measure!("years_sqlite", years::reads(&options, "sqlite", None));
        measure!("years_postgres", |admin| years::reads(&options, "postgres", Some(admin)));
    }
    measure!("inbox_sqlite", inbox::in_a_browser(&options, "sqlite", None));
    measure!("inbox_postgres", |admin| inbox::in_a_browser(&options, "postgres", Some(admin)));
    measure!("decision_seen", sockets::decision_seen(&options));
    measure!("fan_out", fan_out::beside_bare_broadcast(&options));
    measure!("idle_socket", sockets::idle_memory(&options));
    measure!("finished_run_disk", disk::finished_runs(&options));
    if wanted("waiting_run") || wanted("start") {
        report.add(disk::waiting_runs(&options).await?);
    }
    report.finish()
}

/// The median of some figures; the upper one of the two in the middle, and NaN if there are none.
pub fn median(figures: Vec<f64>) -> f64 {
    percentile(figures, 50)
}

/// The figure that this percentage of the figures is below, and NaN if there are none.
pub fn percentile(mut figures: Vec<f64>, percentage: usize) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() * percentage / 100).copied().unwrap_or(f64::NAN)
}

/// Waits until an expression is true in the page.
pub async fn wait(browser: &Browser, condition: &str) -> anyhow::Result<()> {
    const LIMIT: Duration = Duration::from_mins(1);
    let end = Instant::now() + LIMIT;
    let script = format!("return !!({condition})");
    while *browser.driver.execute(script.as_str(), Vec::new()).await?.json() != json!(true) {
        ensure!(Instant::now() < end, "after {LIMIT:?} still not: {condition}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// A row whose target is met if the value is at least the target.
pub fn at_least(name: &str, value: f64, unit: &'static str, target: f64) -> Row {
    Row { name: name.to_owned(), value, unit, limit: None, ratio: None, target, met: value >= target }
}

/// A row whose target is met if the value is below the target.
pub fn below(name: &str, value: f64, unit: &'static str, target: f64) -> Row {
    Row { name: name.to_owned(), value, unit, limit: None, ratio: None, target, met: value < target }
}

/// A row whose target is met if the value is at least `target` times `limit`, which a bare rival reached in the same
/// run.
pub fn share_of(name: &str, value: f64, unit: &'static str, limit: f64, target: f64) -> Row {
    Row { met: value / limit >= target, ..at_least(name, value, unit, target) }.beside(limit)
}
