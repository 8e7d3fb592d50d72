//! One client: its subscriptions, its messages, and its end. One task per socket, generic over the socket.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, close_code};
use futures::future::OptionFuture;
use futures::{Sink, SinkExt, Stream, StreamExt};
use indexmap::IndexSet;
use shared::error::Code;
use shared::id::{ReviewId, Username};
use shared::log::{ChangedRights, Cursor, EntryKind, RightsChange};
use shared::protocol::{ClientMessage, ServerMessage, Topic};
use tokio::time::{Instant, timeout};

use super::authenticate::Authenticate;
use super::close_reason::{CloseReason, MAX_MESSAGE, clip, too_large, unreadable};
use super::count::Counted;
use super::followed_streams::FollowedStreams;
use super::hub::{Hub, Listening};
use super::outgoing::{OutgoingEntry, text};
use super::replay::{Follower, ReplayPlace, Replayed};
use super::request::{self, FrameError};
use super::snapshot::LiveSnapshot;
use super::topics::Topics;
use crate::problem;
use crate::store::{Actor, Tally};
use crate::token_bucket::TokenBucket;
use crate::token_stream::Chunk;

/// The sustained number of messages per second from a client. A burst may have those of three seconds.
const MESSAGES_PER_SECOND: u32 = 20;
const HEARTBEAT: Duration = Duration::from_secs(20);
/// The time without any message or pong after which a client counts as gone.
const SILENCE: Duration = Duration::from_mins(1);
/// The timeout for sending to a client. A client that does not read is dropped, so that nothing piles up.
const WRITE: Duration = Duration::from_secs(10);
/// The time that a client has to close its end after the server has closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum number of pieces of token streams sent before the next entries.
const CHUNKS: usize = 256;
/// The maximum number of pending reviews remembered as shown.
const MAX_SHOWN: usize = 1024;
/// The close code when nobody is logged in any more (4000 to 4999 are for applications; modelled on HTTP's 401).
const CLOSE_UNAUTHENTICATED: u16 = 4401;

/// The result of one thing that a session does; an error ends it.
type SessionResult = Result<(), CloseReason>;

pub(super) struct SocketSession<S> {
    socket: S,
    hub: Hub,
    _listening: Listening,
    auth: Arc<dyn Authenticate>,
    actor: Actor,
    topics: Topics,
    follower: Follower,
    /// The token streams, while a run is followed.
    chunks: Option<FollowedStreams>,
    /// The subscription to the counts of the queue, and the numbers that were sent last.
    counted: Option<Counted>,
    numbers: Option<(u64, u64, u64)>,
    /// The pending reviews that the client was shown: it is told when it may no longer see one.
    shown: IndexSet<ReviewId>,
    /// Whether the client's data were read with other rights, so that a replay would not be enough.
    stale: bool,
    bucket: TokenBucket,
    heard: Instant,
}

impl<S, E> SocketSession<S>
where
    S: Stream<Item = Result<Message, E>> + Sink<Message, Error = E> + Unpin,
    E: std::fmt::Display,
{
    pub fn new(socket: S, hub: Hub, auth: Arc<dyn Authenticate>, actor: Actor) -> Self {
        let now = Instant::now();
        Self {
            socket,
            _listening: hub.listen(),
            follower: Follower::new(&hub),
            hub,
            auth,
            actor,
            topics: Topics::default(),
            chunks: None,
            counted: None,
            numbers: None,
            shown: IndexSet::new(),
            stale: false,
            bucket: TokenBucket::new(3 * MESSAGES_PER_SECOND, Duration::from_secs(1) / MESSAGES_PER_SECOND),
            heard: now,
        }
    }

    /// Serves the client until either side ends the session.
    pub async fn run(mut self) {
        let end = self.serve().await.err().unwrap_or(CloseReason::Gone);
        if let CloseReason::Close(code, reason) = end {
            let reason = Utf8Bytes::from(clip(&reason));
            // A client that does not even read the close frame is dropped.
            let _ = self.send([Message::Close(Some(CloseFrame { code, reason }))]).await;
            // Reads and discards what is still on its way: closing a connection with unread data resets it, and the
            // close frame is lost.
            let _ = timeout(CLOSE_TIMEOUT, async { while let Some(Ok(_)) = self.socket.next().await {} }).await;
        }
    }

    async fn serve(&mut self) -> SessionResult {
        let welcome = ServerMessage::Welcome {
            user: self.actor.principal.username.clone(),
            cursor: self.hub.head(),
            server_time: self.hub.now(),
        };
        self.say(&welcome).await?;
        let stopped = self.hub.stopped.clone();
        let mut heartbeat = Instant::now() + HEARTBEAT;
        loop {
            // How soon the client's rights change by the passing of time, or its credential expires. That is no commit,
            // so the log does not report it, but the time is known.
            let rights = self.actor.rights_until.map(|until| until.since(self.hub.now()));
            tokio::select! {
                () = stopped.cancelled() => {
                    return Err(CloseReason::Close(close_code::AWAY, "the server is stopping; reconnect".to_owned()));
                }
                message = self.socket.next() => match message {
                    None => return Err(CloseReason::Gone),
                    Some(Err(error)) => return Err(unreadable(&error)),
                    Some(Ok(message)) => self.receive(message).await?,
                },
                next = self.follower.next(&self.hub) => match next {
                    Ok(next) => self.advance(next).await?,
                    Err(error) => {
                        problem::of_store(&error);
                        return Err(CloseReason::Close(close_code::AGAIN, "the log was not read; reconnect".to_owned()));
                    }
                },
                Some(chunk) = OptionFuture::from(self.chunks.as_mut().map(FollowedStreams::next)) => {
                    self.stream(chunk).await?;
                }
                Some(tally) = OptionFuture::from(self.counted.as_mut().map(Counted::next)) => self.count(&tally).await?,
                Some(()) = OptionFuture::from(rights.map(tokio::time::sleep)) => {
                    if Box::pin(self.refresh()).await? {
                        self.resync(true).await?;
                    }
                }
                () = tokio::time::sleep_until(heartbeat) => {
                    let now = Instant::now();
                    if now.duration_since(self.heard) >= SILENCE {
                        return Err(CloseReason::Gone);
                    }
                    heartbeat = now + HEARTBEAT;
                    self.send([Message::Ping(axum::body::Bytes::new())]).await?;
                }
            }
        }
    }

    // --- messages from the client ---

    async fn receive(&mut self, message: Message) -> SessionResult {
        self.heard = Instant::now();
        match message {
            Message::Pong(_) => return Ok(()),
            Message::Close(_) => return Err(CloseReason::Gone),
            Message::Text(_) | Message::Binary(_) | Message::Ping(_) => {}
        }
        if !self.bucket.take(self.heard).is_zero() {
            let reason = format!("more than {MESSAGES_PER_SECOND} messages per second");
            return Err(CloseReason::Close(close_code::POLICY, reason));
        }
        let Message::Text(frame) = message else {
            if let Message::Binary(_) = message {
                return Err(CloseReason::Close(close_code::UNSUPPORTED, "text frames only".to_owned()));
            }
            // The transport answers pings by itself.
            return Ok(());
        };
        if frame.len() > MAX_MESSAGE {
            return Err(too_large());
        }
        let message = request::read(&frame);
        if let Ok(ClientMessage::Decide { r#ref, .. } | ClientMessage::Claim { r#ref, .. }) = &message
            && let Err(problem) = self.auth.admit(&self.actor)
        {
            return self.say(&request::reply(r#ref.clone(), Err(problem))).await;
        }
        match message {
            Ok(ClientMessage::Ping) => {
                let pong = ServerMessage::Pong { cursor: self.hub.head(), server_time: self.hub.now() };
                self.say(&pong).await
            }
            Ok(ClientMessage::Subscribe { after, topics }) => Box::pin(self.subscribe(after, topics)).await,
            Ok(ClientMessage::Decide { r#ref, review, decision }) => {
                let reply = Box::pin(request::decide(&self.hub.store, &self.actor, r#ref, review, decision)).await;
                self.answer(frame.len(), &reply).await
            }
            Ok(ClientMessage::Claim { r#ref, review }) => {
                let reply = Box::pin(request::claim(&self.hub.store, &self.actor, r#ref, review)).await;
                self.answer(frame.len(), &reply).await
            }
            Err(FrameError::Reply(reply)) => self.say(&reply).await,
            Err(FrameError::Close(reason)) => Err(CloseReason::Close(close_code::INVALID, reason)),
        }
    }

    /// Replies to a write, and charges the size of message and reply, since the log stores about as much.
    async fn answer(&mut self, sent: usize, reply: &ServerMessage) -> SessionResult {
        let text = text(reply);
        self.auth.charge(&self.actor, sent + text.len());
        self.send([Message::Text(text)]).await
    }

    async fn subscribe(&mut self, after: Option<Cursor>, topics: Option<Vec<Topic>>) -> SessionResult {
        self.topics = Topics::new(topics).map_err(|reason| CloseReason::Close(close_code::INVALID, reason))?;
        self.chunks = FollowedStreams::of(&self.hub, &self.topics.followed);
        // Before the position in the log, so that later changes of rights are entries after it.
        if self.refresh().await? && self.topics.inbox {
            self.say(&ServerMessage::Rights).await?;
        }
        // Before the count for the snapshot, so that every later change causes another count.
        (self.counted, self.numbers) = (self.topics.inbox.then(|| self.hub.counter.follow()), None);
        match after {
            Some(after) if !self.stale => {
                self.follower.begin(ReplayPlace::Replay(after));
                Ok(())
            }
            _ => self.snapshot().await,
        }
    }

    async fn snapshot(&mut self) -> SessionResult {
        let LiveSnapshot { text, shown, tally } =
            LiveSnapshot::read(&self.hub, &self.actor.principal, self.topics.reviews).await?;
        self.stale = false;
        self.shown.clear();
        for review in shown {
            self.show(review);
        }
        self.follower.begin(ReplayPlace::Replay(tally.cursor.clone()));
        self.send([Message::Text(text)]).await?;
        if self.counted.is_some() { self.count(&tally).await } else { Ok(()) }
    }

    /// Sends the numbers of pending reviews if they have changed.
    async fn count(&mut self, tally: &Tally) -> SessionResult {
        let numbers @ (pending, mine, handed_over) = tally.numbers(&self.actor.principal);
        if self.numbers.replace(numbers) == Some(numbers) {
            return Ok(());
        }
        self.say(&ServerMessage::Inbox { cursor: tally.cursor.clone(), pending, mine, handed_over }).await
    }

    // --- messages to the client ---

    async fn advance(&mut self, next: Replayed) -> SessionResult {
        match next {
            Replayed::Lagged => self.resync(false).await,
            Replayed::Unknown => Box::pin(self.snapshot()).await,
            Replayed::Entries(entries, place) => {
                self.catch_up_streams().await?;
                let replayed = self.follower.replays();
                let mut frames = Vec::new();
                for published in &entries {
                    if let Some(RightsChange { person, what }) = &published.rights_change {
                        if person.as_ref().is_some_and(|name| !self.rests_on(name)) {
                            continue;
                        }
                        self.send(frames.drain(..)).await?;
                        let changed = Box::pin(self.refresh()).await?;
                        // In a replay, rights that this entry changed were current from the start: `changed` is false.
                        // Nobody had rights before they were created.
                        let may_have_changed =
                            *what != ChangedRights::Credentials && published.kind != EntryKind::UserCreated;
                        if changed || (replayed && may_have_changed) {
                            self.stale = true;
                            return self.resync(true).await;
                        }
                    } else if let Some(frame) = self.judge(published) {
                        frames.push(Message::Text(frame));
                    }
                }
                self.send(frames).await?;
                self.follower.place = place;
                Ok(())
            }
        }
    }

    /// Returns the frame that this client gets for an entry, if any.
    fn judge(&mut self, published: &OutgoingEntry) -> Option<Utf8Bytes> {
        if !self.topics.has(published.kind, published.run_id) {
            return None;
        }
        let seen = published.viewers.include(&self.actor.principal);
        if let Some(review) = &published.review {
            if seen && review.is_pending() {
                self.show(review.id);
            } else if self.shown.swap_remove(&review.id) && !seen {
                let gone = ServerMessage::Gone { cursor: published.cursor.clone(), review_id: review.id };
                return Some(text(&gone));
            }
        }
        seen.then(|| published.frame.clone())
    }

    /// Whether this client's rights are those of the person, or follow from theirs as a deputy. Those of a person who
    /// may not log in give none, until they may again.
    fn rests_on(&self, name: &Username) -> bool {
        self.actor.principal.username == *name || self.actor.deputy_of.contains(name)
    }

    fn show(&mut self, review: ReviewId) {
        if self.shown.len() >= MAX_SHOWN {
            self.shown.shift_remove_index(0);
        }
        self.shown.insert(review);
    }

    /// Tells the client to subscribe again. `rights`: because its rights have changed.
    async fn resync(&mut self, rights: bool) -> SessionResult {
        if rights && self.topics.inbox {
            self.say(&ServerMessage::Rights).await?;
        }
        self.follower.begin(ReplayPlace::Silent);
        self.chunks = None;
        self.counted = None;
        self.say(&ServerMessage::Resync).await
    }

    /// Sends the pieces that arrived before the entries that are about to be sent, so that the end of an answer
    /// precedes the entry with the whole answer.
    async fn catch_up_streams(&mut self) -> SessionResult {
        for _ in 0..CHUNKS {
            let Some(chunk) = self.chunks.as_mut().and_then(FollowedStreams::ready) else { break };
            Box::pin(self.stream(chunk)).await?;
        }
        Ok(())
    }

    async fn stream(&mut self, chunk: Chunk) -> SessionResult {
        if !self.topics.follows(chunk.run) {
            return Ok(());
        }
        let visibility = Box::pin(self.hub.visibility.of(chunk.run)).await;
        // A piece may be lost: the log reports the whole answer later.
        if !visibility.ok().flatten().is_some_and(|visibility| visibility.is_seen_by(&self.actor.principal)) {
            return Ok(());
        }
        let Chunk { run, node, visit, agent, task, attempt, offset, text } = chunk;
        self.say(&ServerMessage::Stream { run, node, visit, agent, task, attempt, offset, text }).await
    }

    /// Reads the current rights. Returns whether they have changed.
    async fn refresh(&mut self) -> Result<bool, CloseReason> {
        match self.auth.refresh(&self.actor).await {
            Ok(actor) => {
                let changed = actor.principal != self.actor.principal;
                self.stale |= changed;
                self.actor = actor;
                Ok(changed)
            }
            Err(problem) if problem.code == Code::Unauthenticated => {
                self.say(&ServerMessage::Resync).await?;
                Err(CloseReason::Close(CLOSE_UNAUTHENTICATED, "please log in again".to_owned()))
            }
            Err(problem) => Err(CloseReason::Close(close_code::AGAIN, problem.title)),
        }
    }

    async fn say(&mut self, message: &ServerMessage) -> SessionResult {
        self.send([Message::Text(text(message))]).await
    }

    async fn send(&mut self, messages: impl IntoIterator<Item = Message>) -> SessionResult {
        let write = async {
            for message in messages {
                self.socket.feed(message).await?;
            }
            self.socket.flush().await
        };
        match timeout(WRITE, write).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(CloseReason::Gone),
        }
    }
}
