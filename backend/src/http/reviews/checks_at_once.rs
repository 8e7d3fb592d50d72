//! Limits for concurrent checks of decisions, per person, for all tokens of a person, and in total. A check may ask
//! programs for a while, and holds a connection to each of them. Further checks are refused with `429` and do not queue.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use shared::error::Problem;
use shared::id::ReviewId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::problem::too_many;
use crate::rate_limit::LimitHolder;

/// The most concurrent checks of all people and tokens.
const MAX_IN_ALL: usize = 16;
/// The most concurrent checks of one person, and of all their tokens.
const MAX_EACH: usize = 2;

#[derive(Debug, Clone)]
pub(in crate::http) struct ChecksAtOnce {
    free: Arc<Semaphore>,
    by_holder: Arc<Mutex<HashMap<LimitHolder, Vec<Slot>>>>,
}

impl Default for ChecksAtOnce {
    fn default() -> Self {
        Self { free: Arc::new(Semaphore::new(MAX_IN_ALL)), by_holder: Arc::default() }
    }
}

/// The slot of a running check.
#[derive(Debug)]
struct Slot {
    review: ReviewId,
    permit: OwnedSemaphorePermit,
    replace: oneshot::Sender<()>,
}

/// A running check, which gives its slot back when it is dropped.
#[derive(Debug)]
pub(super) struct RunningCheck {
    replaced: oneshot::Receiver<()>,
    holder: LimitHolder,
    by_holder: Arc<Mutex<HashMap<LimitHolder, Vec<Slot>>>>,
}

impl ChecksAtOnce {
    /// Begins a check, or refuses it with `429`. A running check of the same holder and review is replaced, because its
    /// answer is outdated.
    pub(super) fn begin(&self, holder: LimitHolder, review: ReviewId) -> Result<RunningCheck, Problem> {
        let mut by_holder = self.by_holder.lock();
        let slots = by_holder.entry(holder.clone()).or_default();
        slots.retain(|slot| !slot.replace.is_closed());
        let permit = if let Some(at) = slots.iter().position(|slot| slot.review == review) {
            let Slot { permit, replace, .. } = slots.swap_remove(at);
            let _ = replace.send(());
            Some(permit)
        } else if slots.len() >= MAX_EACH {
            return Err(too_many(format!("{MAX_EACH} checks of yours are being made already")));
        } else {
            Arc::clone(&self.free).try_acquire_owned().ok()
        };
        let Some(permit) = permit else {
            if slots.is_empty() {
                by_holder.remove(&holder);
            }
            return Err(too_many(format!("{MAX_IN_ALL} checks are being made already")));
        };
        let (replace, replaced) = oneshot::channel();
        slots.push(Slot { review, permit, replace });
        Ok(RunningCheck { replaced, holder, by_holder: Arc::clone(&self.by_holder) })
    }
}

impl RunningCheck {
    /// Waits until a newer check replaces this one, and returns the problem to respond with.
    pub async fn replaced(&mut self) -> Problem {
        // While `self` exists, the slot is only removed for a newer check.
        let _ = (&mut self.replaced).await;
        too_many("a newer check of this review took the place of this one")
    }
}

impl Drop for RunningCheck {
    fn drop(&mut self) {
        self.replaced.close();
        let mut by_holder = self.by_holder.lock();
        if let Some(slots) = by_holder.get_mut(&self.holder) {
            slots.retain(|slot| !slot.replace.is_closed());
            if slots.is_empty() {
                by_holder.remove(&self.holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use shared::error::Code;
    use uuid::Uuid;

    use super::*;

    fn person(name: usize) -> LimitHolder {
        LimitHolder::Person(format!("person{name}").parse().unwrap())
    }

    #[tokio::test]
    async fn the_newest_check_of_a_review_takes_the_place_of_the_one_before() {
        let (checks, ana) = (ChecksAtOnce::default(), person(0));
        let reviews = [1, 2, 3].map(|id| ReviewId(Uuid::from_u128(id)));
        let mut first = checks.begin(ana.clone(), reviews[0]).unwrap();
        let _second = checks.begin(ana.clone(), reviews[1]).unwrap();
        let refused = checks.begin(ana.clone(), reviews[2]).unwrap_err();
        assert_eq!((refused.code, refused.retry_after), (Code::TooManyRequests, Some(1)));
        let newer = checks.begin(ana.clone(), reviews[0]).unwrap();
        assert_eq!(first.replaced().await.code, Code::TooManyRequests);
        drop(first);
        assert!(checks.begin(ana.clone(), reviews[2]).is_err(), "the newer one counts");
        let tokens = LimitHolder::TokensOf("person0".parse().unwrap());
        assert!(checks.begin(tokens, reviews[0]).is_ok(), "the tokens of a person take no place of theirs");
        drop(newer);
        assert!(checks.begin(ana.clone(), reviews[2]).is_ok(), "what is over gives its place back");
    }

    #[test]
    fn all_checks_together_are_bounded_and_each_gives_its_place_back() {
        let checks = ChecksAtOnce::default();
        let review = ReviewId(Uuid::nil());
        let running: Vec<_> = (0..MAX_IN_ALL).map(|name| checks.begin(person(name), review).unwrap()).collect();
        assert!(checks.begin(person(MAX_IN_ALL), review).is_err());
        let newer = checks.begin(person(0), review).unwrap();
        drop(running);
        assert_eq!((checks.free.available_permits(), checks.by_holder.lock().len()), (MAX_IN_ALL - 1, 1));
        drop(newer);
        assert_eq!((checks.free.available_permits(), checks.by_holder.lock().len()), (MAX_IN_ALL, 0));
    }
}
