//! This version opens databases of earlier versions, from `tests/fixtures`, with unfinished runs: the runs continue,
//! the audit log is valid and further sealed, and no notification is sent again.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use shared::api::{LogQuery, RunQuery};
use shared::log::{Entry, EntryKind};
use shared::run::RunStatus;
use tests::postgres::Postgres;
use tests::reviewing::chosen;
use tests::{Database, Options, Recorder, Server, eventually};

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/schema-1").join(name)
}

async fn goes_on(database: Database) {
    let hook = Recorder::start(Duration::ZERO).await;
    let keys = ["seal.key", "seal.pub"].map(fixture);
    let options = Options { files: keys.to_vec(), ..Options::on(database).webhook(&hook.url) };
    let mut server = match database {
        Database::Sqlite => {
            let files = keys.into_iter().chain([fixture("countersign.db")]).collect();
            Server::start(Options { files, ..options }).await
        }
        Database::Postgres => {
            let postgres = Postgres::start().await;
            postgres.restore(&fixture("postgres.sql"));
            Server::start_on(Some(Arc::new(postgres)), options).await
        }
    };
    let admin = server.admin().await;

    // The seals of the earlier version are valid. Entries that it had not sealed, and new ones, are sealed later.
    let check = admin.verify_audit().await.expect("checks");
    assert!(check.valid && check.sealed >= 20, "{check:?}");

    let runs = admin.runs(&RunQuery::default()).await.expect("reads").items;
    assert!(runs.len() >= 4);
    for run in &runs {
        let waiting = admin.run_reviews(run.id).await.expect("reads").items;
        let waiting =
            waiting.into_iter().find(|review| review.is_pending() && review.flow.as_deref() == Some("question"));
        let Some(review) = waiting else { continue };
        admin.decide(review.id, &chosen(&review, "approve"), None).await.expect("decided");
    }
    // One run was decided by a person just now, one by its timer, and one had its call repeated.
    for run in &runs {
        let status = eventually("the run is over", async || {
            let status = admin.run(run.id).await.ok()?.summary.status;
            status.is_over().then_some(status)
        })
        .await;
        assert_eq!(status, RunStatus::Completed);
    }
    eventually("everything is sealed", async || {
        let check = admin.verify_audit().await.ok()?;
        assert!(check.valid, "{check:?}");
        (check.sealed == check.entries).then_some(())
    })
    .await;

    // The log has every run from its start to its end, in order.
    let mut after = None;
    let mut entries: Vec<Entry> = Vec::new();
    loop {
        let page = admin.log(&LogQuery { run: None, after, limit: Some(5) }).await.expect("the log");
        entries.extend(page.items);
        after = page.next_cursor;
        if after.is_none() {
            break;
        }
    }
    for run in &runs {
        let mut kinds = entries.iter().filter(|entry| entry.event.run_id == Some(run.id)).map(|entry| entry.event.kind);
        assert_eq!(kinds.next(), Some(EntryKind::RunStarted));
        assert_eq!(kinds.next_back(), Some(EntryKind::RunCompleted));
    }

    // The earlier version had sent two messages; two more waited for another attempt.
    let two = async || (hook.calls().len() >= 2).then_some(());
    eventually("what waited is sent", two).await;
    server.restart().await;
    let calls = hook.calls();
    let ids: BTreeSet<&str> = calls.iter().map(|call| call.key.as_str()).collect();
    let resolved = calls.iter().filter(|call| call.arguments["type"] == "review.resolved").count();
    assert_eq!((calls.len(), ids.len(), resolved), (2, 2, 0), "{calls:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_the_first_version_go_on_on_sqlite() {
    goes_on(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_the_first_version_go_on_on_postgres() {
    goes_on(Database::Postgres).await;
}
