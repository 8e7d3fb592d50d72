//! Deciding without being asked: the pending reviews of a run, a person's choice on them, and runs of an earlier start
//! of the program.

use std::sync::Arc;

use shared::decision::Via;
use shared::error::Mistake;
use shared::id::{RunId, Username};
use shared::review::Review;

use super::running::Running;
use super::{Awaited, Choice, Countersign, News, RunError};
use crate::engine::{Input, Refusal};
use crate::store::{self, Actor, Change, CommitError, Operation};

/// Why a choice was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum DecideError {
    /// The review was already decided, or its time was up; `resolution` has the outcome.
    #[error("the review is over: {}", .0.resolution.as_ref().map_or("", |resolution| resolution.outcome.as_str()))]
    Over(Box<Review>),
    /// The content has changed since; contains the current review.
    #[error("the content has changed; the review is now at revision {}", .0.revision)]
    Changed(Box<Review>),
    /// The person may not decide it.
    #[error("{0}")]
    Forbidden(String),
    /// The choice is not valid for the review.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<Mistake>),
    /// There is no such person, or no such review.
    #[error("there is no {0}")]
    NotFound(String),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The decision could not be stored.
    #[error(transparent)]
    Commit(CommitError),
}

impl Countersign {
    /// Returns the pending reviews of a run, oldest first, including handoffs, which remain when the run is over.
    pub async fn pending(&self, run: RunId) -> Result<Vec<Review>, RunError> {
        Ok(self.inner.pending(Awaited::Run(run)).await?)
    }

    /// Decides a review as it was shown. `by` is the name of a [`person`](super::Options::person), or of another user
    /// in the database; the same rules apply as everywhere.
    pub async fn decide(&self, review: &Review, choice: Choice, by: &str) -> Result<Review, DecideError> {
        let nobody = || DecideError::NotFound(format!("person `{by}`"));
        let username: Username = by.parse().map_err(|_| nobody())?;
        let known = self.inner.store.user(&username).await?.filter(|known| known.user.active).ok_or_else(nobody)?;
        let by = known.principal(None);
        let actor = Actor::of(by.clone());
        let request = choice.on(review).map_err(|mistake| DecideError::Invalid(vec![mistake]))?;
        let input = Input::decide(review.id, by, Via::Human, request);
        let operation = Operation::Review { review: review.id, input: Box::new(input) };
        let committed = self.inner.store.commit(Change { by: Some(actor), key: None, operation }).await;
        let gone = || DecideError::NotFound(format!("review {}", review.id));
        committed.map_err(|error| match error {
            CommitError::Refused(refusal) => match refusal.met() {
                Refusal::ReviewResolved(review) => DecideError::Over(review),
                Refusal::RevisionChanged(review) => DecideError::Changed(review),
                Refusal::Forbidden(why) => DecideError::Forbidden(why),
                Refusal::Invalid(mistakes) => DecideError::Invalid(mistakes),
                Refusal::NotFound => gone(),
                refusal => DecideError::Commit(CommitError::Refused(refusal)),
            },
            CommitError::NotFound => gone(),
            error => DecideError::Commit(error),
        })?;
        self.inner.store.review(review.id).await?.ok_or_else(gone)
    }

    /// Attaches to a run of an earlier start of the program, or of another program on the same database, if it exists.
    /// Reviewers that have declined to decide a review of it are asked again.
    pub async fn attach(&self, run: RunId) -> Result<Option<Running>, RunError> {
        // Before it is read: nothing that happens meanwhile is missed.
        let news = self.inner.news.subscribe();
        let Some(state) = self.inner.store.run(run).await? else { return Ok(None) };
        self.inner.watch(Awaited::Run(run));
        // It is no failure if nobody listens.
        let _ = self.inner.news.send(News::Attached(Awaited::Run(run)));
        let running = Running::new(run, Arc::clone(&self.inner), news);
        Ok(Some(if crate::engine::summary(&state).status.is_over() { running.ended() } else { running }))
    }
}
