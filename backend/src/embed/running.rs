//! A run that a program has started: its events, and its end.

use std::sync::Arc;

use shared::JsonMap;
use shared::error::FlowCode;
use shared::id::RunId;
use shared::log::{EntryKind, Event};
use shared::review::Review;
use shared::run::{Report, RunStatus};
use tokio::sync::broadcast::{Receiver, error::RecvError};

use super::{Awaited, Inner, News, RunError};
use crate::engine::{self, Input, Refusal};
use crate::store::{CommitError, Operation};
use crate::token_stream::Streams;

/// A completed run.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// The flow's output keys.
    pub output: JsonMap,
    /// The report: each visit of each node, and all reviews.
    pub report: Report,
}

/// A run that was started. It continues if this is dropped.
pub struct Running {
    id: RunId,
    inner: Arc<Inner>,
    news: Receiver<News>,
    over: bool,
}

impl Running {
    pub(super) fn new(id: RunId, inner: Arc<Inner>, news: Receiver<News>) -> Self {
        Self { id, inner, news, over: false }
    }

    /// Creates a run that is already over.
    pub(super) fn ended(mut self) -> Self {
        self.over = true;
        self
    }

    /// Returns the stream of running agents' text.
    pub(super) fn streams(&self) -> Streams {
        self.inner.streams.get().cloned().unwrap_or_default()
    }

    /// Returns the run's id in entries, reviews and the console.
    pub fn id(&self) -> RunId {
        self.id
    }

    /// Waits for the next event of the log. `None` once the run is over or cannot continue on its own. A slow receiver
    /// misses some events, but always gets the end.
    pub async fn next(&mut self) -> Option<Event> {
        while !self.over {
            match self.news.recv().await {
                Ok(News::Entry(entry)) if entry.event.run_id == Some(self.id) => {
                    // An entry's status is not enough: if one commit both starts and ends a run, even the first entry
                    // has the final status.
                    let ends = [EntryKind::RunCompleted, EntryKind::RunFailed, EntryKind::RunCancelled];
                    self.over = ends.contains(&entry.event.kind);
                    return Some(entry.event.clone());
                }
                Ok(News::Entry(_) | News::Attached(_)) => {}
                Ok(News::Recheck) => self.over = self.inner.is_undecided(Awaited::Run(self.id)),
                Err(RecvError::Lagged(_)) => {
                    let ended = self
                        .inner
                        .store
                        .run(self.id)
                        .await
                        .is_ok_and(|state| state.is_none_or(|state| engine::summary(&state).status.is_over()));
                    self.over = ended || self.inner.is_undecided(Awaited::Run(self.id));
                }
                Err(RecvError::Closed) => self.over = true,
            }
        }
        None
    }

    /// Waits until the run needs people, and returns their reviews. `None` once the run is over or cannot continue on
    /// its own.
    pub async fn paused(&mut self) -> Result<Option<Vec<Review>>, RunError> {
        loop {
            let state = self.inner.store.run(self.id).await?;
            match state.map(|state| engine::summary(&state).status) {
                Some(RunStatus::WaitingForHuman) => return Ok(Some(self.inner.pending(Awaited::Run(self.id)).await?)),
                Some(RunStatus::Running) if !self.over => {}
                _ => return Ok(None),
            }
            self.next().await;
        }
    }

    /// Cancels the run. If it is over, nothing changes.
    pub async fn cancel(&self, reason: Option<String>) -> Result<(), RunError> {
        let by = self.inner.requester();
        let operation = Operation::Run { run: self.id, input: Box::new(Input::Cancel { by, reason }) };
        match self.inner.commit(operation).await {
            Ok(_) | Err(CommitError::Refused(Refusal::RunOver)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for the end of the run.
    pub async fn finished(mut self) -> Result<Finished, RunError> {
        while self.next().await.is_some() {}
        let gone = || crate::store::Error::Stored(format!("there is no run {}", self.id));
        let state = self.inner.store.run(self.id).await?.ok_or_else(gone)?;
        let reviews = self.inner.store.run_reviews(self.id).await?;
        let compiled = self.inner.store.compiled(&state.flow, state.version).await?.ok_or_else(gone)?;
        let steps = self.inner.store.steps(self.id).await?;
        let run = engine::shown_run(Some(&compiled), &state);
        let report = engine::report(&run.summary, run.output.clone(), steps, reviews, self.inner.clock.now());
        match run.summary.status {
            RunStatus::Completed => Ok(Finished { output: run.output.unwrap_or_default(), report }),
            RunStatus::Cancelled => Err(RunError::Cancelled { reason: run.cancel_reason, report: Box::new(report) }),
            RunStatus::Failed => {
                let failure = run.summary.error.unwrap_or_else(|| shared::error::FlowError {
                    code: FlowCode::FlowInvalid,
                    message: "the run failed".to_owned(),
                    node: None,
                });
                Err(RunError::ended(failure, report))
            }
            RunStatus::Running | RunStatus::WaitingForHuman => {
                Err(match self.inner.take_undecided(Awaited::Run(self.id)) {
                    Some((review, why)) => RunError::Undecided { review, why },
                    None => RunError::Commit(CommitError::Unavailable(
                        "countersign was stopped before the run ended".to_owned(),
                    )),
                })
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.inner.forget(Awaited::Run(self.id));
    }
}
