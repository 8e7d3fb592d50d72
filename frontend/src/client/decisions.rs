//! Decisions of the person who is logged in: held for a moment, then sent. Those that could not be sent are kept in the
//! browser until they are sent again or taken back.

use std::pin::pin;
use std::sync::Arc;

use futures::future::{Either, join_all, select};
use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::error::{Code, Mistake, Problem};
use shared::id::ReviewId;
use shared::review::Review;

use super::http::REQUEST_TIMEOUT;
use super::workspace::Workspace;
use super::{locks, storage};
use crate::state::drafts::Draft;
use crate::state::inbox::address::SELECTED;
use crate::state::outbox::{self, Outbox, Sending, held_until};
use crate::state::verdict::{self, Intent};

/// The interval at which [`Workspace::finish`] checks whether decisions were answered, in milliseconds.
const LOOK_AFTER: u32 = 100;
/// The message of [`Workspace::finish`] if another tab does not come to an end.
const OTHERS_SEND: &str = "Another window is still sending a decision. Close it, or log out again in a moment.";
/// How long a page that is being closed, or another one, may take to send a decision, in milliseconds.
const ARRIVES_WITHIN: u32 = 2000;

impl Workspace {
    /// Decides a review: holds the decision for a moment, then sends it. Fails with every reason why it cannot be sent.
    pub fn decide(self, review: &Arc<Review>, intent: &Intent) -> Result<(), Vec<Mistake>> {
        self.decide_with(review, &self.draft_now(review.id), intent)
    }

    /// Like [`Self::decide`], with a draft that is not kept.
    pub fn decide_with(self, review: &Review, draft: &Draft, intent: &Intent) -> Result<(), Vec<Mistake>> {
        let request = verdict::request(review, draft, intent)?;
        let now = self.live.server_now();
        let fits = self.outbox.with_untracked(|outbox| outbox.fits(&request));
        // A decision that is too large to be sent from a closing page is not held.
        let until = if fits { held_until(review, now) } else { now };
        let says = verdict::says(review, draft, intent);
        let sending = Sending::held(review, request, super::key(), says, until);
        if self.outbox.try_update(|outbox| outbox.hold(sending)) == Some(true) {
            spawn_local(async move {
                TimeoutFuture::new(u32::try_from((until.0 - now.0) / 1000).unwrap_or(0)).await;
                let now = self.live.server_now();
                // Even if the server's clock was moved meanwhile, the wait is over.
                let due = self.outbox.try_update(|outbox| outbox.take_due(Some(now.max(until)))).unwrap_or_default();
                self.send_all(due).await;
            });
        }
        Ok(())
    }

    /// Takes back the decision on a review if it was not sent yet, and returns the message for it.
    pub fn undo(self, id: ReviewId) -> Option<String> {
        self.outbox
            .try_update(|outbox| Some(outbox::undone(&outbox.undo(id)?.title, outbox.unanswered().count())))
            .flatten()
    }

    /// Drops a decision that was answered or could not be sent, so that another one can be made.
    pub fn dismiss(self, id: ReviewId) {
        self.outbox.update(|outbox| outbox.dismiss(id));
        self.keep_decision(id);
    }

    /// Gives up an unsent decision on a review that has ended or can no longer be seen.
    pub fn overtake(self, id: ReviewId) {
        if self.outbox.try_update(|outbox| outbox.overtake(id)) == Some(true) {
            self.keep_decision(id);
        }
    }

    /// Takes over a decision that the browser has stored, unless the review shows that it has arrived: a page that is
    /// being closed does not learn of that.
    pub(super) fn recall(self, id: ReviewId) {
        let owner = self.owner();
        spawn_local(async move {
            // The page may have been closed a moment ago, with the decision still on its way.
            for wait in [0, ARRIVES_WITHIN] {
                TimeoutFuture::new(wait).await;
                let review = self.api.unviewed_review(id).await;
                let Some(owner) = owner.as_ref().filter(|owner| self.owner().as_ref() == Some(owner)) else { return };
                // It may have been settled meanwhile.
                let Some(kept) = storage::text(&outbox::storage_key(owner, id)) else { return };
                self.outbox.update(|outbox| outbox.restore(id, &kept));
                if review.is_ok_and(|review| self.settle(&review)) {
                    return;
                }
            }
        });
    }

    /// Drops an unsent decision if its review shows that it has arrived. Returns whether it did.
    pub(super) fn settle(self, review: &Review) -> bool {
        let Some(owner) = self.owner() else { return false };
        let mut has_arrived = false;
        self.outbox.maybe_update(|outbox| {
            has_arrived = outbox.arrive(review, &owner);
            has_arrived
        });
        if has_arrived {
            self.drafts.update(|drafts| drafts.forget_decision(review.id));
            self.keep([review.id.into()]);
            self.keep_decision(review.id);
        }
        has_arrived
    }

    /// Stores an unanswered decision in the browser, or removes it from there.
    pub(super) fn keep_decision(self, id: ReviewId) {
        let Some(key) = self.owner.with_value(|owner| Some(outbox::storage_key(owner.as_ref()?, id))) else { return };
        let Some(kept) = self.outbox.with_untracked(|outbox| outbox.stored(id)) else { return storage::remove(&key) };
        if !storage::write_text(&key, &kept) {
            self.notifier.bad("This decision is too large for this browser to keep. Reloading the page would lose it.");
        }
    }

    /// Sends a held or unsent decision at once.
    pub fn send_now(self, id: ReviewId) {
        if let Some(sending) = self.outbox.try_update(|outbox| outbox.take(id)).flatten() {
            spawn_local(async move {
                self.send(sending).await;
            });
        }
    }

    /// Sends all held decisions at once.
    pub async fn send_held(self) {
        let due = self.outbox.try_update(|outbox| outbox.take_due(None)).unwrap_or_default();
        self.send_all(due).await;
    }

    /// Sends held decisions, those of other tabs too, and waits for the answers to all that are on their way, before the
    /// person logs out. Returns whether all of them have arrived; fails with a message if another tab takes too long.
    pub async fn finish(self) -> Result<bool, &'static str> {
        // What another tab could not send is in the browser's storage at once, and in the outbox soon.
        let stored = move || {
            let owner = self.owner()?;
            let keys = storage::keys(&outbox::storage_prefix(&owner)).into_iter();
            Some(keys.filter_map(|key| outbox::review_of_storage_key(&key, &owner)).collect::<Vec<_>>())
        };
        let unsent = move || {
            let mut unsent = self.outbox.with_untracked(Outbox::unsent);
            unsent.extend(stored().unwrap_or_default());
            unsent
        };
        let before = unsent();
        let login = self.login();
        let unanswered = move || self.outbox.with_untracked(|outbox| outbox.unanswered().next().is_some());
        self.announce_log_out();
        loop {
            self.send_held().await;
            while unanswered() {
                TimeoutFuture::new(LOOK_AFTER).await;
            }
            let Some(owner) = self.owner() else { return Ok(false) };
            let name = outbox::lock_name(&owner);
            let (free, patience) = (pin!(locks::wait_until_free(&name)), TimeoutFuture::new(REQUEST_TIMEOUT));
            match select(free, patience).await {
                Either::Left((Some(()), _)) => {}
                // Without locks, nobody knows of other tabs. They have been told, so they send what they hold.
                Either::Left((None, _)) => TimeoutFuture::new(ARRIVES_WITHIN).await,
                Either::Right(_) => return Err(OTHERS_SEND),
            }
            // Another person may have logged in, whom nobody asked whether to log out.
            if self.login() != login {
                return Ok(false);
            }
            // The person may have decided something meanwhile.
            if !unanswered() {
                break;
            }
        }
        Ok(unsent().iter().all(|id| before.contains(id)))
    }

    /// Sends decisions concurrently.
    async fn send_all(self, due: Vec<Sending>) {
        join_all(due.into_iter().map(|sending| self.send(sending))).await;
    }

    async fn send(self, sending: Sending) {
        let (id, login) = (sending.id, self.login());
        let kept = sending.stored();
        let answer = match self.sender() {
            Some(_) => self.api.decide(id, &sending.request, Some(&sending.key)).await,
            // The session ended while the decision was held; it waits until its author logs in again.
            None => Err(Problem::new(Code::Unauthenticated)),
        };
        let is_known = |outbox: &Outbox| outbox.get(id).is_some_and(|known| known.key == sending.key);
        // The person has logged out since, or somebody else has logged in. What did not arrive waits for its author.
        if self.owner() != login.0 || (self.login() != login && !self.outbox.with_untracked(is_known)) {
            if let (Err(problem), (Some(owner), _), Some(kept)) = (&answer, &login, &kept)
                && outbox::can_be_sent_again(problem)
            {
                storage::write_text(&outbox::storage_key(owner, id), kept);
                if self.owner().as_ref() == Some(owner) {
                    self.outbox.update(|outbox| outbox.restore(id, kept));
                }
            }
            return;
        }
        let now = self.live.server_now();
        if let Ok(decided) = &answer {
            self.drafts.update(|drafts| drafts.forget_decision(id));
            self.keep([id.into()]);
            self.live.inbox.update(|inbox| inbox.put(decided.review.clone(), now));
        }
        let votes = answer.as_ref().is_ok_and(|decided| decided.review.is_pending());
        let settled = self
            .outbox
            .try_update(|outbox| {
                outbox.answered(id, &sending.key, answer.as_ref().map_err(Clone::clone), now);
                // From now on the review shows the vote, which can be changed.
                if votes {
                    outbox.dismiss(id);
                }
                !outbox.is_unsent(id)
            })
            .unwrap_or(true);
        self.keep_decision(id);
        if let Err(problem) = &answer {
            let is_selected = || self.live.inbox.with_untracked(|inbox| inbox.is_selected(id));
            let is_shown = |path: String| path.ends_with(&id.to_string()) || (path == SELECTED && is_selected());
            // An open pane shows the outcome itself, and the login page shows that the session has ended.
            if problem.code != Code::Unauthenticated && window().location().pathname().is_ok_and(|path| !is_shown(path))
            {
                let became = if settled { "was not accepted" } else { "could not be sent" };
                self.notifier.bad(format!("{}: your decision {became}. {problem}", sending.title));
            }
            if let Some(review) = &problem.review {
                self.live.inbox.update(|inbox| inbox.put((**review).clone(), now));
            }
        }
    }
}
