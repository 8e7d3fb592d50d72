//! `cargo xtask …`: set-up, run, build, test and bench, the same for people and for CI.

mod bench;
mod build;
mod ci;
mod circles;
mod code;
mod fuzz;
mod links;
mod mirror;
mod parts;
mod postgres;
mod process;
mod release;
mod setup;
mod styles;
mod test;
mod tidy;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Set-up, run, build, test and bench of Countersign")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Sets up what building needs (the wasm target and the bundler); each step is skipped where it is done.
    Setup,
    /// Sets up, builds, and starts `countersign serve --demo` on SQLite in ./data.
    Run {
        /// Builds with optimisation: slower to build, faster to run.
        #[arg(long)]
        release: bool,
        /// More arguments for `countersign serve`.
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Builds one self-contained binary: target/release/countersign.
    Build,
    /// Builds the console only, into frontend/dist.
    Console {
        /// The small bundle of a release, which the tests run on, instead of the quick one of development.
        #[arg(long)]
        release: bool,
    },
    /// Runs every test, on both databases and in a real Chromium.
    Test {
        /// As many rounds, kills, entries and seconds as before a release, rather than as many as show a mistake soon.
        #[arg(long)]
        full: bool,
        /// Arguments for `cargo nextest run`, such as a filter.
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// All that must hold before a change lands: `check`, advisories, every test.
    Ci,
    /// Format, tidy, licences and bans, clippy: what needs no test to be run.
    Check,
    /// Checks the dependencies against the RustSec advisory database.
    Audit,
    /// Gives the workspace its next version, and the changelog its heading.
    Release {
        /// The version, such as 0.2.0.
        version: String,
    },
    /// Prints what the changelog says about a tag, which must be the workspace's version.
    Notes {
        /// The tag, such as v0.2.0.
        tag: String,
    },
    /// Measures speed and memory against their targets, on this machine's loopback only.
    Bench {
        /// Arguments for the bench, such as `--json` or `--only cycles`.
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Fuzzes what reads foreign input: one target, or each in turn.
    Fuzz {
        /// The target, a folder of `fuzz/corpus`; all of them where none is named.
        target: Option<String>,
        /// How long each target is fuzzed, in seconds.
        #[arg(default_value_t = 600)]
        seconds: u32,
    },
    /// Checks the direction of imports, the length of files, that every module says what it owns, and links.
    Tidy,
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().task {
        Task::Setup => setup::toolchain(),
        Task::Run { release, args } => build::run(release, &args),
        Task::Build => build::release(),
        Task::Console { release } => {
            build::console(if release { build::RELEASE } else { build::DEVELOPMENT }, build::Names::Plain)
        }
        Task::Test { full, args } => test::run(full, &args),
        Task::Ci => ci::run(),
        Task::Check => ci::check(),
        Task::Audit => ci::audit(),
        Task::Release { version } => release::prepare(&version),
        Task::Notes { tag } => release::notes(&tag),
        Task::Bench { args } => bench::run(&args),
        Task::Fuzz { target, seconds } => fuzz::run(target.as_deref(), seconds),
        Task::Tidy => tidy::run(),
    }
}
