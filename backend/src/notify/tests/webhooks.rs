//! Webhooks are signed, and are repeated until the program confirms them.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;
use shared::decision::Via;
use shared::log::EntryKind;
use shared::notification::{DeliveryQuery, DeliveryStatus};
use wiremock::matchers::path;
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use super::super::failure::MAX_FAILURES;
use super::super::feed::Feeder;
use super::super::plan::{Announcement, to_programs};
use super::{NEXT_SECRET, Outlets, SECRET, URL, eventually, feeder, secrets, settings, start};
use crate::engine::Input;
use crate::standard_webhooks;
use crate::store::tests::support::{World, decide, on_both, on_review, person};
use crate::store::{Change, CommitFollower as _, DeliveryLane, NewFlow, Operation, Resume};

on_both! {
    a_program_that_fails_first_is_told_again_under_the_same_id,
    what_was_to_be_told_before_a_crash_is_told_once_after_it,
    of_two_servers_one_makes_deliveries_until_it_ends,
    a_program_hears_of_a_review_when_it_is_escalated_to_its_role,
    a_program_hears_of_comments_under_a_name_of_their_own,
    a_message_that_nobody_will_take_is_given_up_visibly,
    a_message_that_ends_every_server_is_given_up_unsent,
}

pub(super) fn toml(receiver: &MockServer, rest: &str) -> String {
    format!("[webhooks.desk]\nurl = \"{}/hook\"\n{rest}", receiver.uri())
}

/// Does what a receiver does with each request: checks the signature with its secret, and reads the body.
pub(super) fn verified(request: &Request, secret: &str) -> (String, Value) {
    let header = |name: &str| request.headers[name].to_str().expect("text").to_owned();
    let (id, at) = (header("webhook-id"), header("webhook-timestamp").parse().expect("seconds"));
    let body = String::from_utf8(request.body.clone()).expect("UTF-8");
    let key = BASE64.decode(secret.trim_start_matches("whsec_")).expect("base64");
    let expected = standard_webhooks::signature(&key, &id, at, &body);
    assert!(header("webhook-signature").split(' ').any(|one| one == expected), "the signature does not fit");
    (id, serde_json::from_str(&body).expect("JSON"))
}

async fn a_program_hears_of_a_review_when_it_is_escalated_to_its_role(world: World) {
    let flow = r#"{ "id": "ask", "nodes": { "check": { "human": { "prompt": "Go?", "timeout": "1h",
        "options": [{ "id": "yes", "kind": "accept", "label": "Yes" }],
        "on_timeout": { "escalate": "lead", "extend": "1h", "then": "reject" } } } } }"#;
    let new = NewFlow {
        flow: serde_json::from_str(flow).expect("a flow"),
        source: flow.to_owned(),
        digest: "sha256:2".to_owned(),
    };
    world.store.commit(Change::by_server(Operation::SaveFlow(Box::new(new)))).await.expect("the flow is saved");
    world.add_user("lea", &["lead"]).await;
    let review = world.launched_review("").await;
    world.clock.advance(Duration::from_mins(90));
    world.store.commit(decide(&review, "lea", "yes")).await.expect("it is hers now");
    let told = async |kind: EntryKind, role: &str| {
        let webhook = format!("[webhooks.desk]\nurl = \"https://desk.example\"\nroles = [\"{role}\"]");
        let outlets = Outlets::new(settings(&webhook), &secrets(), URL.to_owned()).expect("the settings hold");
        let entries = world.told(kind).await;
        let deliveries = entries.iter().filter(|entry| entry.event.kind == kind).filter_map(|entry| {
            let announced = entry.event.announces()?;
            let notice = Announcement { entry, before: &entry.cursor, announced: &announced };
            Some(to_programs(&notice, &outlets).len())
        });
        deliveries.sum::<usize>()
    };
    for (kind, reviewer, lead) in
        [(EntryKind::ReviewRequested, 1, 0), (EntryKind::ReviewUpdated, 0, 1), (EntryKind::ReviewResolved, 1, 1)]
    {
        assert_eq!((told(kind, "reviewer").await, told(kind, "lead").await), (reviewer, lead), "{kind}");
    }
}

async fn a_program_hears_of_comments_under_a_name_of_their_own(world: World) {
    let receiver = MockServer::start().await;
    Mock::given(path("/hook")).respond_with(ResponseTemplate::new(204)).mount(&receiver).await;
    let notifier = start(&world, &settings(&toml(&receiver, "events = [\"review.commented\"]"))).await;
    let review = world.launched_review("hello").await;
    let claim = Input::Claim { review: review.id, by: person("tom"), via: Via::Human };
    world.store.commit(on_review(review.id, "tom", claim)).await.expect("claimed");
    let input = Input::Comment { review: review.id, by: person("tom"), via: Via::Human, text: "Why?".to_owned() };
    world.store.commit(on_review(review.id, "tom", input)).await.expect("it is commented on");
    let told = eventually(&world, "it is told", async || requests(&receiver).await.pop()).await;
    let (_, body) = verified(&told, SECRET);
    assert_eq!((&body["type"], &body["data"]["actor"]), (&"review.commented".into(), &"tom".into()));
    assert_eq!(body["data"]["review"]["comments"][0]["text"], "Why?");
    notifier.shutdown().await;
    assert_eq!(requests(&receiver).await.len(), 1, "and of no other change");
}

pub(super) async fn requests(receiver: &MockServer) -> Vec<Request> {
    receiver.received_requests().await.expect("requests are recorded")
}

async fn a_program_that_fails_first_is_told_again_under_the_same_id(world: World) {
    let receiver = MockServer::start().await;
    let busy = Mock::given(path("/hook")).respond_with(ResponseTemplate::new(503).set_body_string("busy"));
    busy.up_to_n_times(2).mount(&receiver).await;
    Mock::given(path("/hook")).respond_with(ResponseTemplate::new(204)).mount(&receiver).await;
    let notifier = start(&world, &settings(&toml(&receiver, "flows = [\"ask\"]"))).await;
    let review = world.launched_review("hello").await;
    let told = eventually(&world, "it is told at the third time", async || {
        Some(requests(&receiver).await).filter(|requests| requests.len() == 3)
    })
    .await;
    // While a secret is replaced, receivers that know the old one or the new one both accept the message.
    let (id, body) = verified(&told[0], SECRET);
    assert_eq!(body["type"], "review.requested");
    assert_eq!(body["data"]["review"]["id"], review.id.to_string());
    assert_eq!(body["data"]["review"]["digest"], review.digest);
    assert_eq!(body["data"]["notification"]["type"], "approval_required");
    assert_eq!(body["data"]["notification"]["expires_at"], body["data"]["review"]["expires_at"]);
    assert_eq!(body["data"]["url"], format!("https://desk.example/reviews/{}", review.id));
    for again in &told[1..] {
        assert_eq!(verified(again, NEXT_SECRET), (id.clone(), body.clone()));
    }
    world.store.commit(decide(&review, "ana", "yes")).await.expect("decided");
    let resolved = eventually(&world, "the end is told", async || requests(&receiver).await.into_iter().nth(3)).await;
    let (other, body) = verified(&resolved, SECRET);
    assert_ne!(other, id);
    assert_eq!((&body["type"], &body["data"]["actor"]), (&"review.resolved".into(), &"ana".into()));
    assert_eq!(body["data"]["review"]["resolution"]["outcome"], "accepted");
    assert!(body["data"].get("notification").is_none(), "nothing is wanted any more");
    notifier.shutdown().await;
}

async fn what_was_to_be_told_before_a_crash_is_told_once_after_it(world: World) {
    let receiver = MockServer::start().await;
    Mock::given(path("/hook")).respond_with(ResponseTemplate::new(200)).mount(&receiver).await;
    let settings = settings(&toml(&receiver, "events = [\"review.requested\"]"));
    // The first server makes the delivery, and ends before it sends it.
    let mut first = feeder(&world, &settings).await;
    let review = world.launched_review("one").await;
    eventually(&world, "the delivery waits", async || {
        first.advance().await.expect("reads");
        world.store.next_delivery(DeliveryLane::Others, &[]).await.expect("reads")
    })
    .await;
    drop(first);
    // What happens while no server runs is delivered, too.
    let late = world.launched_review("two").await;
    let notifier = start(&world, &settings).await;
    let told = eventually(&world, "both are told", async || {
        Some(requests(&receiver).await).filter(|requests| requests.len() == 2)
    })
    .await;
    let mut reviews: Vec<Value> =
        told.iter().map(|one| verified(one, SECRET).1["data"]["review"]["id"].clone()).collect();
    reviews.sort_by_key(|id| *id != review.id.to_string());
    assert_eq!(reviews, [review.id.to_string(), late.id.to_string()]);
    assert_ne!(told[0].headers["webhook-id"], told[1].headers["webhook-id"]);
    let sent = DeliveryQuery { status: Some(DeliveryStatus::Sent), ..DeliveryQuery::default() };
    eventually(&world, "both are written down", async || {
        Some(world.store.deliveries(&sent).await.expect("reads").items).filter(|sent| sent.len() == 2)
    })
    .await;
    notifier.shutdown().await;
    assert_eq!(requests(&receiver).await.len(), 2, "each once");
}

async fn of_two_servers_one_makes_deliveries_until_it_ends(world: World) {
    let receiver = MockServer::start().await;
    let settings = settings(&toml(&receiver, "events = [\"review.requested\"]"));
    let (mut first, mut second) = (feeder(&world, &settings).await, feeder(&world, &settings).await);
    let make = async |feeder: &mut Feeder| {
        let before = world.store.outbox().await.expect("reads");
        eventually(&world, "a delivery is made", async || {
            feeder.advance().await.expect("reads");
            (world.store.outbox().await.expect("reads") != before).then_some(())
        })
        .await;
    };
    for prompt in ["one", "two"] {
        world.launched_review(prompt).await;
        make(&mut first).await;
        let next = second.advance().await.expect("reads");
        assert!(matches!(next, Resume::After(_)), "{prompt}: the first server does it, but then {next:?}");
    }
    drop(first);
    world.launched_review("three").await;
    make(&mut second).await;
    let made = world
        .store
        .claim_deliveries(DeliveryLane::Others, "sends", 10, Duration::from_mins(1), &[])
        .await
        .expect("claims");
    assert_eq!(made.len(), 3, "each once");
}

async fn a_message_that_nobody_will_take_is_given_up_visibly(world: World) {
    let receiver = MockServer::start().await;
    let gone = ResponseTemplate::new(410).set_body_string("nobody\nhere");
    Mock::given(path("/hook")).respond_with(gone).mount(&receiver).await;
    let notifier = start(&world, &settings(&toml(&receiver, "roles = []"))).await;
    world.launched_review("hello").await;
    let given_up = eventually(&world, "it is given up", async || {
        world.store.deliveries(&DeliveryQuery::default()).await.expect("reads").items.pop()
    })
    .await;
    assert_eq!((given_up.channel.as_str(), given_up.target.as_str(), given_up.attempts), ("webhook", "desk", 1));
    assert_eq!(given_up.error.as_deref(), Some("HTTP 410 Gone: nobody here"));
    notifier.shutdown().await;
}

/// A host in the settings is not reachable in a private network unless it is allowed.
#[tokio::test]
async fn a_webhook_reaches_no_private_host_that_is_not_allowed() {
    let world = World::sqlite().await;
    let receiver = MockServer::start().await;
    let mut settings = settings(&toml(&receiver, ""));
    settings.allowed_hosts.clear();
    let notifier = start(&world, &settings).await;
    world.launched_review("hello").await;
    let given_up = eventually(&world, "it is given up", async || {
        world.store.deliveries(&DeliveryQuery::default()).await.expect("reads").items.pop()
    })
    .await;
    assert!(given_up.error.is_some_and(|error| error.contains("public internet")));
    assert!(requests(&receiver).await.is_empty());
    notifier.shutdown().await;
}

async fn a_message_that_ends_every_server_is_given_up_unsent(world: World) {
    let receiver = MockServer::start().await;
    let settings = settings(&toml(&receiver, "events = [\"review.requested\"]"));
    let mut first = feeder(&world, &settings).await;
    world.launched_review("hello").await;
    eventually(&world, "the delivery waits", async || {
        first.advance().await.expect("reads");
        world.store.next_delivery(DeliveryLane::Others, &[]).await.expect("reads")
    })
    .await;
    // Each server claims the delivery, and ends before it records an outcome.
    for _ in 0..=MAX_FAILURES {
        let claimed =
            world.store.claim_deliveries(DeliveryLane::Others, "ends", 1, Duration::ZERO, &[]).await.expect("claims");
        assert_eq!(claimed.len(), 1);
    }
    let notifier = start(&world, &settings).await;
    let given_up = eventually(&world, "it is given up", async || {
        world.store.deliveries(&DeliveryQuery::default()).await.expect("reads").items.pop()
    })
    .await;
    assert_eq!(given_up.error.as_deref(), Some("servers repeatedly ended while sending it"));
    assert!(requests(&receiver).await.is_empty());
    notifier.shutdown().await;
}
