//! Notifications of the browser about reviews that arrive, and runs that fail, while no tab of the console is in sight. What they say and
//! when they are due is in `state::browser_notifications`; the browser's own permission and calls are here.

use std::collections::HashMap;
use std::rc::Rc;

use gloo_timers::callback::Timeout;
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::access::Principal;
use shared::id::{ReviewId, Username};
use shared::log::{Announced, AnnouncedSubject, Entry, has_started, is_asked, takes_part};
use shared::notification::Occasion;
use shared::protocol::ServerMessage;
use shared::time::Timestamp;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{Notification, NotificationOptions, NotificationPermission};

use super::GlobalSignal;
use super::live::Live;
use super::locks::{self, SharedLock};
use super::session::Session;
use super::storage;
use crate::state::browser_notifications::{
    self as state, Arrivals, BrowserNotification, News, NotificationChoice, NotificationTarget, SEVERAL, Shows,
    storage_key,
};

/// How long arrivals are collected, in milliseconds: what is decided again within that time is not shown.
const GATHER: u32 = 500;

/// The lock of all tabs that are in sight.
const IN_SIGHT: &str = "countersign.in-sight";

/// Whether this browser can show notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// It shows none for pages that did not come over TLS or from its own machine.
    Insecure,
    /// It has none, or only those that need a program without a page, as on Android.
    Missing,
    /// The person has not been asked.
    Unasked,
    Granted,
    Denied,
}

struct Shown {
    notification: Notification,
    /// What a click on it does. It must last as long as the notification.
    _click: Closure<dyn Fn()>,
}

#[derive(Default)]
struct Inner {
    arrivals: Arrivals,
    /// What is shown, by tag.
    shown: HashMap<String, Shown>,
    /// The next look at what is due.
    next: Option<Timeout>,
    in_sight: Option<SharedLock>,
}

/// What notifications need of the page.
#[derive(Clone)]
struct Page {
    /// Opens an address of the console.
    open: Rc<dyn Fn(&str)>,
    /// A deadline in words.
    until: fn(Timestamp) -> String,
}

/// The notifications of this browser. Cheap to copy into closures.
#[derive(Clone, Copy)]
pub struct BrowserNotifications {
    /// What the person who is logged in has chosen.
    pub choice: GlobalSignal<NotificationChoice>,
    /// Whether this browser can show notifications; known once [`Self::look`] has been called.
    pub permission: GlobalSignal<Permission>,
    inner: StoredValue<Inner, LocalStorage>,
    page: StoredValue<Option<Page>, LocalStorage>,
    live: Live,
    session: Session,
}

impl BrowserNotifications {
    /// Creates notifications that show nothing until they are started.
    pub fn new(live: Live, session: Session) -> Self {
        Self {
            choice: GlobalSignal::new(NotificationChoice::default()),
            permission: GlobalSignal::new(Permission::Unasked),
            inner: StoredValue::new_local(Inner::default()),
            page: StoredValue::new_local(None),
            live,
            session,
        }
    }

    /// Shows notifications while the calling component exists. `open` opens an address of the console, and `until`
    /// returns a deadline in words.
    pub fn start(self, open: impl Fn(&str) + 'static, until: fn(Timestamp) -> String) {
        self.page.set_value(Some(Page { open: Rc::new(open), until }));
        self.watch_sight();
        let in_sight = window_event_listener_untyped("visibilitychange", move |_| self.watch_sight());
        let leaves = window_event_listener_untyped("pagehide", move |_| self.clear());
        let other_tab = window_event_listener(leptos::ev::storage, move |event| {
            let own = self.owner().map(|owner| storage_key(&owner));
            if own.is_some() && event.key() == own {
                self.read();
            }
        });
        // Another person's choice is not this one's, and nobody sees what concerns whoever has left.
        let owner = Memo::new(move |_| self.session.username());
        Effect::new(move |_| {
            owner.track();
            self.clear();
            self.read();
        });
        self.live.listen(move |message| self.handle(message));
        on_cleanup(move || {
            in_sight.remove();
            leaves.remove();
            other_tab.remove();
            self.clear();
            // Where nobody is logged in, nobody looks at reviews. It fails only if the page is gone too.
            let _ = self.inner.try_update_value(|inner| inner.in_sight = None);
        });
    }

    /// Changes what the person has chosen, and stores it. Returns whether that succeeded.
    pub fn choose(self, choice: NotificationChoice) -> bool {
        self.follow(choice);
        self.owner().is_some_and(|owner| storage::write(&storage_key(&owner), &choice))
    }

    /// Finds out whether this browser can show notifications, without asking the person.
    pub fn look(self) {
        self.permission.set(permission());
    }

    /// Asks the browser for permission, which asks the person, unless it is known.
    pub async fn ask(self) -> Permission {
        if permission() == Permission::Unasked
            && let Ok(asked) = Notification::request_permission()
        {
            // The answer is read below, also after a failure.
            drop(JsFuture::from(asked).await);
        }
        self.look();
        self.permission.get_untracked()
    }

    fn owner(self) -> Option<Username> {
        untrack(move || self.session.username())
    }

    fn read(self) {
        let choice = self.owner().and_then(|owner| storage::read(&storage_key(&owner)));
        self.follow(choice.unwrap_or_default());
    }

    fn follow(self, choice: NotificationChoice) {
        let says_less = self.choice.with_untracked(|before| before.says_what) && !choice.says_what;
        self.choice.set(choice);
        if !choice.on || says_less {
            self.clear();
        }
    }

    /// Tells the other tabs whether this one is in sight.
    fn watch_sight(self) {
        self.inner.update_value(|inner| {
            if document().hidden() {
                inner.in_sight = None;
            } else {
                inner.in_sight = inner.in_sight.take().or_else(|| locks::share(IN_SIGHT));
                inner.arrivals.look();
                inner.close(SEVERAL);
            }
        });
    }

    fn handle(self, message: &ServerMessage) {
        if !self.choice.with_untracked(|choice| choice.on) {
            return;
        }
        match message {
            ServerMessage::Entry(entry) if may_be_news(entry) => self.take(entry),
            ServerMessage::Gone { review_id, .. } => {
                self.end(NotificationTarget::Review(*review_id));
                self.end(NotificationTarget::Comments(*review_id));
            }
            // It is not known what has become of the others meanwhile.
            ServerMessage::Resync | ServerMessage::Snapshot { .. } => self.clear(),
            _ => {}
        }
    }

    fn take(self, entry: &Entry) {
        let Some(me) = untrack(|| self.session.principal()) else { return };
        if let Some(id) = entry.event.review_id {
            self.end_if_over(entry, id, &me);
        }
        if !document().hidden() || entry.event.is_done_by(&me.username) {
            return;
        }
        let Some(Announced { occasion, about, only }) = entry.event.announces() else { return };
        let news = match (occasion, &about) {
            (Occasion::Requested, AnnouncedSubject::Review(review)) if is_asked(&me, review) => News::of(review),
            (Occasion::Commented, AnnouncedSubject::Review(review)) if takes_part(&me, review) => {
                News::of_comment(review)
            }
            (Occasion::RunFailed, AnnouncedSubject::Run(run)) if has_started(&me, run) => News::of_failed_run(run),
            _ => return,
        };
        if only.is_none_or(|only| only.contains(&me.username)) {
            self.inner.update_value(|inner| inner.arrivals.arrive(news));
            self.look_in(GATHER);
        }
    }

    /// Ends what an entry makes outdated. Whoever does something with a review knows the comments on it.
    fn end_if_over(self, entry: &Entry, id: ReviewId, me: &Principal) {
        let (asked, comments) = (NotificationTarget::Review(id), NotificationTarget::Comments(id));
        let (knows_asked, knows_comments) = (self.knows(asked), self.knows(comments));
        let review = (knows_asked || knows_comments).then(|| entry.event.review()).flatten();
        if knows_asked && review.as_ref().is_some_and(|review| !is_asked(me, review)) {
            self.end(asked);
        }
        let is_own = entry.event.is_done_by(&me.username);
        if knows_comments && (is_own || review.is_some_and(|review| !review.is_pending())) {
            self.end(comments);
        }
    }

    fn knows(self, about: NotificationTarget) -> bool {
        self.inner.with_value(|inner| inner.arrivals.has(about) || inner.shown.contains_key(&about.tag()))
    }

    fn end(self, about: NotificationTarget) {
        self.inner.update_value(|inner| {
            let counts_none = inner.arrivals.end(about);
            inner.close(&about.tag());
            if counts_none {
                inner.close(SEVERAL);
            }
        });
    }

    /// Closes what is shown, and forgets what waits.
    fn clear(self) {
        // It fails only if the page is gone too.
        let _ = self.inner.try_update_value(|inner| {
            inner.shown.drain().for_each(|(_, shown)| shown.notification.close());
            inner.arrivals = Arrivals::default();
            inner.next = None;
        });
    }

    /// Looks at what is due after this time, unless that is done sooner.
    fn look_in(self, milliseconds: u32) {
        self.inner.update_value(|inner| {
            let look = move || {
                self.inner.update_value(|inner| inner.next = None);
                spawn_local(self.show_due());
            };
            inner.next = inner.next.take().or_else(|| Some(Timeout::new(milliseconds, look)));
        });
    }

    async fn show_due(self) {
        if !document().hidden() || locks::is_held(IN_SIGHT).await == Some(true) {
            self.inner.update_value(|inner| inner.arrivals.look());
            return;
        }
        let Some(page) = self.page.get_value() else { return };
        let now = self.live.server_now();
        let says_what = self.choice.with_untracked(|choice| choice.says_what);
        let due = self.inner.try_update_value(|inner| inner.arrivals.due(now)).unwrap_or_default();
        for shows in due {
            let notice = match shows {
                Shows::One(news) => state::one(&news, says_what, news.expires_at.map(page.until)),
                Shows::Several(counts) => state::several(counts),
            };
            self.show(notice, Rc::clone(&page.open));
        }
        if let Some(again) = self.inner.with_value(|inner| inner.arrivals.again_at()) {
            let wait = (again.0 - now.0) / 1000;
            self.look_in(u32::try_from(wait).unwrap_or(0).max(GATHER));
        }
    }

    fn show(self, notice: BrowserNotification, open: Rc<dyn Fn(&str)>) {
        let options = NotificationOptions::new();
        options.set_tag(&notice.tag);
        options.set_body(&notice.body);
        // It fails where only a program without a page may show notifications.
        let Ok(notification) = Notification::new_with_options(&notice.title, &options) else {
            self.permission.set(Permission::Missing);
            return;
        };
        let (tag, path) = (notice.tag.clone(), notice.path);
        let click = Closure::<dyn Fn()>::new(move || {
            drop(window().focus());
            open(&path);
            self.inner.with_value(|inner| inner.shown.get(&tag).map(|shown| shown.notification.close()));
        });
        notification.set_onclick(Some(click.as_ref().unchecked_ref()));
        let shown = Shown { notification, _click: click };
        self.inner.update_value(|inner| drop(inner.shown.insert(notice.tag, shown)));
    }
}

impl Inner {
    fn close(&mut self, tag: &str) {
        if let Some(shown) = self.shown.remove(tag) {
            shown.notification.close();
        }
    }
}

/// Whether an entry may be news, or make something outdated.
fn may_be_news(entry: &Entry) -> bool {
    entry.event.kind.is_review() || entry.event.kind.occasion() == Some(Occasion::RunFailed)
}

fn permission() -> Permission {
    let is_missing = || js_sys::Reflect::get(&window(), &"Notification".into()).is_ok_and(|class| class.is_undefined());
    if !window().is_secure_context() {
        return Permission::Insecure;
    }
    if is_missing() {
        return Permission::Missing;
    }
    match Notification::permission() {
        NotificationPermission::Granted => Permission::Granted,
        NotificationPermission::Denied => Permission::Denied,
        // Without permission, nothing is shown by this, but on Android it fails.
        _ if Notification::new("").is_err_and(|error: JsValue| error.is_instance_of::<js_sys::TypeError>()) => {
            Permission::Missing
        }
        _ => Permission::Unasked,
    }
}
