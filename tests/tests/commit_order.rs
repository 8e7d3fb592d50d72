//! The log on PostgreSQL is read in the order of commits, with no entry missing, even if the database crashes, other
//! databases of its cluster have open transactions, or a server is frozen in the middle of a commit.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use shared::id::RunId;
use shared::log::{Cursor, Entry, EntryKind};
use shared::protocol::{ServerMessage, Topic};
use sqlx::{AssertSqlSafe, Executor, PgConnection};
use tests::postgres::Postgres;
use tests::reviewing::launch_of;
use tests::wait::eventually_within;
use tests::{Api, Database, Options, Recorder, Server, Socket, eventually, flows};

/// Uses up transaction ids without a trace on the disk, so that PostgreSQL uses them again after a crash.
async fn burn(connection: &mut PgConnection, count: u32) {
    let burn = format!("DO $$ BEGIN FOR i IN 1..{count} LOOP PERFORM pg_current_xact_id(); ROLLBACK; END LOOP; END $$");
    connection.execute(AssertSqlSafe(burn)).await.expect("burns");
}

/// Launches a run, and retries with the same key until the server has answered.
async fn launch(api: &Api, key: &str) -> RunId {
    let launch = launch_of("question", Value::Null);
    eventually_within(Duration::from_mins(1), "launched", async || api.launch(&launch, Some(key)).await.ok())
        .await
        .summary
        .id
}

async fn server_on(postgres: &Arc<Postgres>, hook: &Recorder) -> Server {
    Server::start_on(Some(Arc::clone(postgres)), Options::on(Database::Postgres).webhook(&hook.url)).await
}

/// Starts a server that notifies a webhook of reviews. Returns it with the admin's client and a subscribed socket.
async fn told_server(postgres: &Arc<Postgres>, hook: &Recorder) -> (Server, Api, Socket) {
    let server = server_on(postgres, hook).await;
    server.save(&flows::question("question", "{ roles: [reviewer] }")).await;
    let listener = server.person("dora", &["developer", "reviewer"]).await;
    let socket = Socket::follow(&server.base, &listener, &[Topic::Reviews, Topic::Runs]).await;
    let admin = server.admin().await;
    (server, admin, socket)
}

/// Whether an entry says that this run waits.
fn is_waiting(entry: &Entry, run: RunId) -> bool {
    entry.event.kind == EntryKind::WorkflowWaiting && entry.event.run_id == Some(run)
}

/// Reads entries from a socket until each of these runs waits, and returns them.
async fn heard(socket: &mut Socket, runs: &[RunId]) -> Vec<Entry> {
    let (mut entries, mut missing) = (Vec::new(), runs.iter().copied().collect::<BTreeSet<_>>());
    while !missing.is_empty() {
        match socket.next().await {
            ServerMessage::Entry(entry) => {
                missing.retain(|run| !is_waiting(&entry, *run));
                entries.push(entry);
            }
            other => panic!("not an entry: {other:?}"),
        }
    }
    entries
}

/// The runs whose reviews a webhook was told of.
fn told(hook: &Recorder) -> BTreeSet<String> {
    let calls = hook.calls();
    let runs = calls.iter().filter_map(|call| call.arguments["data"]["review"]["run_id"].as_str().map(str::to_owned));
    runs.collect()
}

async fn all_are_told(hook: &Recorder, runs: &[RunId]) {
    let wanted: BTreeSet<String> = runs.iter().map(ToString::to_string).collect();
    eventually("every review is told", async || wanted.is_subset(&told(hook)).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_misses_what_is_committed_after_a_crash_of_postgres() {
    let postgres = Arc::new(Postgres::alone().await);
    let hook = Recorder::start(Duration::ZERO).await;
    let (_server, admin, mut socket) = told_server(&postgres, &hook).await;
    let (mut runs, mut entries) = (Vec::new(), Vec::new());
    for round in 0..3 {
        let before = launch(&admin, &format!("before-{round}")).await;
        entries.extend(heard(&mut socket, &[before]).await);
        burn(&mut postgres.connect().await, 40).await;
        // Long enough for all followers of the log to poll it again.
        tokio::time::sleep(Duration::from_millis(1200)).await;
        let keys: Vec<String> = (0..3).map(|n| format!("after-{round}-{n}")).collect();
        let load = futures::future::join_all(keys.iter().map(|key| launch(&admin, key)));
        let ((), after) = tokio::join!(postgres.crash(), load);
        entries.extend(heard(&mut socket, &after).await);
        runs.push(before);
        runs.extend(after);
    }
    let heard: Vec<&Cursor> = entries.iter().map(|entry| &entry.cursor).collect();
    let each: BTreeSet<&str> = heard.iter().map(|cursor| cursor.0.as_str()).collect();
    assert_eq!(each.len(), heard.len(), "an entry came twice");
    let of_runs = |kind| entries.iter().filter(|entry| entry.event.kind == kind).count();
    assert_eq!((of_runs(EntryKind::RunStarted), of_runs(EntryKind::ReviewRequested)), (runs.len(), runs.len()));
    all_are_told(&hook, &runs).await;
    let check = admin.verify_audit().await.expect("checks");
    assert!(check.valid, "{check:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_in_other_databases_of_the_cluster_hold_nothing_back() {
    let postgres = Arc::new(Postgres::alone().await);
    let mut open = postgres.connect_elsewhere().await;
    open.execute("BEGIN; SELECT pg_current_xact_id()").await.expect("begins");
    let mut other = postgres.connect_elsewhere().await;
    let forgotten = "BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION 'forgotten'";
    other.execute(forgotten).await.expect("prepares");
    let hook = Recorder::start(Duration::ZERO).await;
    let (_server, admin, mut socket) = told_server(&postgres, &hook).await;
    let run = launch(&admin, "one").await;
    heard(&mut socket, &[run]).await;
    all_are_told(&hook, &[run]).await;
    eventually("everything is sealed", async || {
        let check = admin.verify_audit().await.ok()?;
        (check.valid && check.sealed == check.entries).then_some(())
    })
    .await;
    let held: i64 =
        sqlx::query_scalar("SELECT count(*) FROM pg_prepared_xacts").fetch_one(&mut open).await.expect("reads");
    assert_eq!(held, 1);
}

/// SQL that makes each insert into the log take two seconds for as long as the table `slow` has a row.
const SLOW: &str = "CREATE TABLE slow AS SELECT 1 AS one; \
    CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS \
    'BEGIN IF EXISTS (SELECT 1 FROM slow) THEN PERFORM pg_sleep(2); END IF; RETURN NULL; END'; \
    CREATE TRIGGER slow AFTER INSERT ON log FOR EACH STATEMENT EXECUTE FUNCTION slow()";

fn signal(server: &Server, name: &str) {
    let sent = Command::new("kill").arg(format!("-{name}")).arg(server.id().to_string()).status();
    assert!(sent.expect("kill starts").success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_frozen_in_the_middle_of_a_commit_hides_nothing_of_the_others() {
    let postgres = Arc::new(Postgres::alone().await);
    let hook = Recorder::start(Duration::ZERO).await;
    let (_server, admin, mut socket) = told_server(&postgres, &hook).await;
    let frozen = server_on(&postgres, &hook).await;
    let other_admin = frozen.admin().await;
    let mut database = postgres.connect().await;
    database.execute(SLOW).await.expect("is slow from now on");

    // The frozen server holds the log's lock for about a second more; other idle transactions may last fifteen.
    let patience = Duration::from_secs(10);
    let meanwhile = async {
        let sleeping = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        eventually("the other server writes to the log", async || {
            let count: i64 = sqlx::query_scalar(sleeping).fetch_one(&mut database).await.ok()?;
            (count > 0).then_some(())
        })
        .await;
        signal(&frozen, "STOP");
        database.execute("DELETE FROM slow").await.expect("is quick again");
        let run = tokio::time::timeout(patience, launch(&admin, "meanwhile")).await.expect("the other writes");
        let before = tokio::time::timeout(patience, heard(&mut socket, &[run])).await.expect("and is heard");
        signal(&frozen, "CONT");
        (run, before)
    };
    // The caller of the frozen server retries with the same key, and the launch counts once.
    let (caught, (run, before)) = tokio::join!(launch(&other_admin, "caught"), meanwhile);
    // If the server was frozen late, its commit came first.
    if !before.iter().any(|entry| is_waiting(entry, caught)) {
        heard(&mut socket, &[caught]).await;
    }
    all_are_told(&hook, &[run, caught]).await;
    let runs = admin.runs(&shared::api::RunQuery::default()).await.expect("reads").items;
    assert_eq!(runs.len(), 2);
    let check = admin.verify_audit().await.expect("checks");
    assert!(check.valid, "{check:?}");
}
