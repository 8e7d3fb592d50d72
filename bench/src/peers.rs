//! The parts of `bench/peers` that this program plays: the callers of peers that speak HTTP (`bench load`), and
//! Countersign as a library (`bench embedded`). Both print lines of JSON.

use std::io::{BufRead, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use backend::clock::{Clock as _, SystemClock};
use countersign::{Choice, Context, Countersign, parse};
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use shared::definition::Flow;
use uuid::Uuid;

use crate::client::Connection;
use crate::cycles::{cycle, repeat};
use crate::{Options, median, server};

/// The first argument with which this program acts as the callers: `load PEER ADDRESS HEADER CALLERS SECONDS`.
pub const LOAD: &str = "load";
/// The first argument with which this program acts as a peer that embeds Countersign: `embedded DATABASE`.
pub const EMBEDDED: &str = "embedded";

/// The value of `--only` that compares Countersign with its peers. Nothing else does, since that installs them.
pub const ONLY: &str = "peers";

/// The person who decides in the embedded peer.
const PERSON: &str = "ana";

/// Runs `bench/peers/run`, which compares Countersign with its peers.
pub fn compare(options: &Options) -> Result<()> {
    let mut run = Command::new(Path::new("bench").join("peers").join("run"));
    run.args(["--server".as_ref(), options.binary.as_os_str()])
        .args(["--load".as_ref(), std::env::current_exe()?.as_os_str()])
        .args(["--rounds", &options.rounds.to_string(), "--seconds", &options.seconds.to_string()]);
    if let Some(postgres) = &options.postgres {
        run.args(["--postgres", postgres]);
    }
    let status = run.status().context("bench/peers/run could not be started")?;
    ensure!(status.success(), "bench/peers/run failed ({status})");
    Ok(())
}

/// Runs cycles against one peer over HTTP, and prints the cycles per second and the median duration of a cycle.
pub async fn load(arguments: &[String]) -> Result<()> {
    let [peer, address, header, callers, seconds] = arguments else {
        bail!("load PEER ADDRESS HEADER CALLERS SECONDS")
    };
    let work: fn(&mut Connection) -> BoxFuture<'_, Result<()>> = match peer.as_str() {
        "countersign" => |connection| Box::pin(cycle(connection)),
        "restate" => |connection| Box::pin(restate_cycle(connection)),
        _ => bail!("there is no way to call {peer}"),
    };
    let length = Duration::from_secs_f64(seconds.parse()?);
    let mut connections = Vec::new();
    for _ in 0..callers.parse::<usize>()? {
        connections.push(Connection::open(address, header).await?);
    }
    print(&figures(repeat(connections, length, work).await?))
}

/// Starts a workflow of Restate that waits for a promise, resolves the promise, and waits for the workflow's result.
async fn restate_cycle(connection: &mut Connection) -> Result<()> {
    let run = Uuid::from_bytes(SystemClock.random()).simple();
    connection.post(&format!("/Gate/{run}/run/send"), &json!(false)).await?;
    connection.post(&format!("/Gate/{run}/decide"), &json!("yes")).await?;
    let verdict = connection.get(&format!("/restate/workflow/Gate/{run}/attach")).await?;
    ensure!(verdict == "yes", "ended with {verdict}");
    Ok(())
}

/// A command of the harness to the embedded peer: one line of JSON.
#[derive(Deserialize)]
struct Load {
    callers: usize,
    seconds: f64,
}

/// Runs Countersign in this process on `DATABASE`, and carries out commands from standard input until that ends.
pub async fn embedded(arguments: &[String]) -> Result<()> {
    let [database] = arguments else { bail!("embedded DATABASE") };
    let countersign = Arc::new(Countersign::options().database(database).decider(PERSON, []).start().await?);
    print(&json!({"answer": "ready"}))?;
    for line in std::io::stdin().lock().lines() {
        let Load { callers, seconds } = serde_json::from_str(&line?)?;
        let answer = embedded_load(&countersign, callers, Duration::from_secs_f64(seconds)).await?;
        print(&json!({"answer": answer}))?;
    }
    if let Some(countersign) = Arc::into_inner(countersign) {
        countersign.shutdown().await;
    }
    Ok(())
}

async fn embedded_load(countersign: &Arc<Countersign>, callers: usize, length: Duration) -> Result<Value> {
    let caller = (Arc::clone(countersign), Arc::new(parse(server::FLOW)?));
    Ok(figures(repeat(vec![caller; callers], length, |caller| Box::pin(embedded_cycle(caller))).await?))
}

async fn embedded_cycle((countersign, flow): &(Arc<Countersign>, Arc<Flow>)) -> Result<()> {
    let mut running = countersign.launch(flow, json!({}), Context::default()).await?;
    let waiting = running.paused().await?.context("it does not wait")?;
    countersign.decide(&waiting[0], Choice::option("yes"), PERSON).await?;
    running.finished().await?;
    Ok(())
}

fn figures((milliseconds, cycles_per_second): (Vec<f64>, f64)) -> Value {
    json!({"cycles_per_second": cycles_per_second, "median_ms": median(milliseconds)})
}

fn print(line: &Value) -> Result<()> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
