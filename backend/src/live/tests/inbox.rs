//! The numbers of the inbox, and the messages when rights change.

use shared::api::UserPatch;
use shared::deputy::Deputyship;
use shared::id::DeputyId;
use shared::protocol::{ClientMessage, Topic};

use super::*;
use crate::store::tests::support::{World, actor, decide, decided, new_run};
use crate::store::{Change, Operation, Standing, UserChange};

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

async fn world() -> (World, Hub) {
    let world = World::sqlite().await;
    let options = HubOptions::new(world.store.clone(), world.clock.clone(), Streams::default());
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
        let snapshot = client.next().await;
        let ServerMessage::Snapshot { pending: 1, reviews, .. } = snapshot else { panic!("{snapshot:?}") };
        assert!(reviews.is_empty(), "no list was asked for");
        assert_eq!(client.numbers((1, 1)).await, 0);
        let before = world.store.tally().await.expect("counts").cursor;
        let begun = Instant::now();
        for n in 0..20 {
            world.launch(&format!("number {n}")).await;
        }
        let others = client.numbers((21, 21)).await;
        let most = 2 + begun.elapsed().as_millis() / 300;
        assert!(others as u128 <= most, "changes are told in at most {most} messages before the last, not {others}");
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

/// Authenticates one person, with the rights that they have in the store.
struct Stored(Store, Actor);

#[async_trait]
impl Authenticate for Stored {
    fn is_origin_allowed(&self, _: &HeaderMap) -> bool {
        true
    }
    async fn authenticate(&self, _: &HeaderMap) -> Result<Actor, Problem> {
        self.refresh(&self.1).await
    }
    async fn refresh(&self, actor: &Actor) -> Result<Actor, Problem> {
        let record = self.0.user(&actor.principal.username).await.expect("reads").expect("is there");
        let Standing { stands_for, deputy_of, .. } = self.0.standing(&record).await.expect("reads");
        let principal = Principal { stands_for, ..record.principal(None) };
        Ok(Actor { deputy_of, ..Actor::of(principal) })
    }
}

#[tokio::test]
async fn a_deputy_is_told_when_the_person_may_not_log_in_and_when_they_may_again() {
    let (world, hub) = world().await;
    world.add_user("lea", &["reviewer", "legal"]).await;
    let (now, lea) = (world.clock.now(), "lea".parse().expect("a name"));
    let span = Deputyship {
        id: DeputyId(new_run().0),
        person: lea,
        deputy: "tom".parse().expect("a name"),
        from: now,
        until: now.after(Duration::from_hours(24)),
        note: None,
        made_by: "lea".parse().expect("a name"),
        created_at: now,
    };
    let named = Change { by: Some(actor("lea")), key: None, operation: Operation::NameDeputy(Box::new(span)) };
    world.store.commit(named).await.expect("a deputy is named");
    let stored = Stored(world.store.clone(), actor("tom"));
    let deputy = stored.authenticate(&HeaderMap::new()).await.expect("tom");
    let (line, client) = line();
    let mut client = Heard(client);
    let session = SocketSession::new(line, hub.clone(), Arc::new(stored), deputy);
    let talking = async {
        for active in [false, true] {
            client.subscribe(&[Topic::Inbox]);
            while !matches!(client.next().await, ServerMessage::Inbox { .. }) {}
            let patch = UserPatch { active: Some(active), ..UserPatch::default() };
            let change = UserChange { username: "lea".parse().expect("a name"), patch, password_hash: None };
            world.store.commit(Change::by_server(Operation::UpdateUser(Box::new(change)))).await.expect("is changed");
            assert_eq!(client.next().await, ServerMessage::Rights, "active: {active}");
            assert_eq!(client.next().await, ServerMessage::Resync, "active: {active}");
        }
        drop(client);
    };
    tokio::join!(talking, session.run());
}
