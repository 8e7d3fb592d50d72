//! Gate cycles (launch, waiting, decide, completed) over HTTP, with 64 concurrent clients. On SQLite also with a view
//! of the review, which every browser sends.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use crate::client::{CLIENTS, Connection};
use crate::pgbench::Pgbench;
use crate::report::Row;
use crate::server::{Data, Server};
use crate::{Options, at_least, median, share_of};

/// The target for cycles in which the person opens the review, as a share of those in which nobody does. The first view
/// is one more commit and one more request. If a commit of each kind cost the same, a cycle of three would reach two
/// thirds of one of two. The target is one half, at which a view costs as much as the launch, the list and the decision
/// together, though it changes neither the run nor the review: below it, recording views is what limits the server.
const VIEWED: f64 = 0.5;

/// Measures cycles per second on SQLite, without and with a view of the review, in turn: the medians of the rounds.
pub async fn on_sqlite(options: &Options) -> Result<[Row; 2]> {
    let mut data = Data::new(None).await?;
    let servers = [Server::start(&options.binary, &mut data).await?];
    let length = Duration::from_secs(options.seconds);
    check_view(&mut servers[0].connect().await?).await?;
    // The first round warms caches and is not counted.
    round_of_cycles(&servers, length).await?;
    let (mut plain, mut viewed) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        plain.push(round_of_cycles(&servers, length).await?);
        viewed.push(round(&servers, length, |connection| Box::pin(viewed_cycle(connection))).await?);
    }
    let (plain, viewed) = (median(plain), median(viewed));
    Ok([
        at_least("cycles_sqlite", plain, "cycles/s", 2_000.0),
        share_of("cycles_sqlite_viewed", viewed, "cycles/s", plain, VIEWED),
    ])
}

/// Measures cycles per second on PostgreSQL, and their share of what pgbench reaches with the same statements, rows and
/// groups.
pub async fn on_postgres(options: &Options, admin: &str) -> Result<[Row; 2]> {
    let mut data = Data::new(Some(admin)).await?;
    let servers = [Server::start(&options.binary, &mut data).await?];
    let length = Duration::from_secs(options.seconds);
    round_of_cycles(&servers, length).await?;
    // The rival sends what the server has stored of a waiting run, and of the completed ones.
    launch(&mut servers[0].connect().await?).await?;
    let database = data.database().context("no database")?;
    let mut rival = Pgbench::beside(admin, database).await?;
    rival.round(length).await?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        ours.push(round_of_cycles(&servers, length).await?);
        theirs.push(rival.round(length).await?);
    }
    drop(servers);
    let checked = rival.check_writes(database).await;
    forget(admin, [Some(database), Some(rival.database())]).await?;
    checked?;
    let (ours, theirs) = (median(ours), median(theirs));
    Ok([
        at_least("cycles_postgres", ours, "cycles/s", 1_000.0),
        share_of("cycles_postgres_of_pgbench", ours, "cycles/s", theirs, 0.6),
    ])
}

/// Drops databases, and makes a checkpoint now, since its writes would otherwise disturb the next measurements.
pub async fn forget(admin: &str, databases: [Option<&str>; 2]) -> Result<()> {
    let mut connection = PgConnection::connect(&format!("{admin}/postgres")).await?;
    for name in databases.into_iter().flatten().filter_map(|url| url.rsplit('/').next()) {
        connection.execute(AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)"))).await?;
    }
    connection.execute("CHECKPOINT").await?;
    Ok(())
}

/// Runs cycles for `length` with clients that are spread evenly over the servers, and returns the cycles per second.
pub async fn round_of_cycles(servers: &[Server], length: Duration) -> Result<f64> {
    round(servers, length, |connection| Box::pin(cycle(connection))).await
}

/// Like [`round_of_cycles`], with this kind of cycle.
async fn round(
    servers: &[Server],
    length: Duration,
    cycle: fn(&mut Connection) -> BoxFuture<'_, Result<()>>,
) -> Result<f64> {
    let (_, cycles_per_second) = repeat(connect(servers).await?, length, cycle).await?;
    Ok(cycles_per_second)
}

/// Opens the connections of all clients, spread evenly over the servers.
pub async fn connect(servers: &[Server]) -> Result<Vec<Connection>> {
    let mut connections = Vec::new();
    for server in servers.iter().cycle().take(CLIENTS) {
        connections.push(server.connect().await?);
    }
    Ok(connections)
}

/// Lets all clients do `work` again and again for `length`. Returns how long it took each time, in milliseconds, and how
/// often they did it together per second.
#[expect(clippy::cast_precision_loss, reason = "counts are far below the precision of a double")]
pub async fn repeat<C: Send + 'static>(
    clients: Vec<C>,
    length: Duration,
    work: fn(&mut C) -> BoxFuture<'_, Result<()>>,
) -> Result<(Vec<f64>, f64)> {
    let started = Instant::now();
    let clients = clients.into_iter().map(|mut client| {
        tokio::spawn(async move {
            let mut took = Vec::new();
            while started.elapsed() < length {
                let began = Instant::now();
                work(&mut client).await?;
                took.push(began.elapsed().as_secs_f64() * 1000.0);
            }
            anyhow::Ok(took)
        })
    });
    let mut took = Vec::new();
    for client in futures::future::join_all(clients).await {
        took.extend(client??);
    }
    let per_second = took.len() as f64 / started.elapsed().as_secs_f64();
    Ok((took, per_second))
}

/// The members of a run that a cycle needs.
#[derive(Deserialize)]
pub struct Launched {
    pub id: String,
    status: String,
}

/// The members of a review that a cycle needs.
#[derive(Deserialize)]
pub struct Asked {
    pub id: String,
    revision: u64,
    digest: String,
}

#[derive(Deserialize)]
struct Reviews {
    items: Vec<Asked>,
}

#[derive(Deserialize)]
struct Entries {
    items: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    kind: String,
}

#[derive(Deserialize)]
struct Decided {
    outcome: String,
}

/// Takes one run from launch to completed.
pub async fn cycle(connection: &mut Connection) -> Result<()> {
    let asked = ask(connection).await?;
    decide(connection, &asked).await
}

/// Takes one run from launch to completed as people do who decide in a browser: they open the review before they decide
/// it, which the audit log records.
async fn viewed_cycle(connection: &mut Connection) -> Result<()> {
    let asked = ask(connection).await?;
    view(connection, &asked).await?;
    decide(connection, &asked).await
}

/// Opens a review as the console does.
async fn view(connection: &mut Connection, review: &Asked) -> Result<()> {
    let path = format!("/api/v1/reviews/{}?viewed={}", review.id, review.revision);
    let shown: Asked = connection.get_for(&path).await?;
    ensure!(shown.digest == review.digest, "another review was shown");
    Ok(())
}

/// Checks that a view of a review is in the log before its decision.
async fn check_view(connection: &mut Connection) -> Result<()> {
    let run = launch(connection).await?;
    let asked = review_of(connection, &run).await?;
    view(connection, &asked).await?;
    decide(connection, &asked).await?;
    let log: Entries = connection.get_for(&format!("/api/v1/log?run={}", run.id)).await?;
    let place = |kind: &str| log.items.iter().position(|entry| entry.kind == kind);
    let (viewed, resolved) = (place("review.viewed"), place("review.resolved"));
    ensure!(viewed.is_some() && viewed < resolved, "the view was not recorded before the decision");
    Ok(())
}

/// Launches a run of the flow `ask`, and returns its review.
pub async fn ask(connection: &mut Connection) -> Result<Asked> {
    let run = launch(connection).await?;
    review_of(connection, &run).await
}

async fn review_of(connection: &mut Connection, run: &Launched) -> Result<Asked> {
    let reviews: Reviews = connection.get_for(&format!("/api/v1/runs/{}/reviews", run.id)).await?;
    reviews.items.into_iter().next().context("no review")
}

/// Launches a run of the flow `ask`, and checks that it waits for a person at once.
pub async fn launch(connection: &mut Connection) -> Result<Launched> {
    let run: Launched = connection.post_for("/api/v1/runs", &json!({"flow": "ask"})).await?;
    ensure!(run.status == "waiting_for_human", "does not wait: {}", run.status);
    Ok(run)
}

/// Decides a review of the flow `ask` with its option `yes`, and checks that this resolves it.
pub async fn decide(connection: &mut Connection, review: &Asked) -> Result<()> {
    let body = json!({
        "revision": review.revision,
        "digest": review.digest,
        "verdict": {"type": "choose", "option": "yes"},
    });
    let decided: Decided = connection.post_for(&format!("/api/v1/reviews/{}/decisions", review.id), &body).await?;
    ensure!(decided.outcome == "resolved", "not resolved: {}", decided.outcome);
    Ok(())
}
