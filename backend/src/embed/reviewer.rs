//! Who is asked when a run stops for somebody.

use std::sync::Arc;

use async_trait::async_trait;
use shared::error::Mistake;
use shared::review::Review;
use tokio::sync::Mutex;

use super::choice::{Choice, Declined, IntoChoice};

/// Somebody who decides reviews: an async function, or something with more to it, such as a terminal.
///
/// While it takes its time, the run waits on disk. It is dropped where it waits when the review is resolved by somebody
/// else or by its timer, and asked anew when what is shown has changed.
#[async_trait]
pub trait Reviewer: Send + Sync + 'static {
    /// Decides. `Err`: it decides nothing, and whoever waits for the run is told why.
    async fn review(&self, review: &Review) -> Result<Choice, Declined>;

    /// What it chose does not fit what was asked. `Ok`: it is asked again. By default it is not.
    async fn refused(&self, review: &Review, mistakes: &[Mistake]) -> Result<(), Declined> {
        let _ = review;
        Err(mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ").into())
    }

    /// For reviewers that can be asked one thing at a time, such as all who sit at one terminal: what they share. It is
    /// held from a question until its answer is committed, and questions come in the order in which they arose. So an
    /// answer is never taken by a question that the one before it has made superfluous.
    fn turn(&self) -> Option<Arc<Mutex<()>>> {
        None
    }
}

/// A function as a reviewer.
pub(super) struct ByFunction<F>(pub F);

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
