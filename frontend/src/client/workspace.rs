//! What a person is working on: unsent drafts, and the decisions on their way, which `decisions` sends. Both outlive
//! the page that shows a review, and belong to the person who is logged in; nobody else at this browser sees or sends
//! them.

use std::collections::{BTreeSet, HashMap};

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::JsonMap;
use shared::id::{ReviewId, Username};
use shared::review::Review;
use shared::time::Timestamp;

use super::http::Api;
use super::live::{Connection, Live};
use super::locks::{self, SharedLock};
use super::notifier::Notifier;
use super::session::Session;
use super::{GlobalSignal, http, storage};
use crate::state::drafts::{Draft, DraftKey, Drafts, Edited, Form, storage_prefix};
use crate::state::inbox::{Inbox, InboxRow};
use crate::state::outbox::{self, Outbox};
use crate::state::saved_views;

/// The delay before typed text is stored, in milliseconds.
const KEEP_AFTER: u32 = 300;

/// The storage key under which a tab tells the others who is about to log out, so that they send their held decisions.
const LOGGING_OUT: &str = "countersign.logging-out";
/// The storage key under which a tab tells the others who has logged out.
const LOGGED_OUT: &str = "countersign.logged-out";

/// For each target, the body that its form sent last without an answer, and its idempotency key. Like a draft, it
/// outlives the form.
pub(super) type Unanswered = HashMap<String, (String, String)>;

/// Drafts and decisions in progress. Cheap to copy into closures.
#[derive(Clone, Copy)]
pub struct Workspace {
    pub drafts: GlobalSignal<Drafts>,
    pub outbox: GlobalSignal<Outbox>,
    /// Whether the person has logged out in another tab, which has discarded their drafts.
    pub left: GlobalSignal<bool>,
    pub(super) owner: StoredValue<Option<Username>>,
    /// The lock for which other tabs wait before the person logs out, while decisions of this one are unanswered.
    deciding: StoredValue<Option<SharedLock>, LocalStorage>,
    unkept: StoredValue<BTreeSet<DraftKey>>,
    pub(super) unanswered: StoredValue<Unanswered>,
    session: Session,
    pub(super) live: Live,
    pub(super) api: Api,
    pub(super) notifier: Notifier,
}

impl Workspace {
    /// Creates the workspace of the person who is logged in, with the drafts that this browser has stored for them.
    pub fn new(api: Api, session: Session, live: Live, notifier: Notifier) -> Self {
        let workspace = Self {
            drafts: GlobalSignal::new(Drafts::default()),
            outbox: GlobalSignal::new(Outbox::default()),
            left: GlobalSignal::new(false),
            owner: StoredValue::new(None),
            deciding: StoredValue::new_local(None),
            unkept: StoredValue::new(BTreeSet::new()),
            unanswered: StoredValue::new(Unanswered::new()),
            session,
            live,
            api,
            notifier,
        };
        Effect::new(move |_| {
            if let Some(me) = session.username() {
                workspace.enter(me);
            }
        });
        // Decisions that have arrived after all, or whose review somebody else has resolved, need not wait any longer.
        Effect::new(move |_| {
            for id in workspace.outbox.with(Outbox::waiting) {
                if live.inbox.with(|inbox| inbox.get(id).is_some_and(|row| workspace.settle(&row.review))) {
                    continue;
                }
                let is_over = |row: &InboxRow| row.gone || !row.review.is_pending();
                if live.inbox.with(|inbox| inbox.get(id).is_some_and(is_over)) {
                    workspace.overtake(id);
                }
            }
        });
        Effect::new(move |_| {
            if live.connection.get() == Connection::Open {
                workspace.outbox.maybe_update(Outbox::connect);
            }
        });
        // A tab in which the person logs out waits for the decisions of the others.
        let busy = Memo::new(move |_| workspace.outbox.with(|outbox| outbox.unanswered().next().is_some()));
        Effect::new(move |_| workspace.mark_busy(busy.get()));
        // Reviews and decisions that nobody looks at any more are dropped.
        Effect::new(move |_| {
            let now = live.now.get();
            let open = live.inbox.with_untracked(Inbox::open);
            workspace.outbox.maybe_update(|outbox| outbox.sweep(now, open));
            let kept = workspace.outbox.with_untracked(Outbox::reviews);
            if live.inbox.with_untracked(|inbox| inbox.needs_sweep(now, &kept)) {
                live.inbox.update(|inbox| inbox.sweep(now, &kept));
            }
        });
        // Held decisions are sent when the page is left, so that closing the tab does not lose them. A phone may end a
        // background page without an event.
        let closed = window_event_listener_untyped("pagehide", move |_| {
            workspace.save();
            let user = workspace.sender();
            workspace.outbox.with_untracked(|outbox| {
                for (sending, fits) in outbox.on_leaving() {
                    if let Some(user) = user.as_ref().filter(|_| fits) {
                        let path = format!("/api/v1/reviews/{}/decisions", sending.id);
                        http::send_on_leaving(&path, &sending.request, &sending.key, user.as_str());
                    }
                    // The page does not learn whether it arrives: the session may have ended unnoticed.
                    workspace.keep_decision(sending.id);
                }
            });
        });
        let hidden = window_event_listener_untyped("visibilitychange", move |_| {
            if document().hidden() {
                workspace.save();
                spawn_local(async move {
                    workspace.send_held().await;
                });
            }
        });
        // This tab shows what another tab has written.
        let other_tab = window_event_listener(leptos::ev::storage, move |event| {
            if let Some(key) = event.key() {
                workspace.take_over(&key, event.new_value().as_deref());
            }
        });
        std::mem::forget((closed, hidden, other_tab));
        workspace
    }

    /// Handles a login. Decisions in progress of another person are not sent in this person's name.
    fn enter(self, me: Username) {
        if self.owner.with_value(|owner| owner.as_ref() == Some(&me)) {
            return;
        }
        self.save();
        self.left.set(false);
        self.unanswered.set_value(Unanswered::new());
        for id in self.outbox.with_untracked(Outbox::reviews) {
            self.keep_decision(id);
        }
        let keys = storage::keys(&storage_prefix(&me)).into_iter();
        let kept: Vec<_> =
            keys.filter_map(|key| Some((DraftKey::of_storage_key(&key, &me)?, storage::text(&key)?))).collect();
        self.drafts.update(|drafts| drafts.replace(kept.iter().map(|(of, kept)| (of.clone(), kept.as_str()))));
        self.outbox.set(Outbox::default());
        self.owner.set_value(Some(me.clone()));
        for key in storage::keys(&outbox::storage_prefix(&me)) {
            if let Some(id) = outbox::review_of_storage_key(&key, &me) {
                self.recall(id);
            }
        }
    }

    /// Who is logged in, and the number of logins on this page.
    pub(super) fn login(self) -> (Option<Username>, u32) {
        (self.owner(), self.session.logins.get_value())
    }

    /// Returns the owner: the person who logged in last on this page and has not logged out.
    pub fn owner(self) -> Option<Username> {
        self.owner.get_value()
    }

    /// Returns the person in whose name decisions can be sent; `None` if the owner is not logged in now.
    pub(super) fn sender(self) -> Option<Username> {
        let owner = self.owner()?;
        self.session.me.with_untracked(|me| me.as_ref().is_some_and(|me| me.username == owner)).then_some(owner)
    }

    /// Reads the draft of a review by reference, and follows it: it changes at each key, and may be long.
    pub fn with_draft<U>(self, id: ReviewId, look: impl FnOnce(&Draft) -> U) -> U {
        self.drafts.with(|drafts| match drafts.review(id) {
            Some(draft) => look(draft),
            None => look(&Draft::default()),
        })
    }

    /// Returns the draft of a review without following it.
    pub fn draft_now(self, id: ReviewId) -> Draft {
        self.drafts.with_untracked(|drafts| drafts.review(id).cloned().unwrap_or_default())
    }

    /// Calls `follow` whenever drafts arrive that were not typed on this page, while the calling component exists, so
    /// that forms show what would be sent.
    pub fn on_taken_over(self, follow: impl Fn() + 'static) {
        let times = Memo::new(move |_| self.drafts.with(Drafts::taken_over));
        Effect::watch(move || times.get(), move |_, _, _| untrack(&follow), false);
    }

    /// Changes the draft of a review, and stores it.
    pub fn write(self, review: &Review, change: impl FnOnce(&mut Draft)) {
        let now = self.live.server_now();
        self.keep(self.drafts.try_update(|drafts| drafts.change(review, now, change)).unwrap_or_default());
    }

    /// Sets the draft of a version of a flow, and stores it; `None` after it was saved or discarded.
    pub fn write_flow(self, edited: &Edited, text: Option<String>) {
        self.note(|drafts, now| drafts.write_flow(edited, text, now));
    }

    /// Returns the draft of a form without following it; `None` if it was sent or never typed.
    pub fn form(self, of: &Form) -> Option<JsonMap> {
        self.drafts.with_untracked(|drafts| drafts.form(of).cloned())
    }

    /// Sets the draft of a form, and stores it; `None` after it was sent or cleared. `in_memory`: it may contain a
    /// password, so it disappears with the page.
    pub fn write_form(self, of: &Form, typed: Option<JsonMap>, in_memory: bool) {
        self.note(|drafts, now| drafts.write_form(of, typed, in_memory, now));
    }

    fn note(self, write: impl FnOnce(&mut Drafts, Timestamp) -> Vec<DraftKey>) {
        let now = self.live.server_now();
        let mut touched = Vec::new();
        self.drafts.maybe_update(|drafts| {
            touched = write(drafts, now);
            !touched.is_empty()
        });
        self.keep(touched);
    }

    /// Records that the person has seen the newest revision of a review, and keeps their draft.
    pub fn see(self, review: &Review) {
        self.drafts.update(|drafts| drafts.see(review));
        self.keep([review.id.into()]);
    }

    pub fn discard(self, id: ReviewId) {
        self.drafts.update(|drafts| drafts.forget_review(id));
        self.keep([id.into()]);
    }

    /// Drops everything that concerns the person, in the browser's storage and in other tabs too, because they log out.
    pub fn clear(self) {
        if let Some(owner) = self.forget() {
            tell_tabs(LOGGED_OUT, &owner);
            for prefix in [storage_prefix(&owner), outbox::storage_prefix(&owner)] {
                for key in storage::keys(&prefix) {
                    storage::remove(&key);
                }
            }
            storage::remove(&saved_views::storage_key(&owner));
            storage::remove(saved_views::FIRST_QUERY);
        }
    }

    /// Asks the other tabs of the person to send what they hold, before the person logs out.
    pub(super) fn announce_log_out(self) {
        if let Some(owner) = self.owner() {
            tell_tabs(LOGGING_OUT, &owner);
        }
    }

    /// Makes other tabs wait for this one before the person logs out, or no longer.
    fn mark_busy(self, busy: bool) {
        let name = self.owner.with_value(|owner| owner.as_ref().filter(|_| busy).map(outbox::lock_name));
        self.deciding.set_value(name.and_then(|name| locks::share(&name)));
    }

    /// Drops everything in memory. Returns whose it was.
    fn forget(self) -> Option<Username> {
        self.drafts.set(Drafts::default());
        self.outbox.set(Outbox::default());
        self.unkept.set_value(BTreeSet::new());
        self.unanswered.set_value(Unanswered::new());
        self.owner.try_update_value(Option::take).flatten()
    }

    /// Stores drafts after a short delay, not at each key press.
    pub(super) fn keep(self, touched: impl IntoIterator<Item = DraftKey>) {
        let waits = self.unkept.with_value(|unkept| !unkept.is_empty());
        self.unkept.update_value(|unkept| unkept.extend(touched));
        if !waits && self.unkept.with_value(|unkept| !unkept.is_empty()) {
            spawn_local(async move {
                TimeoutFuture::new(KEEP_AFTER).await;
                self.save();
            });
        }
    }

    fn save(self) {
        let unkept = self.unkept.try_update_value(std::mem::take).unwrap_or_default();
        let Some(owner) = self.owner.get_value() else { return };
        for of in unkept {
            let key = of.storage_key(&owner);
            let Some(kept) = self.drafts.with_untracked(|drafts| drafts.stored(&of)) else {
                storage::remove(&key);
                continue;
            };
            if !storage::write_text(&key, &kept) {
                self.notifier
                    .bad("This draft is too large for this browser to keep. Reloading the page would lose it.");
            }
        }
    }

    /// Takes over a change by another tab: to a draft, or to a stored decision. If the person has logged out there, what
    /// they typed here is gone, too.
    fn take_over(self, key: &str, value: Option<&str>) {
        let is_own = value.is_some() && value == self.owner().as_ref().map(Username::as_str);
        if key == LOGGING_OUT {
            if is_own {
                spawn_local(self.send_held());
            }
            return;
        }
        if key == LOGGED_OUT {
            if is_own {
                self.forget();
                self.left.set(true);
                if self.session.me.with_untracked(Option::is_some) {
                    self.session.signed_out.set(true);
                }
            }
            return;
        }
        let of = self.owner.with_value(|owner| DraftKey::of_storage_key(key, owner.as_ref()?));
        if let Some(of) = of {
            self.drafts.update(|drafts| drafts.take_over(of, value));
        }
        let decided = self.owner.with_value(|owner| outbox::review_of_storage_key(key, owner.as_ref()?));
        match (decided, value) {
            (Some(id), Some(_)) => self.recall(id),
            (Some(id), None) => self.outbox.update(|outbox| outbox.settle_elsewhere(id)),
            (None, _) => {}
        }
    }
}

/// Sends the other tabs of this browser an event about a person. Nothing needs to stay stored.
fn tell_tabs(key: &str, person: &Username) {
    storage::write_text(key, person.as_str());
    storage::remove(key);
}
