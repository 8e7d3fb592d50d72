//! Databases of earlier versions, with runs under way, are opened by this one: the runs go on, the record holds and
//! goes on being sealed, and nobody is told anew of what they were told before. `tests/fixtures` has the databases.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use shared::api::{LogQuery, RunQuery};
use shared::decision::{DecisionRequest, Verdict};
use shared::log::{Entry, EntryKind};
use shared::run::RunStatus;
use tests::postgres::Postgres;
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

    // What was sealed by the earlier version holds; what it had not sealed yet, and what comes, is sealed after it.
    let check = admin.verify_audit().await.expect("checks");
    assert!(check.valid && check.sealed >= 20, "{check:?}");

    let runs = admin.runs(&RunQuery::default()).await.expect("reads").items;
    assert!(runs.len() >= 4);
    for run in &runs {
        let waiting = admin.run_reviews(run.id).await.expect("reads").items;
        let waiting =
            waiting.into_iter().find(|review| review.is_pending() && review.flow.as_deref() == Some("question"));
        let Some(review) = waiting else { continue };
        let decision = DecisionRequest {
            revision: review.revision,
            digest: review.digest.clone(),
            verdict: Verdict::Choose { option: "approve".to_owned(), fields: serde_json::Map::new() },
            edits: serde_json::Map::new(),
            comment: None,
            metadata: serde_json::Map::new(),
        };
        admin.decide(review.id, &decision, None).await.expect("decided");
    }
    // One was decided by a person just now, one by its timer, and the call of one was made again.
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

    // Every run is told from its start to its end, in order.
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

    // Two messages were sent by the earlier version, and two waited to be tried again.
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
