//! Pending reviews and exceptional outcomes have their own tables, no index of the remaining rows contains what a
//! commit changes, and no read scans all rows.

use std::collections::BTreeSet;

use serde_json::json;
use shared::access::Principal;
use shared::api::{ReviewQuery, RunQuery};
use shared::inbox::{Assigned, ReviewOrder};
use shared::review::ReviewStatus;
use shared::run::{Ending, RunStatus};

use super::support::{World, decide, decided, launch, on_both, person};
use crate::engine::Input;
use crate::store::db::Sql;
use crate::store::queue::unused_classes;
use crate::store::schema;
use crate::store::sqlite::{SEEN, keep_statements, path_of};
use crate::store::testing::Database;
use crate::store::{Actor, Change, FinishedFilter, NewFlow, Operation};

on_both! {
    a_place_is_left_when_it_does_not_hold_any_more,
    a_run_that_people_stopped_is_listed_by_its_ending,
    only_classes_that_nothing_waits_for_are_removed,
}

async fn rows(world: &World, sql: &str) -> i64 {
    let mut conn = world.store.inner.db.read().await.expect("reads");
    conn.fetch_one(Sql::new(sql)).await.expect("reads").expect("a row").int(0).expect("a number")
}

async fn listed(world: &World, status: RunStatus) -> usize {
    let viewer = Principal::new("boss".parse().expect("a name"), ["admin".to_owned()].into());
    let query = RunQuery { status: Some(status), ..RunQuery::default() };
    world.store.runs(&viewer, &query).await.expect("reads").items.len()
}

async fn cancel(world: &World, run: shared::id::RunId) {
    let by = Principal::new("dev".parse().expect("a name"), ["developer".to_owned()].into());
    let input = Box::new(Input::Cancel { by: by.clone(), reason: None });
    let change = Change { by: Some(Actor::of(by)), key: None, operation: Operation::Run { run, input } };
    world.store.commit(change).await.expect("cancels");
}

async fn a_place_is_left_when_it_does_not_hold_any_more(world: World) {
    let review = world.launched_review("hello").await;
    let cancelled = world.launch("hello").await.summary.id;
    assert_eq!(rows(&world, "SELECT COUNT(*) FROM queue").await, 2);
    assert_eq!(rows(&world, "SELECT COUNT(*) FROM classes").await, 1);
    assert_eq!(rows(&world, "SELECT COUNT(*) FROM runs_by_status").await, 2);
    assert_eq!(listed(&world, RunStatus::WaitingForHuman).await, 2);
    decided(world.store.commit(decide(&review, "ana", "yes")).await).expect("decides");
    cancel(&world, cancelled).await;
    assert_eq!(rows(&world, "SELECT COUNT(*) FROM queue").await, 0);
    assert_eq!(rows(&world, "SELECT COUNT(*) FROM undecided_reviews WHERE status = 'withdrawn'").await, 1);
    assert_eq!(rows(&world, "SELECT COUNT(*) FROM runs_by_status WHERE status = 'cancelled'").await, 1);
    assert_eq!(rows(&world, "SELECT COUNT(*) FROM runs_by_status").await, 1, "one that is completed stands in no list");
    for (status, count) in [(RunStatus::Completed, 1), (RunStatus::Cancelled, 1), (RunStatus::WaitingForHuman, 0)] {
        assert_eq!(listed(&world, status).await, count, "{status:?}");
    }
    let all = ReviewQuery { limit: Some(50), ..ReviewQuery::default() };
    for viewer in [person("boss"), person("ana")] {
        let viewer = Principal { roles: ["admin".to_owned(), "reviewer".to_owned()].into(), ..viewer };
        for (status, count) in [
            (None, 2),
            (Some(ReviewStatus::Pending), 0),
            (Some(ReviewStatus::Resolved), 1),
            (Some(ReviewStatus::Withdrawn), 1),
            (Some(ReviewStatus::Expired), 0),
        ] {
            let query = ReviewQuery { status, ..all.clone() };
            assert_eq!(world.store.reviews(&viewer, &query).await.expect("reads").items.len(), count, "{status:?}");
        }
    }
}

async fn a_run_that_people_stopped_is_listed_by_its_ending(world: World) {
    let mut reviews = Vec::new();
    for _ in 0..4 {
        reviews.push(world.launched_review("hello").await);
    }
    // The last one asks for an answer in time.
    let timed = json!({"id": "ask", "nodes": {"check": {"human": {
        "prompt": "May this go out?", "timeout": "1h", "on_timeout": "error",
        "options": [{"id": "yes", "kind": "accept", "label": "Yes"}],
    }}}});
    let (source, flow) = (timed.to_string(), serde_json::from_value(timed).expect("the flow is well-formed"));
    let new = NewFlow { flow, source, digest: "sha256:2".to_owned() };
    world.store.commit(Change::by_server(Operation::SaveFlow(Box::new(new)))).await.expect("the flow is saved");
    reviews.push(world.launched_review("hello").await);
    decided(world.store.commit(decide(&reviews[1], "ana", "no")).await).expect("decides");
    decided(world.store.commit(decide(&reviews[2], "ana", "yes")).await).expect("decides");
    cancel(&world, reviews[3].run_id.expect("of a run")).await;
    world.clock.advance(std::time::Duration::from_hours(1));
    decided(world.store.commit(decide(&reviews[4], "ana", "yes")).await).expect_err("it is too late");
    // As an earlier version stored them; the next start sorts them.
    for earlier in [false, true] {
        if earlier {
            let sql = "UPDATE runs_by_status SET status = 'unsorted' WHERE status IN ('rejected', 'timed_out')";
            assert_eq!(world.database.execute(sql).await.expect("runs"), 2);
            world.another().await;
        }
        // Everything, what they started, and what they are involved in.
        for (name, role) in [("boss", "admin"), ("dev", "developer"), ("ana", "reviewer")] {
            let viewer = Principal { roles: [role.to_owned()].into(), ..person(name) };
            for flow in [None, Some("ask".to_owned())] {
                let found = async |status, ending| {
                    let query = RunQuery { status, ending: Some(ending), flow: flow.clone(), ..RunQuery::default() };
                    let runs = world.store.runs(&viewer, &query).await.expect("reads").items;
                    runs.iter().map(|run| Some(run.id)).collect::<Vec<_>>()
                };
                assert_eq!(found(None, Ending::Rejected).await, [reviews[1].run_id], "{name}");
                assert_eq!(found(Some(RunStatus::Failed), Ending::Rejected).await, [reviews[1].run_id], "{name}");
                assert_eq!(found(Some(RunStatus::Cancelled), Ending::Rejected).await, []);
                assert_eq!(found(None, Ending::TimedOut).await, [reviews[4].run_id], "{name}");
            }
        }
    }
}

async fn forget_classes(world: &World, unused: &[uuid::Uuid]) {
    let mut conn = world.store.inner.db.write_on_this_thread().await.expect("writes");
    conn.forget_classes(unused).await.expect("removes");
    conn.commit().await.expect("commits");
}

async fn only_classes_that_nothing_waits_for_are_removed(world: World) {
    let first = world.launched_review("hello").await;
    world.launch("hello").await;
    decided(world.store.commit(decide(&first, "ana", "yes")).await).expect("decides");
    for (pending, kept) in [(1, 1), (0, 0)] {
        assert_eq!(rows(&world, "SELECT COUNT(*) FROM queue").await, pending);
        forget_classes(&world, &unused_classes(&world.store.inner.db).await.expect("reads")).await;
        assert_eq!(rows(&world, "SELECT COUNT(*) FROM classes").await, kept);
        let viewer = Principal { roles: ["reviewer".to_owned()].into(), ..person("ana") };
        for review in world.store.pending(&viewer, 10, usize::MAX).await.expect("reads").reviews {
            decided(world.store.commit(decide(&review, "ana", "yes")).await).expect("decides");
        }
    }
    world.launch("hello").await;
    // One that is used again after it was read stays, too.
    let found = world.store.inner.db.read().await.expect("reads").fetch(Sql::new("SELECT class FROM classes")).await;
    let classes: Vec<_> = found.expect("reads").iter().map(|row| row.uuid(0).expect("an id")).collect();
    forget_classes(&world, &classes).await;
    let viewer = Principal { roles: ["reviewer".to_owned()].into(), ..person("ana") };
    assert_eq!(
        world.store.pending(&viewer, 10, usize::MAX).await.expect("reads").reviews.len(),
        1,
        "its class is there again"
    );
}

/// A commit that changes an indexed column writes to that index, and in PostgreSQL to all others of the table.
#[tokio::test]
async fn no_index_has_what_a_commit_changes() {
    let changed = ["status", "format", "state", "search", "body", "facts", "tags", "due", "claimed_until", "comments"];
    let check = |definitions: Vec<String>| {
        assert!(definitions.len() >= 6, "{definitions:?}");
        for definition in definitions {
            let words: Vec<_> = definition.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            assert!(!changed.iter().any(|column| words.contains(column)), "{definition}");
        }
    };
    let world = World::sqlite().await;
    let mut conn = world.store.inner.db.read().await.expect("reads");
    let sql = "SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name IN ('runs', 'reviews') AND sql <> ''";
    let found = conn.fetch(Sql::new(sql)).await.expect("reads");
    check(found.iter().map(|row| row.text(0).expect("text")).collect());
    let Some(world) = World::postgres().await else { return };
    let mut conn = world.store.inner.db.read().await.expect("reads");
    let sql = "SELECT indexdef FROM pg_indexes WHERE tablename IN ('runs', 'reviews')";
    let found = conn.fetch(Sql::new(sql)).await.expect("reads");
    check(found.iter().map(|row| row.text(0).expect("text")).collect());
}

/// The plan of SQLite for each statement that reads. SQLite has no statistics, so its plans are the same for few rows
/// and for many.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_looks_through_no_large_table() {
    let world = World::sqlite().await;
    let review = world.launched_review("hello").await;
    world.launch("hello").await;
    SEEN.lock().clear();
    let mut viewers: Vec<Principal> = [("ana", "reviewer"), ("boss", "admin"), ("dev", "developer")]
        .into_iter()
        .map(|(name, role)| Principal { roles: [role.to_owned()].into(), ..person(name) })
        .collect();
    viewers.push(Principal::new("eve".parse().expect("a name"), [].into()));
    let statuses = [ReviewStatus::Pending, ReviewStatus::Resolved, ReviewStatus::Expired].map(Some);
    let run = world.store.run(review.run_id.expect("of a run")).await.expect("reads").expect("is there");
    let run = crate::engine::summary(&run);
    for viewer in &viewers {
        for status in statuses.into_iter().chain([None]) {
            for order in [ReviewOrder::Newest, ReviewOrder::Urgency] {
                for more in [
                    json!({}),
                    json!({ "q": "hello" }),
                    json!({ "assigned": "me" }),
                    json!({ "tag": "legal" }),
                    json!({ "decided_by": "me", "q": "hello" }),
                    json!({ "decided_by": "ana" }),
                    json!({ "decided_by": "ana", "flow": "ask", "severity": "critical", "tag": "legal" }),
                ] {
                    let query: ReviewQuery = serde_json::from_value(more).expect("a query");
                    let mut query = ReviewQuery { status, order: Some(order), limit: Some(1), ..query };
                    let page = world.store.reviews(viewer, &query).await.expect("reads");
                    query.cursor = page.next_cursor;
                    world.store.reviews(viewer, &query).await.expect("reads");
                    query.assigned = Some(Assigned::Claimed);
                    world.store.reviews(viewer, &query).await.expect("reads");
                }
            }
            world.store.facets(viewer, &ReviewQuery::default()).await.expect("counts");
        }
        for status in
            [RunStatus::Completed, RunStatus::Failed, RunStatus::WaitingForHuman].map(Some).into_iter().chain([None])
        {
            for flow in [None, Some("ask".to_owned())] {
                let query = RunQuery { status, flow, limit: Some(1), ..RunQuery::default() };
                let page = world.store.runs(viewer, &query).await.expect("reads");
                let query = RunQuery { cursor: page.next_cursor, ..query };
                world.store.runs(viewer, &query).await.expect("reads");
                let query = RunQuery { status: None, ending: Some(Ending::Rejected), ..query };
                world.store.runs(viewer, &query).await.expect("reads");
            }
            for more in
                [json!({ "requested_by": "dev", "started_after": "2026-01-01T00:00:00Z" }), json!({ "q": "hello" })]
            {
                let query: RunQuery = serde_json::from_value(more).expect("a query");
                world.store.runs(viewer, &RunQuery { status, ..query }).await.expect("reads");
            }
        }
        world.store.seen_through(viewer, &run).await.expect("reads");
    }
    world.store.runs_to_recount(None, 10).await.expect("reads");
    world.store.runs_without_reviewers(None, 10).await.expect("reads");
    let soon = shared::time::Timestamp(i64::MAX);
    for of in [FinishedFilter::Of(&"ask".parse().expect("an id")), FinishedFilter::Carriers] {
        world.store.finished_runs(of, soon, None, 10).await.expect("reads");
    }
    decided(world.store.commit(decide(&review, "ana", "yes")).await).expect("decides");
    world.store.commit(launch("hello")).await.expect("launches");

    let seen: BTreeSet<String> = SEEN.lock().clone();
    assert!(seen.len() > 50, "{}", seen.len());
    let path = path_of(&world.database.url).expect("a file");
    let conn = rusqlite::Connection::open(path).expect("opens");
    keep_statements(&conn).expect("as the store's connections do");
    for sql in
        seen.iter().filter(|sql| sql.starts_with("SELECT") || sql.starts_with("WITH") || sql.starts_with("DELETE"))
    {
        let mut plan = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("is valid");
        let mut rows = plan.raw_query();
        while let Some(row) = rows.next().expect("explains") {
            let line: String = row.get(3).expect("text");
            // A scan from the first id on, which may be the plan for `IS NOT NULL`.
            assert!(!line.contains("_id>?)"), "{line}\n{sql}");
            let Some(name) = line.strip_prefix("SCAN ").and_then(|line| line.split(' ').next()) else { continue };
            let large = ["reviews", "runs", "review_audience", "runs_by_status", "undecided_reviews", "log", "steps"];
            let is_large =
                large.contains(&name) || large.iter().any(|table| sql.contains(&format!(" {table} {name} ")));
            assert!(!is_large || in_order(&line), "{line}\n{sql}");
        }
    }
}

/// Whether rows are read along an index in the order of a list, so that the read ends with the page.
fn in_order(line: &str) -> bool {
    ["reviews_asked", "runs_created", "runs_carriers"].iter().any(|index| line.ends_with(index))
}

/// A database of an earlier version: its rows are in the new tables after the migration.
#[tokio::test]
async fn what_an_earlier_version_wrote_has_its_places() {
    let database = Database::sqlite().expect("a temporary folder");
    let path = path_of(&database.url).expect("a file");
    let conn = rusqlite::Connection::open(&path).expect("opens");
    let earlier = schema::SQLITE.iter().filter(|migration| migration.version < 18);
    conn.execute_batch(schema::APPLIED).expect("is made");
    for migration in earlier {
        conn.execute_batch(migration.sql.as_str()).expect("is applied");
        let sql = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                   VALUES (?1, '', TRUE, ?2, 0)";
        conn.execute(sql, rusqlite::params![migration.version, migration.checksum]).expect("is noted");
    }
    for (number, run, review) in [(1, "completed", "resolved"), (2, "failed", "withdrawn"), (3, "cancelled", "expired")]
    {
        let sql = format!(
            "INSERT INTO runs (id, flow, status, requested_by, created_at, format, state)
                 VALUES (x'0{number}', 'ask', '{run}', 'dev', {number}, 1, '');
             INSERT INTO reviews (id, run_id, status, kind, severity, flow, requested_by, not_requester, created_at, search,
                 body, facts, due, severity_rank, irreversible, claimed_until)
                 VALUES (x'0{number}', x'0{number}', '{review}', 'approval', 'low', 'ask', 'dev', 0, {number}, '', '', '{{}}',
                 1, 3, 0, 0);
             INSERT INTO review_audience (review_id, subject, pending, created_at) VALUES
                 (x'0{number}', 'tagged:editor', 0, {number}), (x'0{number}', 'watched', 0, {number})"
        );
        conn.execute_batch(&sql).expect("is written");
    }
    conn.execute_batch(
        "INSERT INTO review_audience (review_id, subject, pending, created_at) VALUES (x'02', 'needs:legal', 0, 2);
         INSERT INTO runs (id, flow, status, requested_by, created_at, format, state, carries_question)
             VALUES (x'04', '', 'waiting_for_human', 'dev', 4, 1, '', 1)",
    )
    .expect("is written");
    drop(conn);
    schema::migrate_sqlite(&path).expect("is brought to this version");
    let conn = rusqlite::Connection::open(&path).expect("opens");
    let text = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, Option<String>>(0)).expect("a row");
    for (sql, expected) in [
        ("SELECT group_concat(status || created_at, ' ') FROM runs_by_status", Some("cancelled3 failed2 unsorted2")),
        ("SELECT group_concat(status || created_at, ' ') FROM undecided_reviews", Some("expired3 withdrawn2")),
        (
            "SELECT group_concat(subject || created_at, ' ') FROM review_audience",
            Some("needs:legal2 tagged:editor1 tagged:editor2 tagged:editor3"),
        ),
        ("SELECT tags FROM reviews WHERE id = x'02'", Some("[\"legal\"]")),
        ("SELECT tags FROM reviews WHERE id = x'01'", None),
        ("SELECT group_concat(severity_rank, ' ') FROM reviews", Some("3 3 3")),
    ] {
        assert_eq!(text(sql).as_deref(), expected, "{sql}");
    }
}

/// SQLite writes whole pages. Three or four of them are those of the review's timer and its indexes; `bench` measures
/// the same with more rows, in a flow without a timer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lone_decision_changes_few_pages() {
    const TIMES: usize = 40;
    let world = World::sqlite().await;
    let mut waiting = Vec::new();
    for round in 0..40 {
        let launches = (0..32).map(|_| world.launched_review("hello"));
        let launched = futures::future::join_all(launches).await;
        world.clock.advance(std::time::Duration::from_millis(7));
        let (decided, left) = launched.split_at(if round < 36 { 30 } else { 8 });
        futures::future::join_all(decided.iter().map(|review| world.store.commit(decide(review, "ana", "yes")))).await;
        waiting.extend(left.to_vec());
    }
    let path = path_of(&world.database.url).expect("a file");
    let reader = rusqlite::Connection::open(&path).expect("opens");
    // While a reader uses an earlier state, the write-ahead log only grows.
    reader.execute_batch("PRAGMA busy_timeout = 10000; PRAGMA wal_checkpoint(TRUNCATE)").expect("is emptied");
    reader.execute_batch("BEGIN; SELECT COUNT(*) FROM meta").expect("begins");
    let log = std::path::PathBuf::from(format!("{}-wal", path.display()));
    let pages = || log.metadata().expect("is there").len() / 4120;
    let (mut launches, mut decisions) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        world.clock.advance(std::time::Duration::from_millis(7));
        let before = pages();
        waiting.push(world.launched_review("hello").await);
        let between = pages();
        launches.push(between - before);
        let review = waiting.swap_remove(waiting.len() * 7 / 11);
        decided(world.store.commit(decide(&review, "ana", "yes")).await).expect("decides");
        decisions.push(pages() - between);
    }
    // Background writes of the store affect a few of the measurements.
    launches.sort_unstable();
    decisions.sort_unstable();
    let (launch, decision) = (launches[TIMES / 2], decisions[TIMES / 2]);
    assert!(decision < 13, "{decisions:?} pages");
    assert!(launch < 23, "{launches:?} pages");
}
