//! Reads that are executed as one piece.

use std::sync::mpsc;
use std::thread::{self, ThreadId};

use futures::FutureExt as _;
use tokio::sync::oneshot;

use crate::store::db::{Conn, Db, Sql};
use crate::store::driver_error::DriverError;
use crate::store::sqlite::Pool;

/// The thread on which a statement has run, as far as its caller can tell.
async fn thread_of_statement(conn: &mut Conn) -> Result<ThreadId, DriverError> {
    conn.fetch(Sql::new("SELECT 1")).await?;
    Ok(thread::current().id())
}

#[tokio::test]
async fn a_read_stays_on_one_thread_and_keeps_its_connection_if_its_caller_leaves() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("countersign.db");
    std::fs::write(&path, "").expect("an empty database");
    let db = Db::Sqlite { readers: Pool::of_readers(&path, 1), writer: Pool::of_the_writer(&path) };
    let (begin, begun) = oneshot::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let (end, ended) = oneshot::channel();
    let read = move |mut conn: Conn| async move {
        let first = thread_of_statement(&mut conn).await?;
        begin.send(first).ok();
        may_go_on.recv().ok();
        let second = thread_of_statement(&mut conn).await?;
        end.send(second).ok();
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
    assert_eq!(ended.await.expect("it completes"), first);
    next.await.expect("the connection is free again");
}
