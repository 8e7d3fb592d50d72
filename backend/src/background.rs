//! Supervision of tasks that run as long as the server. If one ends unexpectedly, by a panic or by returning, the
//! server is not fully working: the process is told, exits, and has to be restarted.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The rest after a piece of deferrable work, as a multiple of the time that the work took: other work matters more.
const REST: u32 = 4;
/// The maximum rest.
const LONGEST_REST: Duration = Duration::from_secs(2);

/// Rests after a piece of deferrable work that began at `begun`.
pub async fn rest_after(begun: Instant) {
    sleep((begun.elapsed() * REST).min(LONGEST_REST)).await;
}

/// The tasks of one server. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Background(Arc<watch::Sender<Option<&'static str>>>);

impl Background {
    /// Wraps a task: if it ends before `stop` was cancelled, [`Self::failed`] reports its name.
    pub fn watch<F: Future<Output = ()> + Send>(
        &self,
        name: &'static str,
        stop: &CancellationToken,
        task: F,
    ) -> impl Future<Output = ()> + Send + use<F> {
        let guard = TaskGuard { name, stop: stop.clone(), ended: false, failed: Arc::clone(&self.0) };
        async move {
            task.await;
            guard.end();
        }
    }

    /// Starts a task under supervision, and passes it the token that asks it to stop.
    pub fn start<F: Future<Output = ()> + Send + 'static>(
        &self,
        name: &'static str,
        task: impl FnOnce(CancellationToken) -> F,
    ) -> BackgroundTask {
        let stop = CancellationToken::new();
        let task = tokio::spawn(self.watch(name, &stop, Box::pin(task(stop.clone()))));
        BackgroundTask { name, stop: stop.drop_guard(), task }
    }

    /// Like [`Self::start`], for work that is dropped where it is when it is asked to stop.
    pub fn run(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) -> BackgroundTask {
        self.start(name, |stop| async move {
            stop.run_until_cancelled(work).await;
        })
    }

    /// Returns the name of the first task that ended without being asked to stop. `None` if all still run.
    pub fn first_failed(&self) -> Option<&'static str> {
        *self.0.borrow()
    }

    /// Waits until a task ends without being asked to stop, and returns its name.
    pub async fn failed(&self) -> &'static str {
        let mut failed = self.0.subscribe();
        match failed.wait_for(Option::is_some).await.ok().and_then(|name| *name) {
            Some(name) => name,
            // The channel cannot close while `self` exists.
            None => std::future::pending().await,
        }
    }
}

/// A started task. Dropping this asks the task to stop.
pub struct BackgroundTask {
    name: &'static str,
    stop: DropGuard,
    task: JoinHandle<()>,
}

impl BackgroundTask {
    /// Asks the task to stop, and waits until it has ended.
    pub async fn stop(self) {
        drop(self.stop);
        if let Err(error) = self.task.await {
            tracing::error!(%error, task = self.name, "a background task did not stop cleanly");
        }
    }
}

/// Reports an unexpected end when it is dropped, which happens when the task returns or panics. Dropping the unfinished
/// task itself is no failure.
struct TaskGuard {
    name: &'static str,
    stop: CancellationToken,
    ended: bool,
    failed: Arc<watch::Sender<Option<&'static str>>>,
}

impl TaskGuard {
    fn end(mut self) {
        self.ended = true;
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        let unasked = (self.ended || std::thread::panicking()) && !self.stop.is_cancelled();
        if unasked {
            tracing::error!(task = self.name, "a background task ended unexpectedly");
            self.failed.send_modify(|failed| {
                failed.get_or_insert(self.name);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_returns_or_panics_unasked_is_named_and_one_that_was_stopped_is_not() {
        let background = Background::default();
        let stop = CancellationToken::new();
        let stopped = background.watch("stopped", &stop, stop.clone().cancelled_owned());
        stop.cancel();
        stopped.await;
        drop(background.watch("dropped", &CancellationToken::new(), std::future::pending()));
        assert_eq!(background.first_failed(), None);

        let stop = CancellationToken::new();
        let panics = background.watch("panics", &stop, async { panic!("on purpose") });
        assert!(tokio::spawn(panics).await.is_err());
        assert_eq!(background.failed().await, "panics");
        background.watch("returns", &stop, async {}).await;
        assert_eq!(background.first_failed(), Some("panics"), "the first one is the cause");
    }
}
