//! The only write path. A writer takes the waiting changes (up to [`GROUP`]), reads everything that they depend on in a
//! few queries inside one transaction, decides one change after the other in memory, writes the results in a few
//! statements, commits, and answers.
//!
//! Since a run is read inside the transaction that writes it (SQLite has one writer; in PostgreSQL, writers take the
//! locks of their runs first), nothing can change under a decision, and no retry is needed. If the database is
//! unreachable, the whole group gets that error at once. If one change may be to blame, the group is divided until that
//! change stands alone. A change whose caller has gone before it was begun is dropped, and never made later.
//!
//! Flows are compiled beside the transactions: changes that need one that is not compiled yet wait for it, and no others
//! do.

mod access;
mod archive;
mod clean_up;
mod commit_outcome;
mod credentials;
mod decide;
mod deputies;
mod erase;
mod feedback;
mod flows;
mod grants;
mod group;
mod index_rows;
mod load;
mod load_runs;
mod locks;
mod log_numbers;
mod log_share;
mod named;
mod notifications;
mod pending;
mod preparation;
mod provider;
mod questions;
mod queue;
mod rights;
mod runs;
mod saved_views;
mod sign_in;
mod transaction;
mod unanswered;
mod users;
mod write;

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep};

use self::preparation::Preparations;
pub(super) use self::queue::{CommitAnswer, Queue, QueuedChange};
use self::transaction::write_all;
use super::Inner;
use crate::flow::LARGE_STACK;

/// The largest number of changes in one transaction. With twice as many, each would cost slightly less, but under full
/// load all callers would wait for one commit together, and the other cores would be idle meanwhile.
const GROUP: usize = 32;
/// The interval between clean-ups of expired rows, and the shorter one if some were left.
const CLEANUP: Duration = Duration::from_mins(10);
const CLEANUP_OF_MORE: Duration = Duration::from_millis(100);

/// Returns the task of a writer, to be run in the background. The writer for SQLite has its own thread, on which its
/// statements run.
pub(super) fn start(
    inner: &Arc<Inner>,
    queue: mpsc::Receiver<QueuedChange>,
) -> std::io::Result<BoxFuture<'static, ()>> {
    let writer = run(Arc::clone(inner), queue);
    if inner.db.is_postgres() {
        return Ok(writer.boxed());
    }
    let runtime = Handle::current();
    let (done, ended) = oneshot::channel::<()>();
    let work = move || {
        runtime.block_on(writer);
        drop(done);
    };
    // With this stack, templates, conditions and schemas need no separate one: mapping one costs ten times as much as a
    // template.
    std::thread::Builder::new().name("sqlite-writer".to_owned()).stack_size(LARGE_STACK).spawn(work)?;
    // If the runtime ends without closing the store, the thread must end, too.
    let stop = inner.stop.clone().drop_guard();
    Ok(async move {
        let _ = ended.await;
        // The thread ended by itself, so the store is not stopped.
        stop.disarm();
    }
    .boxed())
}

/// Runs a writer until the store is closed and all waiting changes are written.
async fn run(inner: Arc<Inner>, mut queue: mpsc::Receiver<QueuedChange>) {
    let mut jobs = Vec::with_capacity(GROUP);
    let mut preparations = Preparations::default();
    // By the uptime: the clock may be set back.
    let mut cleaned = None::<Duration>;
    // When to continue, if some expired rows were left.
    let mut more_at = None;
    let mut stopping = false;
    loop {
        tokio::select! {
            biased;
            () = inner.stop.cancelled(), if !stopping => {
                stopping = true;
                queue.close();
            }
            Some(prepared) = preparations.next() => write_all(&inner, prepared, &mut preparations).await,
            count = queue.recv_many(&mut jobs, GROUP), if preparations.has_room() => {
                if count == 0 {
                    break;
                }
                write_all(&inner, std::mem::take(&mut jobs), &mut preparations).await;
            }
            () = sleep(if more_at.is_some() { CLEANUP_OF_MORE } else { CLEANUP }), if !stopping => {}
            else => {}
        }
        let now = inner.clock.now();
        let uptime = inner.clock.uptime();
        let is_due = cleaned.is_none_or(|at| uptime.saturating_sub(at) >= CLEANUP)
            || more_at.is_some_and(|at| at <= Instant::now());
        if is_due && !stopping {
            cleaned = Some(uptime);
            more_at = match clean_up::some(&inner.db, now).await {
                Ok(more) => more.then(|| Instant::now() + CLEANUP_OF_MORE),
                Err(error) => {
                    tracing::warn!(%error, "could not remove expired rows; trying again later");
                    None
                }
            };
        }
    }
    while let Some(prepared) = preparations.next().await {
        write_all(&inner, prepared, &mut preparations).await;
    }
}
