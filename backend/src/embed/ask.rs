//! Questions of the program that no flow asks, and the wait for their answers.

use shared::error::Mistake;
use shared::id::{ReviewId, RunId};
use shared::new_review::NewReview;
use shared::review::Review;
use tokio::sync::broadcast::error::RecvError;

use super::{Awaited, Countersign, Inner, News, RunError};
use crate::clock::Moment;
use crate::engine::Carrier;
use crate::store::{CommitError, Committed, Operation};

impl Countersign {
    /// Asks people a question without a flow, as `POST /api/v1/reviews` does, and returns its review without waiting for
    /// the answer. The question takes no `callback_url`.
    pub async fn ask(&self, question: &NewReview) -> Result<Review, RunError> {
        if question.callback_url.is_some() {
            let why = "only a server posts answers; leave it out, and wait with `answered`";
            return Err(RunError::Invalid(vec![Mistake::new("/callback_url", "invalid", why)]));
        }
        let question = Box::new(Carrier::of(question).map_err(RunError::Invalid)?);
        let run = RunId(Moment::of(&*self.inner.clock).ids().uuid());
        match self.inner.commit(Operation::Ask { run, question }).await? {
            Committed::Review { review } => Ok(*review),
            _ => Err(RunError::Commit(CommitError::NotFound)),
        }
    }

    /// Waits until the review of a question that [`ask`](Self::ask) asked is over, also in an earlier start of the
    /// program, and returns it: `resolution.answer` has the answer, unless there is none. Reviewers that have declined to
    /// decide it are asked again.
    pub async fn answered(&self, question: ReviewId) -> Result<Review, RunError> {
        // Before it is read: nothing that happens meanwhile is missed.
        let mut news = self.inner.news.subscribe();
        let watch = Watch::begin(&self.inner, Awaited::Review(question));
        // It is no failure if nobody listens.
        let _ = self.inner.news.send(News::Attached(watch.awaited));
        loop {
            let review = self.inner.store.review(question).await?;
            let review = review.ok_or(RunError::Commit(CommitError::NotFound))?;
            if !review.is_pending() {
                return Ok(review);
            }
            if let Some((review, why)) = self.inner.take_undecided(watch.awaited) {
                return Err(RunError::Undecided { review, why });
            }
            loop {
                match news.recv().await {
                    Ok(News::Entry(entry)) if entry.event.review().is_none_or(|review| review.id != question) => {}
                    Ok(News::Attached(_)) => {}
                    Ok(News::Entry(_) | News::Recheck) | Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => {
                        let why = "countersign was stopped before the answer".to_owned();
                        return Err(RunError::Commit(CommitError::Unavailable(why)));
                    }
                }
            }
        }
    }
}

/// An entry in [`Inner::watched`], which is removed when this is dropped.
struct Watch<'a> {
    inner: &'a Inner,
    awaited: Awaited,
}

impl<'a> Watch<'a> {
    fn begin(inner: &'a Inner, awaited: Awaited) -> Self {
        inner.watch(awaited);
        Self { inner, awaited }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.inner.forget(self.awaited);
    }
}
