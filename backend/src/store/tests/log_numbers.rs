//! SQLite: each number of the log is given only once.

use super::support::World;
use crate::store::db::Sql;
use crate::store::testing::ManualClock;
use crate::store::{Store, StoreOptions};

async fn number(store: &Store, sql: &str) -> i64 {
    let mut conn = store.inner.db.read().await.expect("reads");
    conn.fetch_one(Sql::new(sql)).await.expect("reads").expect("a row").int(0).expect("a number")
}

const LAST: &str = "SELECT MAX(seq) FROM log";
const RESERVED: &str = "SELECT seq FROM sqlite_sequence WHERE name = 'log'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_follow_each_other_and_are_reserved_ahead() {
    let world = World::sqlite().await;
    let (last, reserved) = (number(&world.store, LAST).await, number(&world.store, RESERVED).await);
    assert!(reserved > last);
    world.launch("hello").await;
    assert_eq!(number(&world.store, LAST).await, last + 1);
    assert_eq!(number(&world.store, RESERVED).await, reserved, "nothing is written of it");

    // A row that SQLite numbers itself gets no reserved number, and the log continues after it.
    let insert = "INSERT INTO log (commit_id, at, body) VALUES (zeroblob(16), 0, '{\"events\":[]}')";
    world.database.execute(insert).await.expect("inserts");
    assert_eq!(number(&world.store, LAST).await, reserved + 1);
    world.launch("hello").await;
    assert_eq!(number(&world.store, LAST).await, reserved + 2);
    assert!(number(&world.store, RESERVED).await > reserved + 2);

    // Another process, as after a crash, continues after the last row.
    let options = StoreOptions { index_log: false, ..world.database.options(ManualClock::now()) };
    let other = Store::open(options).await.expect("opens");
    other.commit(super::support::launch("hello")).await.expect("launches");
    assert_eq!(number(&other, LAST).await, reserved + 3);

    // Numbers of removed rows are not given again.
    let reserved = number(&other, RESERVED).await;
    world.database.execute("DELETE FROM log").await.expect("deletes");
    other.commit(super::support::launch("hello")).await.expect("launches");
    assert_eq!(number(&other, LAST).await, reserved + 1);
    other.close().await;
}
