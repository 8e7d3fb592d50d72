//! launch -> waiting -> decide -> completed over HTTP, with 64 clients at once.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::client::Connection;
use crate::report::Row;
use crate::server::{Data, Server};
use crate::{Options, at_least, median};

/// How many clients.
pub const CLIENTS: usize = 64;

/// Cycles a second: the median over the rounds.
pub async fn over_http(name: &str, options: &Options, postgres: Option<&str>, target: f64) -> Result<Row> {
    let mut data = Data::new(postgres).await?;
    let server = Server::start(&options.binary, &mut data).await?;
    let mut rounds = Vec::new();
    // The first round warms caches and is not counted.
    for round in 0..=options.rounds {
        let rate = round_of_cycles(&server, Duration::from_secs(options.seconds)).await?;
        if round > 0 {
            rounds.push(rate);
        }
    }
    Ok(at_least(name, median(rounds), "cycles/s", target))
}

async fn round_of_cycles(server: &Server, length: Duration) -> Result<f64> {
    let mut connections = Vec::new();
    for _ in 0..CLIENTS {
        connections.push(server.connect().await?);
    }
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
    let started = Instant::now();
    let clients = connections.into_iter().map(|mut connection| {
        tokio::spawn(async move {
            let mut cycles = 0_u32;
            while started.elapsed() < length {
                cycle(&mut connection).await?;
                cycles += 1;
            }
            anyhow::Ok(cycles)
        })
    });
    let mut cycles = 0;
    for client in futures::future::join_all(clients).await {
        cycles += client??;
    }
    Ok(f64::from(cycles) / started.elapsed().as_secs_f64())
}

/// One run from launch to completed.
async fn cycle(connection: &mut Connection) -> Result<()> {
    let run = launch(connection).await?;
    let id = run["id"].as_str().context("no run id")?;
    let reviews = connection.get(&format!("/api/v1/runs/{id}/reviews")).await?;
    let decided = decide(connection, &reviews["items"][0]).await?;
    ensure!(decided["outcome"] == "resolved", "not resolved: {decided}");
    Ok(())
}

/// Starts a run, which waits for a person at once.
pub async fn launch(connection: &mut Connection) -> Result<Value> {
    let run = connection.post("/api/v1/runs", &json!({"flow": "ask"})).await?;
    ensure!(run["status"] == "waiting_for_human", "does not wait: {run}");
    Ok(run)
}

/// Says yes.
pub async fn decide(connection: &mut Connection, review: &Value) -> Result<Value> {
    let id = review["id"].as_str().context("no review id")?;
    let body = json!({
        "revision": review["revision"],
        "digest": review["digest"],
        "verdict": {"type": "choose", "option": "yes"},
    });
    connection.post(&format!("/api/v1/reviews/{id}/decisions"), &body).await
}
