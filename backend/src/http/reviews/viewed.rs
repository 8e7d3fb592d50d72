//! Views of reviews: the audit log records the first view of each person for each revision, and apart from it the first
//! one by their tokens: what a program reads, its person may never have seen.

use std::collections::HashSet;
use std::time::Duration;

use axum::http::{HeaderMap, Method};
use parking_lot::Mutex;
use shared::access::{Act, access};
use shared::id::ReviewId;
use shared::log::ReviewViewed;
use shared::review::Review;

use crate::engine::Input;
use crate::http::Caller;
use crate::rate_limit::LimitHolder;
use crate::store::{Change, IdempotencyKey, Operation};

/// The number of views at which the memory is cleared. The store recognises the repetitions that follow.
const REMEMBERED: usize = 10_000;
/// How long a response waits for the view to be recorded.
const TIMEOUT: Duration = Duration::from_millis(500);

/// The views that this process has recorded recently: the person or their tokens, the review and its revision.
#[derive(Debug, Default)]
pub(in crate::http) struct ViewedReviews(Mutex<HashSet<(LimitHolder, ReviewId, u32)>>);

impl ViewedReviews {
    /// Remembers a view, and returns whether it was not remembered before.
    fn is_first(&self, view: (LimitHolder, ReviewId, u32)) -> bool {
        let mut views = self.0.lock();
        if views.len() >= REMEMBERED {
            views.clear();
        }
        views.insert(view)
    }

    /// Forgets a view that could not be recorded, so that the next one is recorded instead.
    fn forget(&self, view: &(LimitHolder, ReviewId, u32)) {
        self.0.lock().remove(view);
    }
}

/// Whether the response to this request shows the caller a review. `HEAD`, which handlers of `GET` answer too, has no
/// body. Browsers send the cookie of a session with a link on another site, so what such a link opens says nothing about
/// its person.
pub(super) fn shows(caller: &Caller, method: &Method, headers: &HeaderMap) -> bool {
    let is_foreign = headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site");
    method == Method::GET && (caller.principal().token || !is_foreign)
}

/// Records that a person who may decide a pending review, or a token of theirs, has opened it, as it was read for them.
/// Errors are only logged. The idempotency key ensures that each view is recorded once across servers and restarts.
pub(super) async fn record(caller: &Caller, review: &Review) {
    let principal = caller.principal();
    let counts = review.is_pending() && access(principal, Act::Decide(review)).is_allowed();
    let view = (LimitHolder::of(principal), review.id, review.revision);
    if !counts || !caller.state.viewed_reviews.is_first(view.clone()) {
        return;
    }
    let key = IdempotencyKey {
        scope: format!("{} {}", principal.username, if principal.token { "VIEW BY TOKEN" } else { "VIEW" }),
        key: format!("{}:{}", review.id, review.revision),
        body: [0; 32],
    };
    let seen = Some(ReviewViewed { token: principal.token, ..ReviewViewed::of(review) });
    let input = Box::new(Input::Viewed { review: review.id, by: principal.clone(), seen });
    let operation = Operation::Review { review: review.id, input };
    let change = Change { by: Some(caller.identity.actor()), key: Some(key), operation };
    let state = caller.state.clone();
    let recording = tokio::spawn(async move {
        if let Err(error) = state.store.commit(change).await {
            tracing::debug!(%error, "a view of a review could not be recorded");
            state.viewed_reviews.forget(&view);
        }
    });
    // Waits for a moment, so that the view usually precedes the decision in the log.
    let _ = tokio::time::timeout(TIMEOUT, recording).await;
}
