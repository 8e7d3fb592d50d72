//! The live socket: connects, reconnects, passes every message to the folds, and keeps the server's clock.
//!
//! Pages read `live.inbox`, `live.runs`, `live.now` and `live.connection`; a page that shows one run calls
//! [`Live::follow_run`], and [`Live::listen`] for messages that no fold keeps.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use futures::channel::{mpsc, oneshot};
use futures::{FutureExt, SinkExt, StreamExt, select};
use gloo_net::websocket::Message;
use gloo_net::websocket::futures::WebSocket;
use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::id::RunId;
use shared::log::Cursor;
use shared::protocol::{ClientMessage, SUBPROTOCOL, ServerMessage, Topic};
use shared::time::Timestamp;

use super::GlobalSignal;
use super::http::Api;
use super::paint::after_paint;
use super::session::Session;
use crate::state::inbox::Inbox;
use crate::state::reconnect;
use crate::state::runs::Runs;

/// The interval of pings, in milliseconds.
const PING_EVERY_MS: u32 = 20_000;
/// The number of messages that are folded before the page is drawn.
const BURST: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connection {
    /// No one is logged in.
    Closed,
    /// Connecting for the first time.
    Opening,
    /// Connected: the page is up to date.
    Open,
    /// The page may be out of date; the next attempt is at that time.
    Lost { retry_at: Timestamp },
}

type Listener = Rc<dyn Fn(&ServerMessage)>;

#[derive(Default)]
struct Inner {
    /// The number of calls of `open` and `close`; an older socket stops.
    generation: u64,
    running: bool,
    outbox: Option<mpsc::UnboundedSender<ClientMessage>>,
    wake: Option<oneshot::Sender<()>>,
    cursor: Option<Cursor>,
    followed: HashMap<RunId, usize>,
    listeners: Vec<(u64, Listener)>,
    next: u64,
    /// The server's clock minus this machine's, in microseconds.
    offset: i64,
}

/// The live socket and the data it received. Cheap to copy into closures.
#[derive(Clone, Copy)]
pub struct Live {
    pub connection: GlobalSignal<Connection>,
    /// The server's clock, which advances every second.
    pub now: GlobalSignal<Timestamp>,
    /// The reviews that are listed or open, kept up to date by the socket.
    pub inbox: GlobalSignal<Inbox>,
    pub runs: GlobalSignal<Runs>,
    /// A counter that increases when earlier messages are no longer valid, so that lists must be reloaded.
    pub renewed: GlobalSignal<u64>,
    inner: StoredValue<Inner, LocalStorage>,
    api: Api,
    session: Session,
}

impl Live {
    pub fn new(api: Api, session: Session) -> Self {
        let live = Self {
            connection: GlobalSignal::new(Connection::Closed),
            now: GlobalSignal::new(here()),
            inbox: GlobalSignal::new(Inbox::default()),
            runs: GlobalSignal::new(Runs::default()),
            renewed: GlobalSignal::new(0),
            inner: StoredValue::new_local(Inner::default()),
            api,
            session,
        };
        gloo_timers::callback::Interval::new(1000, move || {
            live.now.set(live.server_now());
        })
        .forget();
        // The browser knows better than the interval when a network is back.
        std::mem::forget(window_event_listener_untyped("online", move |_| live.retry_now()));
        live
    }

    /// Returns the server's clock at this moment.
    pub fn server_now(self) -> Timestamp {
        Timestamp(here().0 + self.inner.with_value(|inner| inner.offset))
    }

    /// Opens the socket, and keeps it open. Does nothing if it is already open.
    pub fn open(self) {
        if self.inner.with_value(|inner| inner.running) {
            return;
        }
        self.inner.update_value(|inner| {
            inner.generation += 1;
            inner.running = true;
        });
        self.connection.set(Connection::Opening);
        let generation = self.generation();
        spawn_local(async move {
            // The page shows what it has before it connects.
            after_paint().await;
            self.keep_open(generation).await;
        });
    }

    /// Closes the socket, and forgets the data it received.
    pub fn close(self) {
        self.inner.update_value(|inner| {
            inner.generation += 1;
            inner.running = false;
            inner.outbox = None;
            inner.cursor = None;
        });
        self.connection.set(Connection::Closed);
        self.inbox.set(Inbox::default());
        self.runs.set(Runs::default());
    }

    /// Tries to connect at once.
    pub fn retry_now(self) {
        if let Some(Some(wake)) = self.inner.try_update_value(|inner| inner.wake.take()) {
            // It fails only if the wait is over.
            let _ = wake.send(());
        }
    }

    /// Keeps the summary of a run in `runs` while the calling component exists.
    pub fn keep_run(self, run: RunId) {
        self.runs.update_untracked(|runs| runs.follow(run));
        on_cleanup(move || self.runs.update_untracked(|runs| runs.unfollow(run)));
    }

    /// Follows everything about a run while the calling component exists.
    pub fn follow_run(self, run: RunId) {
        self.inner.update_value(|inner| *inner.followed.entry(run).or_default() += 1);
        self.subscribe();
        on_cleanup(move || {
            self.inner.update_value(|inner| {
                if let Some(count) = inner.followed.get_mut(&run) {
                    *count -= 1;
                    if *count == 0 {
                        inner.followed.remove(&run);
                    }
                }
            });
            self.subscribe();
        });
    }

    /// Calls `on_message` with every message of the server while the calling component exists.
    pub fn listen(self, on_message: impl Fn(&ServerMessage) + 'static) {
        let Some(id) = self.inner.try_update_value(|inner| {
            inner.next += 1;
            inner.listeners.push((inner.next, Rc::new(on_message)));
            inner.next
        }) else {
            return;
        };
        on_cleanup(move || self.inner.update_value(|inner| inner.listeners.retain(|(other, _)| *other != id)));
    }

    fn generation(self) -> u64 {
        self.inner.with_value(|inner| inner.generation)
    }

    fn subscribe(self) {
        self.inner.with_value(|inner| {
            if let Some(outbox) = &inner.outbox {
                let runs = inner.followed.keys().copied().map(Topic::Run);
                let topics = [Topic::Reviews, Topic::Runs, Topic::Inbox].into_iter().chain(runs).collect();
                let subscribe = ClientMessage::Subscribe { after: inner.cursor.clone(), topics: Some(topics) };
                // It fails only if the socket was just lost; the next socket subscribes again.
                drop(outbox.unbounded_send(subscribe));
            }
        });
    }

    async fn keep_open(self, generation: u64) {
        let mut failures = 0;
        let asking = Rc::new(Cell::new(false));
        while self.generation() == generation {
            let welcomed = match WebSocket::open_with_protocol(&address(), SUBPROTOCOL) {
                Ok(socket) => self.talk(socket, generation).await,
                Err(_) => false,
            };
            if self.generation() != generation {
                return;
            }
            failures = if welcomed { 1 } else { failures + 1 };
            let (wake, woken) = oneshot::channel();
            self.inner.update_value(|inner| {
                inner.outbox = None;
                inner.wake = Some(wake);
            });
            let wait = reconnect::wait_ms(failures, js_sys::Math::random());
            let retry_at = Timestamp(self.server_now().0 + i64::from(wait) * 1000);
            self.connection.set(Connection::Lost { retry_at });
            // A browser does not say why an upgrade was refused, but the API says whether the session has ended.
            // Nothing waits for that.
            if !asking.replace(true) {
                let asking = Rc::clone(&asking);
                spawn_local(async move {
                    self.session.refresh(self.api).await;
                    asking.set(false);
                });
            }
            select! {
                () = TimeoutFuture::new(wait).fuse() => {}
                _ = woken.fuse() => {}
            }
        }
    }

    /// Uses the socket until it is lost. Returns whether the server had welcomed it.
    async fn talk(self, socket: WebSocket, generation: u64) -> bool {
        let (mut write, read) = socket.split();
        let (outbox, mut sayings) = mpsc::unbounded();
        let mut read = read.ready_chunks(BURST).fuse();
        let mut welcomed = false;
        let mut silent = false;
        let mut ping = TimeoutFuture::new(PING_EVERY_MS).fuse();
        loop {
            let saying = select! {
                burst = read.next() => {
                    let Some(burst) = burst else { return welcomed };
                    if self.generation() != generation {
                        return welcomed;
                    }
                    silent = false;
                    let whole = burst.iter().all(Result::is_ok);
                    let messages: Vec<ServerMessage> = burst.into_iter().filter_map(|message| match message {
                        // Messages of unknown types are ignored.
                        Ok(Message::Text(text)) => shared::client::read(&text).ok(),
                        _ => None,
                    }).collect();
                    if messages.iter().any(|message| matches!(message, ServerMessage::Welcome { .. })) {
                        welcomed = true;
                        self.inner.update_value(|inner| inner.outbox = Some(outbox.clone()));
                    }
                    self.apply(messages);
                    if !whole {
                        return welcomed;
                    }
                    continue;
                }
                saying = sayings.next() => saying.unwrap_or(ClientMessage::Ping),
                () = ping => {
                    // A proxy may have swallowed the request to open the socket, and sending would wait for that.
                    if silent || !welcomed {
                        return welcomed;
                    }
                    silent = true;
                    ping = TimeoutFuture::new(PING_EVERY_MS).fuse();
                    ClientMessage::Ping
                }
            };
            if self.generation() != generation {
                return welcomed;
            }
            let Ok(text) = serde_json::to_string(&saying) else { continue };
            if write.send(Message::Text(text)).await.is_err() {
                return welcomed;
            }
        }
    }

    fn apply(self, messages: Vec<ServerMessage>) {
        let me = untrack(move || self.session.username());
        let is_of_another = |message: &ServerMessage| matches!(message, ServerMessage::Welcome { user, .. } if me.as_ref().is_some_and(|me| me != user));
        if messages.iter().any(is_of_another) {
            // Somebody else has logged in in another tab, and this page must not show their data.
            self.session.signed_out.set(true);
            return;
        }
        let mut again = false;
        for message in &messages {
            match message {
                ServerMessage::Welcome { server_time, cursor, .. } => {
                    self.set_clock(*server_time);
                    self.connection.set(Connection::Open);
                    // The socket delivers entries from this cursor on, and lists are read after it, so nothing is
                    // missed.
                    if self.inner.with_value(|inner| inner.cursor.is_none()) {
                        self.seen(cursor);
                        self.renew();
                    }
                    again = true;
                }
                ServerMessage::Pong { server_time, .. } => self.set_clock(*server_time),
                ServerMessage::Resync => {
                    self.inner.update_value(|inner| inner.cursor = None);
                    again = true;
                }
                ServerMessage::Snapshot { cursor, .. } => {
                    self.seen(cursor);
                    self.renew();
                }
                ServerMessage::Rights => spawn_local(self.session.refresh(self.api)),
                ServerMessage::Gone { cursor, .. } => self.seen(cursor),
                ServerMessage::Entry(entry) => self.seen(&entry.cursor),
                ServerMessage::Stream { .. } | ServerMessage::Inbox { .. } | ServerMessage::Reply { .. } => {}
            }
        }
        let now = self.server_now();
        let speaks = |message: &ServerMessage| {
            matches!(message, ServerMessage::Inbox { .. } | ServerMessage::Entry(_) | ServerMessage::Gone { .. })
        };
        if messages.iter().any(speaks) {
            self.inbox.update(|inbox| messages.iter().for_each(|message| inbox.apply(message, now)));
            self.runs.update(|runs| messages.iter().for_each(|message| runs.apply(message)));
        }
        let listeners = self.inner.with_value(|inner| inner.listeners.clone());
        for message in &messages {
            for (_, listener) in &listeners {
                listener(message);
            }
        }
        if again {
            self.subscribe();
        }
    }

    fn renew(self) {
        self.renewed.update(|times| *times += 1);
    }

    fn seen(self, cursor: &Cursor) {
        self.inner.update_value(|inner| inner.cursor = Some(cursor.clone()));
    }

    fn set_clock(self, server: Timestamp) {
        self.inner.update_value(|inner| inner.offset = server.0 - here().0);
        self.now.set(self.server_now());
    }
}

/// Returns this machine's clock.
fn here() -> Timestamp {
    #[expect(clippy::cast_possible_truncation, reason = "milliseconds since 1970 fit for 285,000 years")]
    Timestamp(js_sys::Date::now() as i64 * 1000)
}

fn address() -> String {
    let location = window().location();
    let scheme = if location.protocol().is_ok_and(|protocol| protocol == "https:") { "wss" } else { "ws" };
    format!("{scheme}://{}/api/v1/live", location.host().unwrap_or_default())
}
