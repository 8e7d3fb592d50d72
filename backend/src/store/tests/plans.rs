//! The work of writers in PostgreSQL: the plans of their statements on a young database, whose tables are small and were
//! not analysed, the order of their locks, and the stacks that they reserve.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Executor as _, Row as _};

use super::support::{World, decide, decided};
use crate::flow::RESERVED;
use crate::store::Room;
use crate::store::db::{Db, Sql};
use crate::store::runs::with_reviews;

/// The index of a list must not be assumed to be small, and read as a whole for each run.
#[tokio::test]
async fn a_run_is_found_along_its_key() {
    let Some(world) = World::postgres().await else { return };
    let run = world.launch("hello").await.summary.id;
    let mut conn = world.store.inner.db.read().await.expect("reads");
    let plan = conn.fetch(with_reviews(run).around("EXPLAIN ")).await.expect("explains");
    let plan: Vec<String> = plan.iter().map(|row| row.text(0).expect("text")).collect();
    let of_runs: Vec<_> = plan.iter().filter(|line| line.contains(" on runs")).collect();
    assert!(matches!(&of_runs[..], [line] if line.contains("runs_pkey")), "{plan:#?}");
}

/// Every statement that writers have prepared has one plan for all values, which reads no table as a whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_find_rows_along_their_keys() {
    let Some(world) = World::postgres().await else { return };
    let review = world.launched_review("hello").await;
    decided(world.store.commit(decide(&review, "ana", "yes")).await).expect("decides");
    world.launch("hello").await;
    let room = Room { calls: 2, timers: 2, suspects: 1 };
    world.store.claim("worker", room, std::time::Duration::from_mins(1), &[]).await.expect("claims");

    let Db::Postgres { writers, .. } = &world.store.inner.db else { panic!("it is PostgreSQL") };
    let mut seen = Vec::new();
    let mut held = Vec::new();
    for _ in 0..writers.options().get_max_connections() {
        let mut conn = writers.acquire().await.expect("connects");
        seen.extend(plans(&mut conn).await);
        held.push(conn);
    }
    let tables = ["runs", "reviews", "tasks", "queue", "runs_by_status", "review_audience", "log"];
    let is_large = |line: &&String| tables.iter().any(|table| line.contains(&format!(" on {table} ")));
    for table in ["runs", "reviews", "tasks", "queue", "runs_by_status"] {
        let named = format!(" on {table} ");
        assert!(seen.iter().any(|(_, plan)| plan.iter().any(|line| line.contains(&named))), "{table} in {seen:#?}");
    }
    for (statement, plan) in &seen {
        let scans = plan.iter().filter(is_large).filter(|line| line.contains("Seq Scan"));
        assert_eq!(scans.count(), 0, "{plan:#?}\n{statement}");
        if !statement.contains(" LIMIT ") {
            let by_index = plan.iter().filter(is_large).filter(|line| line.contains("Index"));
            let keys = plan.iter().filter(|line| line.contains("Index Cond"));
            assert!(by_index.count() <= keys.count(), "an index is read as a whole: {plan:#?}\n{statement}");
        }
    }
    let drawn_with_rows = |(sql, _): &(String, _)| sql.starts_with("WITH w0 AS (") && sql.contains("log_numbers(");
    assert!(seen.iter().any(drawn_with_rows), "{seen:#?}");
}

/// Whoever waits for the lock of the log holds all its other locks, so no two writers wait for each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_locked_before_the_log() {
    let Some(world) = World::postgres().await else { return };
    let review = world.launched_review("hello").await;
    let mut other = world.store.inner.db.write_on_this_thread().await.expect("writes");
    other.fetch(Sql::new("SELECT pg_advisory_xact_lock(1668248942, 1)::text")).await.expect("locks");
    let (store, decision) = (world.store.clone(), decide(&review, "ana", "yes"));
    let deciding = tokio::spawn(async move { store.commit(decision).await });
    let waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = 1668248942 AND NOT granted \
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    while other.fetch_one(Sql::new(waiting)).await.expect("reads").is_none() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    for table in ["runs", "reviews", "queue", "tasks"] {
        let sql = Sql::new("SELECT 1 FROM ").push(table).push(" FOR UPDATE SKIP LOCKED");
        assert!(other.fetch_one(sql).await.expect("reads").is_none(), "the row of {table} is not locked");
    }
    other.rollback().await.expect("ends");
    decided(deciding.await.expect("ends")).expect("decides");
}

/// A group needs one large stack for all that it evaluates.
#[tokio::test]
async fn a_group_is_decided_on_one_stack() {
    let Some(world) = World::postgres().await else { return };
    world.launch("hello").await;
    let before = RESERVED.get();
    world.launch("hello").await;
    assert_eq!(RESERVED.get() - before, 1);
}

/// The statements that a connection has prepared, with their plans.
async fn plans(conn: &mut PgConnection) -> Vec<(String, Vec<String>)> {
    let sql = "SELECT name, statement, cardinality(parameter_types), custom_plans FROM pg_prepared_statements";
    let mut plans = Vec::new();
    for row in conn.fetch_all(sql).await.expect("reads") {
        let (name, statement): (String, String) = (row.get(0), row.get(1));
        assert_eq!(row.get::<i64, _>(3), 0, "a plan for single values: {statement}");
        let values = vec!["NULL"; usize::try_from(row.get::<i32, _>(2)).expect("a number")].join(", ");
        let values = if values.is_empty() { values } else { format!("({values})") };
        let explain = AssertSqlSafe(format!("EXPLAIN EXECUTE {name}{values}"));
        let lines = conn.fetch_all(explain).await.expect("explains");
        plans.push((statement, lines.iter().map(|line| line.get(0)).collect()));
    }
    plans
}

/// The options in the URL of the database reach all connections.
#[tokio::test]
async fn options_of_the_url_are_kept() {
    let Some(world) = World::postgres().await else { return };
    let mut options = world.database.options(world.clock.clone());
    let separator = if options.url.contains('?') { '&' } else { '?' };
    options.url = format!("{}{separator}options=-c%20work_mem%3D7MB", options.url);
    let store = crate::store::Store::open(options).await.expect("opens");
    let setting = Sql::new("SELECT current_setting('work_mem')");
    let mut reader = store.inner.db.read().await.expect("reads");
    let mut writer = store.inner.db.write_on_this_thread().await.expect("writes");
    for conn in [&mut reader, &mut writer] {
        let row = conn.fetch_one(setting.clone()).await.expect("reads").expect("a row");
        assert_eq!(row.text(0).expect("text"), "7MB");
    }
}
