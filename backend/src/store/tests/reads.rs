//! Reads that are executed as one piece.

use std::sync::mpsc;
use std::thread::{self, ThreadId};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::oneshot;

use crate::store::db::{Conn, Db, Sql};
use crate::store::driver_error::DriverError;
use crate::store::sqlite::{Pool, PoolUse};

/// The thread on which a statement has run, as far as its caller can tell.
async fn thread_of_statement(conn: &mut Conn) -> Result<ThreadId, DriverError> {
    conn.fetch(Sql::new("SELECT 1")).await?;
    Ok(thread::current().id())
}

fn with_one_reader(folder: &tempfile::TempDir) -> Db {
    let path = folder.path().join("countersign.db");
    std::fs::write(&path, "").expect("an empty database");
    let pool = |of| Pool::new(&path, of, 1);
    Db::Sqlite { readers: pool(PoolUse::Reading), writer: pool(PoolUse::Writing) }
}

#[tokio::test]
async fn a_read_stays_on_one_thread_and_keeps_its_connection_until_it_notices_that_its_caller_has_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = with_one_reader(&folder);
    let (begin, begun) = oneshot::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let (end, ended) = oneshot::channel();
    let read = move |mut conn: Conn| async move {
        let first = thread_of_statement(&mut conn).await?;
        begin.send(first).ok();
        may_go_on.recv().ok();
        let second = thread_of_statement(&mut conn).await;
        end.send((thread::current().id(), second)).ok();
        Ok::<_, DriverError>(())
    };
    let mut reading = Box::pin(db.read_as_one(read));
    let first = tokio::select! {
        _ = &mut reading => panic!("it waits"),
        first = begun => first.expect("it begins"),
    };
    assert_ne!(first, thread::current().id(), "this thread serves others");
    drop(reading);

    let again = |mut conn: Conn| async move { thread_of_statement(&mut conn).await };
    let mut next = Box::pin(db.read_as_one(again));
    assert!((&mut next).now_or_never().is_none(), "the only connection is in use");
    go_on.send(()).expect("it waits");
    let (thread, second) = ended.await.expect("it ends");
    assert_eq!(thread, first);
    assert!(matches!(second, Err(DriverError::Interrupted)), "no other statement begins: {second:?}");
    next.await.expect("the connection is free again");
}

/// Without that, a page that takes minutes would keep its connection, although nobody gets it.
#[tokio::test]
async fn a_statement_ends_if_its_caller_leaves() {
    const ENDLESS: &str = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT max(n) FROM n";
    let folder = tempfile::tempdir().expect("a folder");
    let db = with_one_reader(&folder);
    for as_one in [true, false] {
        let reading = async {
            if as_one {
                let read = |mut conn: Conn| async move { conn.fetch(Sql::new(ENDLESS)).await.map(|_| ()) };
                db.read_as_one(read).await
            } else {
                db.read().await?.fetch(Sql::new(ENDLESS)).await.map(|_| ())
            }
        };
        let left = tokio::time::timeout(Duration::from_millis(100), reading).await;
        assert!(left.is_err(), "it has no end");
        let next = db.read_as_one(|mut conn: Conn| async move { thread_of_statement(&mut conn).await });
        next.await.expect("the connection is free again");
        db.read().await.expect("a connection").fetch(Sql::new("SELECT 1")).await.expect("it is not interrupted");
    }
}
