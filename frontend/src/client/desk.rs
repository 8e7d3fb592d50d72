//! What a person is doing at the desk: what they have typed and not sent, and the decisions that are under way. Both
//! outlive the page that shows a review.

use std::sync::Arc;

use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::error::Mistake;
use shared::id::ReviewId;
use shared::review::Review;
use shared::time::Timestamp;

use super::http::Api;
use super::live::Live;
use super::notifier::Notifier;
use super::{http, storage};
use crate::state::drafts::{Draft, Drafts, STORAGE_KEY};
use crate::state::outbox::{Outbox, Sending, Stage, UNDO};
use crate::state::verdict::{self, Intent};

/// Drafts and decisions under way. Cheap to copy into closures.
#[derive(Clone, Copy)]
pub struct Desk {
    /// What was typed.
    pub drafts: RwSignal<Drafts>,
    /// What is on its way.
    pub outbox: RwSignal<Outbox>,
    live: Live,
    api: Api,
    notifier: Notifier,
}

impl Desk {
    /// A desk with the drafts that this browser has kept.
    pub fn new(api: Api, live: Live, notifier: Notifier) -> Self {
        let drafts = RwSignal::new(storage::read::<Drafts>(STORAGE_KEY).unwrap_or_default());
        let desk = Self { drafts, outbox: RwSignal::new(Outbox::default()), live, api, notifier };
        // Held decisions are sent when the page is left: what somebody decided is not lost with a closed tab.
        let leave = window_event_listener_untyped("pagehide", move |_| desk.send_held(true));
        std::mem::forget(leave);
        desk
    }

    /// The desk of the page.
    pub fn expect() -> Self {
        expect_context()
    }

    /// What was typed for a review. Follows it.
    pub fn draft(self, id: ReviewId) -> Draft {
        self.drafts.with(|drafts| drafts.get(id).cloned().unwrap_or_default())
    }

    /// What was typed for a review, now.
    pub fn draft_now(self, id: ReviewId) -> Draft {
        self.drafts.with_untracked(|drafts| drafts.get(id).cloned().unwrap_or_default())
    }

    /// Changes what was typed for a review, and keeps it.
    pub fn write(self, review: &Review, change: impl FnOnce(&mut Draft)) {
        let now = self.live.server_now();
        self.drafts.update(|drafts| drafts.change(review.id, review.revision, now, change));
        self.keep();
    }

    /// Throws away what was typed for a review.
    pub fn discard(self, id: ReviewId) {
        self.drafts.update(|drafts| drafts.forget(id));
        self.keep();
    }

    /// Sends what is held, and forgets everything: the person logs out.
    pub fn clear(self) {
        self.send_held(true);
        self.drafts.set(Drafts::default());
        self.outbox.set(Outbox::default());
        storage::remove(STORAGE_KEY);
    }

    fn keep(self) {
        self.drafts.with_untracked(|drafts| storage::write(STORAGE_KEY, drafts));
    }

    /// Decides: holds the decision back for a moment, then sends it. Or every reason why it cannot be sent.
    pub fn decide(self, review: &Arc<Review>, intent: &Intent) -> Result<(), Vec<Mistake>> {
        let draft = self.draft_now(review.id);
        let request = verdict::request(review, &draft, intent)?;
        let until = Timestamp(self.live.server_now().0 + UNDO);
        let sending = Sending {
            review: Arc::clone(review),
            request,
            key: super::key(),
            says: verdict::says(review, &draft, intent),
            stage: Stage::Held(until),
        };
        if self.outbox.try_update(|outbox| outbox.hold(sending)) == Some(true) {
            spawn_local(async move {
                gloo_timers::future::TimeoutFuture::new(u32::try_from(UNDO / 1000).unwrap_or(0) + 20).await;
                let now = self.live.server_now();
                // The server's clock may have been moved meanwhile; the wait is over all the same.
                let due = self.outbox.try_update(|outbox| outbox.take_due(Some(now.max(until)))).unwrap_or_default();
                for sending in due {
                    self.send(sending, false);
                }
            });
        }
        Ok(())
    }

    /// Takes back the decision on a review, or without one the newest, where it was not sent yet. Which one it was.
    pub fn undo(self, id: Option<ReviewId>) -> Option<ReviewId> {
        let newest = || self.outbox.with_untracked(|outbox| outbox.newest_held().map(|sending| sending.review.id));
        let id = id.or_else(newest)?;
        self.outbox.try_update(|outbox| outbox.undo(id)).flatten().map(|sending| sending.review.id)
    }

    /// Sends a held or unsent decision at once.
    pub fn send_now(self, id: ReviewId) {
        if let Some(sending) = self.outbox.try_update(|outbox| outbox.take(id)).flatten() {
            self.send(sending, false);
        }
    }

    /// Sends all held decisions at once; `leaving`: the page is being closed.
    pub fn send_held(self, leaving: bool) {
        let due = self.outbox.try_update(|outbox| outbox.take_due(None)).unwrap_or_default();
        for sending in due {
            self.send(sending, leaving);
        }
    }

    fn send(self, sending: Sending, leaving: bool) {
        let id = sending.review.id;
        if leaving {
            http::send_on_leaving(&format!("/api/v1/reviews/{id}/decisions"), &sending.request, &sending.key);
            return;
        }
        spawn_local(async move {
            let answer = self.api.decide(id, &sending.request, Some(&sending.key)).await;
            let now = self.live.server_now();
            if let Ok(decided) = &answer {
                self.discard(id);
                self.live.inbox.update(|inbox| inbox.put(decided.review.clone(), now));
            }
            if let Err(problem) = &answer {
                // The pane tells what became of it, where it is open.
                if window().location().pathname().is_ok_and(|path| !path.ends_with(&id.to_string())) {
                    self.notifier.bad(format!("{}: your decision was not accepted. {problem}", sending.review.title));
                }
                if let Some(review) = &problem.review {
                    self.live.inbox.update(|inbox| inbox.put((**review).clone(), now));
                }
            }
            let votes = answer.as_ref().is_ok_and(|decided| decided.review.is_pending());
            self.outbox.update(|outbox| {
                outbox.answered(id, &sending.key, answer.as_ref().map_err(Clone::clone), now);
                // A vote stands at the review from now on, and can be changed.
                if votes {
                    outbox.dismiss(id);
                }
            });
        });
    }
}
