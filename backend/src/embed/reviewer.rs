//! The reviewers that are asked when a run stops for approval.

use std::sync::Arc;

use async_trait::async_trait;
use shared::error::Mistake;
use shared::review::Review;
use tokio::sync::Mutex;

use super::choice::{Choice, Declined, IntoChoice};

/// A reviewer, which decides reviews: an async function, or a more complex one, such as a terminal.
///
/// Meanwhile, the run waits on disk. The future is dropped if someone else or a timer resolves the review, and the
/// reviewer is asked again if the content changes.
#[async_trait]
pub trait Reviewer: Send + Sync + 'static {
    /// Decides a review. `Err`: it decides nothing, and the program that waits for the run gets the reason.
    async fn review(&self, review: &Review) -> Result<Choice, Declined>;

    /// Handles a choice that was not valid. `Ok`: it is asked again. By default, it is not.
    async fn refused(&self, review: &Review, mistakes: &[Mistake]) -> Result<(), Declined> {
        let _ = review;
        Err(mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ").into())
    }

    /// Returns the shared lock of reviewers that can answer only one question at a time, such as people at one
    /// terminal. It is held from a question until its answer is committed, and questions are asked in the order in
    /// which they arose. So an answer never goes to a question that the previous answer has made unnecessary.
    fn turn(&self) -> Option<Arc<Mutex<()>>> {
        None
    }
}

/// Returns a function as a reviewer, for [`Options::person`](super::Options::person).
pub fn reviewer_fn<F, A, C>(function: F) -> Arc<dyn Reviewer>
where
    F: Fn(Review) -> A + Send + Sync + 'static,
    A: Future<Output = C> + Send + 'static,
    C: IntoChoice + 'static,
{
    Arc::new(ByFunction(function))
}

struct ByFunction<F>(F);

#[async_trait]
impl<F, A, C> Reviewer for ByFunction<F>
where
    F: Fn(Review) -> A + Send + Sync + 'static,
    A: Future<Output = C> + Send + 'static,
    C: IntoChoice + 'static,
{
    async fn review(&self, review: &Review) -> Result<Choice, Declined> {
        (self.0)(review.clone()).await.into_choice()
    }
}
