//! Replays end, and no other events keep them from it.

use shared::id::RunId;
use shared::log::{Cursor, EntryKind};
use shared::protocol::ClientMessage;

use super::super::hub::Tail;
use super::super::replay::{Follower, ReplayPlace, Replayed};
use super::*;
use crate::store::tests::support::{World, launch};
use crate::store::{CommitFollower as _, Resume};
use crate::token_stream::Chunk;

/// Starts a hub with this limit of replays, over a log with entries.
async fn hub(world: &World, max_replay: usize, streams: &Streams) -> Hub {
    let clock = world.clock.clone();
    let options = HubOptions { max_replay, ..HubOptions::new(world.store.clone(), clock, streams.clone()) };
    Hub::run(options).await.expect("a hub")
}

fn subscribe(client: &Client, after: Cursor, topics: &[String]) {
    let topics = topics.iter().map(|topic| topic.clone().try_into().expect("a topic")).collect();
    let subscribe = ClientMessage::Subscribe { after: Some(after), topics: Some(topics) };
    let text = serde_json::to_string(&subscribe).expect("JSON");
    client.outgoing.unbounded_send(Message::text(text)).expect("open");
}

async fn heard(client: &mut Client) -> ServerMessage {
    loop {
        let heard = tokio::time::timeout(Duration::from_secs(20), client.incoming.next()).await;
        if let Some(Message::Text(text)) = heard.expect("in time") {
            return serde_json::from_str(&text).expect("a message");
        }
    }
}

#[tokio::test]
async fn a_cursor_that_is_too_old_gets_a_snapshot() {
    let world = World::sqlite().await;
    // The limit is less than the log has now, and as much as a launch adds.
    let hub = hub(&world, 4, &Streams::default()).await;
    let origin = world.store.origin();
    let (line, mut client) = line();
    let talking = async {
        assert!(matches!(heard(&mut client).await, ServerMessage::Welcome { .. }));
        let topics = ["reviews".to_owned(), "runs".to_owned()];
        subscribe(&client, origin, &topics);
        let ServerMessage::Snapshot { cursor, pending: 0, .. } = heard(&mut client).await else {
            panic!("no snapshot")
        };
        // From there on, every entry arrives.
        let run = world.launch("hello").await.summary.id;
        let ServerMessage::Entry(entry) = heard(&mut client).await else { panic!("no entry") };
        assert_eq!(entry.event.run_id, Some(run));
        // A position that is near enough is replayed, without a snapshot.
        subscribe(&client, cursor, &topics);
        loop {
            match heard(&mut client).await {
                ServerMessage::Entry(entry) if entry.event.kind == EntryKind::RunStarted => break,
                ServerMessage::Entry(_) => {}
                other => panic!("{other:?}"),
            }
        }
        drop(client);
    };
    tokio::join!(talking, session(&hub, line).run());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_goes_on_while_text_streams() {
    let world = World::sqlite().await;
    let streams = Streams::default();
    let hub = hub(&world, 1000, &streams).await;
    let before = world.store.head().await.expect("reads");
    let run = world.launch("hello").await.summary.id;
    let flood = tokio::spawn(async move {
        let other = RunId(uuid::Uuid::from_u128(7));
        let node: shared::id::NodeId = "draft".parse().expect("an id");
        loop {
            let (agent, task) = ("clerk".to_owned(), shared::id::TaskId(uuid::Uuid::from_u128(7)));
            let text = "word ".to_owned();
            streams.send(Chunk { run: other, node: node.clone(), visit: 1, agent, task, attempt: 1, offset: 0, text });
            tokio::task::yield_now().await;
        }
    });
    let (line, mut client) = line();
    let talking = async {
        assert!(matches!(heard(&mut client).await, ServerMessage::Welcome { .. }));
        subscribe(&client, before, &[format!("run:{run}")]);
        let ServerMessage::Entry(entry) = heard(&mut client).await else { panic!("no entry") };
        assert_eq!(entry.event.run_id, Some(run));
        drop(client);
    };
    tokio::join!(talking, session(&hub, line).run());
    flood.abort();
}

#[tokio::test]
async fn a_replay_that_is_ahead_of_the_tail_hears_nothing_twice() {
    let world = World::sqlite().await;
    let other = world.another().await;
    let tail = Tail::at_end(HubOptions::new(world.store.clone(), world.clock.clone(), Streams::default())).await;
    let mut tail = tail.expect("the log can be read");
    let (hub, _listening) = (tail.hub.clone(), tail.hub.listen());
    // The first run is in this server's cache; of the second, it knows only what is in the database.
    world.launch("on this server").await;
    other.commit(launch("on another server")).await.expect("a run");
    let mut follower = Follower::new(&hub);
    follower.begin(ReplayPlace::Replay(other.head().await.expect("reads")));
    let early = tokio::time::timeout(Duration::from_millis(200), follower.next(&hub)).await;
    assert!(early.is_err(), "where to go on in the ring is not known before the tail is there: {early:?}");

    let last = world.launch("after both").await.summary.id;
    while tail.advance().await.expect("reads") == Resume::Now {}
    let mut heard = Vec::new();
    while heard.is_empty() {
        let Replayed::Entries(entries, place) = follower.next(&hub).await.expect("reads") else { panic!("no entries") };
        heard.extend(entries.iter().map(|entry| entry.run_id));
        follower.place = place;
    }
    assert!(heard.iter().all(|run| *run == Some(last)), "{heard:?}, and only {last} was new");
}
