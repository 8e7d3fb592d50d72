//! The text of agents reaches the sockets of every server on one database.

use std::sync::atomic::{AtomicUsize, Ordering};

use shared::id::{NodeId, RunId, TaskId};
use shared::protocol::ClientMessage;

use super::*;
use crate::store::tests::support::World;
use crate::token_stream::Chunk;

/// Starts a server on the database of a world. Its store exchanges text with the others.
async fn server(store: &Store, world: &World) -> (Hub, Streams) {
    let streams = Streams::default();
    store.relay(streams.clone());
    let options = HubOptions::new(store.clone(), world.clock.clone(), streams.clone());
    (Hub::run(options).await.expect("a hub"), streams)
}

fn chunk(run: RunId, offset: usize, text: &str) -> Chunk {
    let node: NodeId = "check".parse().expect("an id");
    let (agent, task) = ("clerk".to_owned(), TaskId(uuid::Uuid::from_u128(1)));
    Chunk { run, node, visit: 1, agent, task, attempt: 1, offset: offset as u64, text: text.to_owned() }
}

async fn heard(client: &mut Client) -> ServerMessage {
    loop {
        let heard = tokio::time::timeout(Duration::from_secs(20), client.incoming.next()).await;
        if let Some(Message::Text(text)) = heard.expect("in time") {
            return serde_json::from_str(&text).expect("a message");
        }
    }
}

/// Follows a run as a person with this role, until the whole text has arrived piece by piece.
async fn follow(hub: &Hub, role: &str, run: RunId, whole: &str) {
    let (line, mut client) = line();
    let principal = Principal::new("ana".parse().expect("a name"), [role.to_owned()].into());
    let actor = Actor::of(principal);
    let session = SocketSession::new(line, hub.clone(), Arc::new(One(actor.clone())), actor);
    let after = hub.head();
    let following = async move {
        let topics = Some(vec![format!("run:{run}").try_into().expect("a topic")]);
        let text = serde_json::to_string(&ClientMessage::Subscribe { after: Some(after), topics }).expect("JSON");
        client.outgoing.unbounded_send(Message::text(text)).expect("open");
        let mut come = String::new();
        while come != whole {
            // A lost piece arrives again, since the text is sent repeatedly until it is complete.
            if let ServerMessage::Stream { run: of, offset, text, .. } = heard(&mut client).await
                && offset == come.len() as u64
            {
                assert_eq!(of, run);
                come.push_str(&text);
            }
        }
    };
    tokio::join!(following, session.run());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agents_text_reaches_a_socket_of_another_server() {
    let Some(world) = World::postgres().await else { return };
    let there = world.another().await;
    let (_, here_streams) = server(&world.store, &world).await;
    let (hub, there_streams) = server(&there, &world).await;
    let (run, other) = (world.launch("hello").await.summary.id, world.launch("other").await.summary.id);
    let mut own = here_streams.subscribe();
    let mut arrived = there_streams.subscribe();
    // Longer than one notification, with characters that JSON escapes.
    let long = "\u{1}\"é".repeat(2500);
    let rounds = Arc::new(AtomicUsize::new(0));
    let (text, sender, counted) = (long.clone(), here_streams.clone(), Arc::clone(&rounds));
    let sending = tokio::spawn(async move {
        // Text is sent only once the other server has announced that someone follows the run, so it is sent again.
        loop {
            sender.send(chunk(other, 0, "of nobody"));
            sender.send(chunk(run, 0, &text));
            sender.send(chunk(run, text.len(), "END"));
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    });
    follow(&hub, "reviewer", run, &format!("{long}END")).await;
    sending.abort();
    let _ = sending.await;
    while let Ok(chunk) = arrived.try_recv() {
        assert_eq!(chunk.run, run, "what nobody follows is not sent");
    }
    // Text does not come back to the server that sent it.
    let mut begun = 0;
    while let Ok(chunk) = own.try_recv() {
        begun += usize::from(chunk.run == run && chunk.offset == 0);
    }
    assert_eq!(begun, rounds.load(Ordering::SeqCst));
    there.close().await;
    world.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_are_those_at_the_socket_that_gets_the_text() {
    let Some(world) = World::postgres().await else { return };
    let there = world.another().await;
    let (_, here_streams) = server(&world.store, &world).await;
    let (hub, _) = server(&there, &world).await;
    let run = world.launch("hello").await.summary.id;
    let sending = tokio::spawn(async move {
        loop {
            here_streams.send(chunk(run, 0, "END"));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    let others = async {
        for _ in 0..5 {
            follow(&hub, "reviewer", run, "END").await;
        }
    };
    tokio::select! {
        biased;
        () = follow(&hub, "nobody", run, "END") => panic!("text went to somebody who may not see the run"),
        () = others => {}
    }
    sending.abort();
    there.close().await;
    world.store.close().await;
}
