//! Turns of an agent with two gated calls, over HTTP with 64 concurrent clients: the demo model makes both calls, one
//! decision approves them, both are carried out, and the model answers. The figure is the server's own time: that of
//! its processors, without the model and without waits.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::Connection;
use crate::cycles::{Launched, connect, forget, repeat};
use crate::report::Row;
use crate::server::{Data, Server};
use crate::{Options, below, median};

const FLOW: &str = r#"{
    "id": "turn",
    "agents": {"clerk": {
        "model": "demo/clerk",
        "instructions": "You send what you are told to send.",
        "tools": ["send"],
        "demo": {
            "tool_calls": [[
                {"tool": "send", "arguments": {"title": "One", "text": "The first text."}},
                {"tool": "send", "arguments": {"title": "Two", "text": "The second text."}}
            ]],
            "replies": ["Both are sent."]
        }
    }},
    "tools": {"send": {
        "description": "Sends a text",
        "builtin": "demo_publish",
        "parameters": {
            "type": "object",
            "required": ["title", "text"],
            "properties": {"title": {"type": "string"}, "text": {"type": "string"}}
        }
    }},
    "gates": {"before_tool": {"send": {"severity": "high"}}},
    "nodes": {"work": {"agent": "clerk", "prompt": "Send both.", "write_keys": ["sent"]}}
}"#;
/// The time between two looks at a run that works, during which it may do most of a turn: a look is not part of one, but
/// costs the server time.
const LOOK: Duration = Duration::from_millis(200);
/// How long a run may work.
const RUN_TIMEOUT: Duration = Duration::from_secs(30);
/// The most processor time of a turn, in milliseconds.
const TARGET: f64 = 10.0;

/// The members of a run that a turn needs.
#[derive(Deserialize)]
struct Shown {
    status: String,
}

#[derive(Deserialize)]
struct Reviews {
    items: Vec<Gated>,
}

/// A review of gated calls.
#[derive(Deserialize)]
struct Gated {
    id: String,
    revision: u64,
    digest: String,
    actions: Vec<Action>,
}

#[derive(Deserialize)]
struct Action {
    id: String,
}

/// Measures the processor time of a turn on SQLite, or on PostgreSQL if `postgres` is the address of an administrator:
/// the median of the rounds.
pub async fn of_two_gated_calls(options: &Options, name: &str, postgres: Option<&str>) -> Result<[Row; 1]> {
    let mut data = Data::new(postgres).await?;
    let server = Server::start(&options.binary, &mut data).await?;
    server.connect().await?.send("PUT", "/api/v1/flows/turn", "application/json", FLOW).await?;
    let length = Duration::from_secs(options.seconds);
    // The first round warms caches and is not counted.
    round_of_turns(&server, length).await?;
    let mut rounds = Vec::new();
    for _ in 0..options.rounds {
        rounds.push(round_of_turns(&server, length).await?);
    }
    drop(server);
    if let Some(admin) = postgres {
        forget(admin, [data.database(), None]).await?;
    }
    Ok([below(&format!("agent_turn_{name}"), median(rounds), "ms", TARGET)])
}

/// Takes turns for `length`. Returns the processor time of one, in milliseconds.
async fn round_of_turns(server: &Server, length: Duration) -> Result<f64> {
    let connections = connect(std::slice::from_ref(server)).await?;
    let before = server.processor_time()?;
    let (turns, _) = repeat(connections, length, |connection| Box::pin(turn(connection))).await?;
    let took = server.processor_time()?.saturating_sub(before);
    Ok(took.as_secs_f64() * 1e3 / f64::from(u32::try_from(turns.len())?))
}

/// Takes one run from launch to completed.
async fn turn(connection: &mut Connection) -> Result<()> {
    let run: Launched = connection.post_for("/api/v1/runs", &json!({"flow": "turn"})).await?;
    let path = format!("/api/v1/runs/{}", run.id);
    becomes(connection, &path, "waiting_for_human").await?;
    let reviews: Reviews = connection.get_for(&format!("{path}/reviews")).await?;
    let review = reviews.items.first().context("no review")?;
    ensure!(review.actions.len() == 2, "{} calls are gated", review.actions.len());
    let decisions: BTreeMap<_, _> =
        review.actions.iter().map(|action| (&action.id, json!({"type": "approve"}))).collect();
    let body = json!({
        "revision": review.revision,
        "digest": review.digest,
        "verdict": {"type": "actions", "decisions": decisions},
    });
    connection.post(&format!("/api/v1/reviews/{}/decisions", review.id), &body).await.map(|_: Value| ())?;
    becomes(connection, &path, "completed").await
}

/// Waits until a run has a status.
async fn becomes(connection: &mut Connection, path: &str, status: &str) -> Result<()> {
    let begun = Instant::now();
    loop {
        let run: Shown = connection.get_for(path).await?;
        if run.status == status {
            return Ok(());
        }
        ensure!(begun.elapsed() < RUN_TIMEOUT, "the run is {} and not {status}", run.status);
        tokio::time::sleep(LOOK).await;
    }
}
