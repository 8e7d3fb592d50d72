//! The numbers of the inbox, and the messages when rights change.

use shared::protocol::{ClientMessage, Topic};

use super::*;
use crate::store::tests::support::{World, decide, decided};

struct Heard(Client);

impl Heard {
    fn subscribe(&self, topics: &[Topic]) {
        let subscribe = ClientMessage::Subscribe { after: None, topics: Some(topics.to_vec()) };
        let text = serde_json::to_string(&subscribe).expect("JSON");
        self.0.outgoing.unbounded_send(Message::text(text)).expect("open");
    }

    async fn next(&mut self) -> ServerMessage {
        loop {
            let heard = tokio::time::timeout(Duration::from_secs(20), self.0.incoming.next()).await;
            if let Some(Message::Text(text)) = heard.expect("in time") {
                return serde_json::from_str(&text).expect("a message");
            }
        }
    }

    /// Waits for these numbers. Returns how many other messages with numbers came before.
    async fn numbers(&mut self, wanted: (u64, u64)) -> usize {
        for others in 0.. {
            match self.next().await {
                ServerMessage::Inbox { pending, mine, .. } if (pending, mine) == wanted => return others,
                ServerMessage::Inbox { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        unreachable!("somebody answers")
    }
}

async fn world() -> (World, HubHandle) {
    let world = World::sqlite().await;
    let options = Options::new(world.store.clone(), world.clock.clone(), Streams::default());
    let hub = Hub::run(options).await.expect("a hub");
    (world, hub)
}

#[tokio::test]
async fn the_numbers_follow_what_happens() {
    let (world, hub) = world().await;
    let review = world.launched_review("first").await;
    let (line, client) = line();
    let mut client = Heard(client);
    let talking = async {
        assert!(matches!(client.next().await, ServerMessage::Welcome { .. }));
        client.subscribe(&[Topic::Inbox]);
        assert!(matches!(client.next().await, ServerMessage::Snapshot { pending: 0, .. }), "no list was asked for");
        assert_eq!(client.numbers((1, 1)).await, 0);
        let before = world.store.tally().await.expect("counts").cursor;
        for n in 0..20 {
            world.launch(&format!("number {n}")).await;
        }
        let others = client.numbers((21, 21)).await;
        assert!(others <= 4, "twenty changes at once are told in few messages, not {others}");
        decided(world.store.commit(decide(&review, "tom", "yes")).await).expect("decided");
        client.numbers((20, 20)).await;
        // A change that does not affect the numbers is not sent, so the next message is the pong.
        client.0.outgoing.unbounded_send(Message::text(r#"{"type":"ping"}"#)).expect("open");
        let ServerMessage::Pong { cursor, .. } = client.next().await else { panic!("no answer") };
        assert_ne!(cursor, before);
        drop(client);
    };
    tokio::join!(talking, session(&hub, line).run());
}

#[tokio::test]
async fn nobody_is_told_numbers_who_did_not_ask() {
    let (world, hub) = world().await;
    let (line, client) = line();
    let mut client = Heard(client);
    let talking = async {
        assert!(matches!(client.next().await, ServerMessage::Welcome { .. }));
        client.subscribe(&[Topic::Reviews]);
        assert!(matches!(client.next().await, ServerMessage::Snapshot { pending: 0, .. }));
        world.launch("first").await;
        assert!(matches!(client.next().await, ServerMessage::Entry(_)));
        world.launch("second").await;
        assert!(matches!(client.next().await, ServerMessage::Entry(_)));
        drop(client);
    };
    tokio::join!(talking, session(&hub, line).run());
}

#[tokio::test]
async fn whoever_asks_for_numbers_is_told_that_their_rights_have_changed() {
    let (world, hub) = world().await;
    let principal = Principal::new("ana".parse().expect("a name"), ["reviewer".to_owned()].into());
    let actor = Actor::of(principal);
    let (line, client) = line();
    let mut client = Heard(client);
    let session = SocketSession::new(line, hub.clone(), Arc::new(Deputy(actor.clone())), actor);
    let talking = async {
        assert!(matches!(client.next().await, ServerMessage::Welcome { .. }));
        client.subscribe(&[Topic::Inbox]);
        assert_eq!(client.next().await, ServerMessage::Rights);
        assert!(matches!(client.next().await, ServerMessage::Snapshot { .. }));
        assert_eq!(client.numbers((0, 0)).await, 0);
        drop((client, world));
    };
    tokio::join!(talking, session.run());
}
