//! Sessions without a real socket, on a real store.

mod inbox;
mod replay;
mod streams;
mod tail;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use axum::extract::ws::Message;
use axum::http::HeaderMap;
use futures::channel::mpsc::{self, SendError};
use futures::{Sink, SinkExt, Stream, StreamExt};
use shared::access::{Absent, Principal};
use shared::error::Problem;
use shared::protocol::ServerMessage;
use tokio::time::Instant;

use super::session::SocketSession;
use super::{Authenticate, Hub, HubOptions};
use crate::clock::{Clock as _, SystemClock};
use crate::store::testing::Database;
use crate::store::{Actor, Store};
use crate::token_stream::Streams;

/// The server's end of an in-memory socket.
struct ServerEnd {
    incoming: mpsc::UnboundedReceiver<Message>,
    outgoing: mpsc::Sender<Message>,
}

/// The client's end of the socket.
struct Client {
    outgoing: mpsc::UnboundedSender<Message>,
    incoming: mpsc::Receiver<Message>,
}

fn line() -> (ServerEnd, Client) {
    let (to_server, from_client) = mpsc::unbounded();
    let (to_client, from_server) = mpsc::channel(0);
    (ServerEnd { incoming: from_client, outgoing: to_client }, Client { outgoing: to_server, incoming: from_server })
}

impl Stream for ServerEnd {
    type Item = Result<Message, SendError>;
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.incoming.poll_next_unpin(context).map(|message| message.map(Ok))
    }
}

impl Sink<Message> for ServerEnd {
    type Error = SendError;
    fn poll_ready(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        self.outgoing.poll_ready_unpin(context)
    }
    fn start_send(mut self: Pin<&mut Self>, message: Message) -> Result<(), SendError> {
        self.outgoing.start_send_unpin(message)
    }
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        self.outgoing.poll_flush_unpin(context)
    }
    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        self.outgoing.poll_close_unpin(context)
    }
}

/// Authenticates one person, whose rights do not change.
struct One(Actor);

#[async_trait]
impl Authenticate for One {
    fn is_origin_allowed(&self, _: &HeaderMap) -> bool {
        true
    }
    async fn authenticate(&self, _: &HeaderMap) -> Result<Actor, Problem> {
        Ok(self.0.clone())
    }
    async fn refresh(&self, actor: &Actor) -> Result<Actor, Problem> {
        Ok(actor.clone())
    }
}

/// Authenticates one person, who is a deputy from the first refresh on.
struct Deputy(Actor);

#[async_trait]
impl Authenticate for Deputy {
    fn is_origin_allowed(&self, _: &HeaderMap) -> bool {
        true
    }
    async fn authenticate(&self, _: &HeaderMap) -> Result<Actor, Problem> {
        Ok(self.0.clone())
    }
    async fn refresh(&self, actor: &Actor) -> Result<Actor, Problem> {
        let absent = Absent { username: "lea".parse().expect("a name"), roles: ["legal".to_owned()].into() };
        let principal = Principal { stands_for: vec![absent], ..actor.principal.clone() };
        Ok(Actor { principal, rights_until: None, ..actor.clone() })
    }
}

async fn hub(database: &Database) -> Hub {
    let clock = Arc::new(SystemClock);
    let store = Store::open(database.options(clock.clone())).await.expect("a store");
    Hub::run(HubOptions::new(store, clock, Streams::default())).await.expect("a hub")
}

fn session(hub: &Hub, line: ServerEnd) -> SocketSession<ServerEnd> {
    let username = "ana".parse().expect("a name");
    let principal = Principal::new(username, ["reviewer".to_owned()].into());
    let actor = Actor::of(principal);
    SocketSession::new(line, hub.clone(), Arc::new(One(actor.clone())), actor)
}

#[tokio::test]
async fn a_client_that_does_not_read_is_dropped() {
    let database = Database::sqlite().expect("a file");
    let hub = hub(&database).await;
    let (line, client) = line();
    tokio::time::pause();
    let start = Instant::now();
    for _ in 0..10 {
        client.outgoing.unbounded_send(Message::text(r#"{"type":"ping"}"#)).expect("open");
    }
    session(&hub, line).run().await;
    let lasted = Instant::now().duration_since(start);
    assert!(lasted >= Duration::from_secs(10) && lasted < Duration::from_secs(30), "{lasted:?}");
}

#[tokio::test]
async fn a_client_that_says_nothing_is_let_go_after_a_minute() {
    let database = Database::sqlite().expect("a file");
    let hub = hub(&database).await;
    let (line, client) = line();
    tokio::time::pause();
    let start = Instant::now();
    let heard = client.incoming.collect::<Vec<Message>>();
    let (heard, ()) = tokio::join!(heard, session(&hub, line).run());
    assert_eq!(Instant::now().duration_since(start).as_secs(), 60);
    assert!(matches!(&heard[0], Message::Text(welcome) if welcome.contains("\"welcome\"")));
    assert!(heard[1..].iter().all(|message| matches!(message, Message::Ping(_))) && heard.len() == 3, "{heard:?}");
    drop(client.outgoing);
}

#[tokio::test]
async fn every_session_is_told_that_the_server_stops() {
    let database = Database::sqlite().expect("a file");
    let hub = hub(&database).await;
    let (line, mut client) = line();
    let told = hub.clone();
    let stopping = async move {
        let Some(Message::Text(welcome)) = client.incoming.next().await else { panic!("no welcome") };
        let welcome: ServerMessage = serde_json::from_str(&welcome).expect("a message");
        assert!(matches!(welcome, ServerMessage::Welcome { user, .. } if user.as_str() == "ana"));
        told.stop();
        let Some(Message::Close(Some(frame))) = client.incoming.next().await else { panic!("no farewell") };
        assert_eq!(frame.code, 1001);
    };
    tokio::join!(stopping, session(&hub, line).run());
}

#[tokio::test]
async fn a_deputy_hears_of_it_when_their_time_begins_though_nobody_writes() {
    let database = Database::sqlite().expect("a file");
    let hub = hub(&database).await;
    let (line, mut client) = line();
    tokio::time::pause();
    let principal = Principal::new("ana".parse().expect("a name"), ["reviewer".to_owned()].into());
    let begins = SystemClock.now().after(Duration::from_secs(10));
    let actor = Actor { rights_until: Some(begins), ..Actor::of(principal) };
    let session = SocketSession::new(line, hub.clone(), Arc::new(Deputy(actor.clone())), actor);
    let start = Instant::now();
    let hearing = async move {
        let Some(Message::Text(_)) = client.incoming.next().await else { panic!("no welcome") };
        let Some(Message::Text(told)) = client.incoming.next().await else { panic!("nothing is told") };
        assert!(matches!(serde_json::from_str(&told), Ok(ServerMessage::Resync)), "{told}");
        assert!(Instant::now().duration_since(start) <= Duration::from_secs(11));
        drop(client);
    };
    tokio::join!(hearing, session.run());
}
