//! Backups as docs/operate.md describes them: the restored server has the whole log, continues from there, and sends no
//! notification again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use shared::api::LogQuery;
use shared::id::RunId;
use shared::log::Entry;
use shared::protocol::{ServerMessage, Topic};
use shared::run::RunStatus;
use sqlx::Executor as _;
use tempfile::TempDir;
use tests::postgres::Postgres;
use tests::reviewing::{chosen, launch_as};
use tests::{Api, Database, Options, Recorder, Server, Socket, eventually, flows};

async fn launch(api: &Api) -> RunId {
    launch_as(api, "question", Value::Null).await
}

async fn decide(api: &Api, run: RunId) {
    let review = api.run_reviews(run).await.expect("reads").items.remove(0);
    api.decide(review.id, &chosen(&review, "approve"), None).await.expect("decided");
}

async fn log(api: &Api) -> Vec<Entry> {
    let (mut after, mut entries) = (None, Vec::new());
    loop {
        let page = api.log(&LogQuery { run: None, after, limit: Some(200) }).await.expect("the log");
        entries.extend(page.items);
        after = page.next_cursor;
        if after.is_none() {
            return entries;
        }
    }
}

/// Counts the messages to a webhook by run.
fn told(hook: &Recorder) -> BTreeMap<String, usize> {
    let mut told = BTreeMap::new();
    for call in hook.calls() {
        let run = call.arguments["data"]["review"]["run_id"].as_str().unwrap_or_default();
        *told.entry(run.to_owned()).or_default() += 1;
    }
    told
}

async fn is_told(hook: &Recorder, run: RunId) {
    eventually("a review is told", async || told(hook).contains_key(&run.to_string()).then_some(())).await;
}

async fn all_is_sealed(api: &Api) {
    eventually("everything is sealed", async || {
        let check = api.verify_audit().await.ok()?;
        assert!(check.valid, "{check:?}");
        (check.sealed == check.entries).then_some(())
    })
    .await;
}

/// The files of the data folder that must be kept beside a backup.
const KEYS: [&str; 2] = ["seal.key", "seal.pub"];

/// The state of a server when its backup began.
struct Before {
    entries: Vec<Entry>,
    waiting: Vec<RunId>,
    told: BTreeMap<String, usize>,
}

/// Fills a server, takes a backup of it under load, and kills it. Returns its state before the backup, and a folder
/// with its keys.
async fn back_up(mut server: Server, hook: &Recorder, backup: impl AsyncFnOnce(&Server)) -> (Before, TempDir) {
    server.save(&flows::question("question", "{ roles: [reviewer] }")).await;
    let admin = server.admin().await;
    let ana = server.person("ana", &["reviewer"]).await;
    let mut waiting = Vec::new();
    for _ in 0..10 {
        let run = launch(&admin).await;
        decide(&ana, run).await;
        is_told(hook, run).await;
        let run = launch(&admin).await;
        is_told(hook, run).await;
        waiting.push(run);
    }
    all_is_sealed(&admin).await;
    let before = Before { entries: log(&admin).await, waiting, told: told(hook) };
    let stop = AtomicBool::new(false);
    let load = async {
        while !stop.load(Ordering::Relaxed) {
            let run = launch(&admin).await;
            decide(&ana, run).await;
        }
    };
    let backup = async {
        backup(&server).await;
        stop.store(true, Ordering::Relaxed);
    };
    tokio::join!(load, backup);
    let keys = tempfile::tempdir().expect("a temporary folder");
    for name in KEYS {
        std::fs::copy(server.file(name), keys.path().join(name)).expect("copied");
    }
    server.kill();
    (before, keys)
}

/// Checks that a restored server has everything from before the backup, and that runs, log, seals and notifications go
/// on.
async fn is_whole(server: &Server, before: &Before, hook: &Recorder) {
    let admin = server.admin().await;
    let restored = log(&admin).await;
    assert!(restored.len() >= before.entries.len(), "{} of {} entries", restored.len(), before.entries.len());
    assert!(restored[..before.entries.len()] == before.entries[..], "entries and their places are what they were");
    let check = admin.verify_audit().await.expect("checks");
    assert!(check.valid, "{check:?}");

    let ana = server.login("ana").await.expect("gets in");
    let mut socket = Socket::follow(&server.base, &admin, &[Topic::Reviews, Topic::Runs]).await;
    let new = launch(&admin).await;
    match socket.next().await {
        ServerMessage::Entry(entry) => assert_eq!(entry.event.run_id, Some(new), "the first that is heard is new"),
        other => panic!("not an entry: {other:?}"),
    }
    for run in &before.waiting {
        decide(&ana, *run).await;
        assert_eq!(admin.run(*run).await.expect("reads").summary.status, RunStatus::Completed);
    }
    all_is_sealed(&admin).await;
    // The feeder takes entries in order: a repeated message would have been sent before this one.
    is_told(hook, new).await;
    let after = told(hook);
    for (run, times) in &before.told {
        assert_eq!(after.get(run), Some(times), "{run} was told before");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dump_of_postgres_is_whole_in_a_new_cluster() {
    let hook = Recorder::start(Duration::ZERO).await;
    let options = || Options::on(Database::Postgres).webhook(&hook.url);
    let old = Arc::new(Postgres::alone().await);
    // The transaction ids of the old cluster are far ahead of those of a new one.
    let burn = "DO $$ BEGIN FOR i IN 1..3000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$";
    old.connect().await.execute(burn).await.expect("burns");
    let dump = tempfile::NamedTempFile::new().expect("a temporary file");
    let server = Server::start_on(Some(Arc::clone(&old)), options()).await;
    let (before, keys) = back_up(server, &hook, async |_| {
        let sql = tokio::task::spawn_blocking(move || old.dump()).await.expect("dumps");
        std::fs::write(dump.path(), sql).expect("written");
    })
    .await;

    let new = Arc::new(Postgres::alone().await);
    new.restore(dump.path());
    // As 30 days later, when no record of old deliveries is left that would prevent a second one.
    new.connect().await.execute("DELETE FROM deliveries WHERE status = 'sent'").await.expect("forgets");
    let files = KEYS.map(|name| keys.path().join(name)).to_vec();
    let server = Server::start_on(Some(new), Options { files, ..options() }).await;
    is_whole(&server, &before, &hook).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_sqlite_is_whole() {
    let hook = Recorder::start(Duration::ZERO).await;
    let options = || Options::on(Database::Sqlite).webhook(&hook.url);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let copy = folder.path().join("countersign.db");
    let server = Server::start(options()).await;
    let (before, keys) = back_up(server, &hook, async |server| {
        let file = rusqlite::Connection::open(server.file("countersign.db")).expect("opens");
        file.execute("VACUUM INTO ?1", [copy.to_str()]).expect("is backed up");
    })
    .await;
    let files = KEYS.map(|name| keys.path().join(name)).into_iter().chain([copy]).collect();
    let server = Server::start(Options { files, ..options() }).await;
    is_whole(&server, &before, &hook).await;
}
