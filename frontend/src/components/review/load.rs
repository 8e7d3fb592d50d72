//! Loads a review that a person opens, and keeps it up to date.

use leptos::prelude::*;
use shared::error::{Code, Problem};
use shared::id::ReviewId;

use crate::client::{Live, Workspace, use_api};
use crate::state::inbox::InboxRow;

/// A review that is being read. Cheap to copy into closures.
#[derive(Clone, Copy)]
pub struct OpenedReview {
    /// The review; `None` until it is loaded, unless the list has it.
    pub row: Memo<Option<InboxRow>>,
    pub problem: Memo<Option<Problem>>,
    load: LocalResource<Result<(), Problem>>,
}

impl OpenedReview {
    /// Loads a review while the calling component exists. It is loaded even if the list has it, since the server records
    /// who has opened a review.
    pub fn new(id: ReviewId) -> Self {
        let live = expect_context::<Live>();
        let api = use_api();
        let workspace = expect_context::<Workspace>();
        let row = Memo::new(move |_| live.inbox.with(|inbox| inbox.get(id).cloned()));
        // What is loaded again is compared with what the person has seen, and they say when they have read it.
        let opened = StoredValue::new(false);
        let load = LocalResource::new(move || async move {
            let review = if opened.get_value() { api.unviewed_review(id).await } else { api.review(id).await };
            review.map(|review| {
                // The page may have been left.
                opened.try_update_value(|opened| *opened = true);
                live.inbox.update(|inbox| inbox.read(review, live.server_now()));
            })
        });
        let problem = Memo::new(move |_| load.get().and_then(Result::err));
        // Messages do not say who has voted in secret, and the person may have voted in another tab or program.
        let secret = Memo::new(move |_| {
            row.with(|row| row.as_ref().filter(|row| row.review.is_secret()).map(|row| row.review.version))
        });
        Effect::new(move |before: Option<Option<u64>>| {
            let now = secret.get();
            if before.flatten().is_some() && now.is_some() && before.flatten() != now {
                load.refetch();
            }
            now
        });
        // After a lost connection the review is read again; until then the old content stays on screen.
        live.on_return(move || load.refetch());
        Effect::new(move |_| {
            let is_gone = |problem: &Problem| matches!(problem.code, Code::NotFound | Code::RunArchived);
            if problem.with(|problem| problem.as_ref().is_some_and(is_gone)) {
                live.inbox.update(|inbox| inbox.lose(id, live.server_now()));
                workspace.overtake(id);
            }
        });
        Self { row, problem, load }
    }

    pub fn again(self) {
        self.load.refetch();
    }
}
