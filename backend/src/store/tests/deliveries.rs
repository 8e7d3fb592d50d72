//! Each delivery is made and sent once, no matter which server reads the log and which one sends.

use std::time::Duration;

use shared::id::ReviewId;
use shared::notification::{Channel, DeliveryQuery, DeliveryStatus, Occasion};

use super::support::{World, after, decide, launch, on_both};
use crate::store::{
    Committed, DeliveryEvent, DeliveryKind, DeliveryLane, DeliveryOutcome, DeliverySubject, NewDelivery, Operation,
    Progress, Store, StoredDelivery, WorkTable,
};

const LEASE: Duration = Duration::from_secs(30);

on_both! {
    of_two_servers_that_read_the_same_entries_one_makes_the_deliveries,
    a_server_that_is_frozen_while_it_makes_deliveries_holds_up_the_others_for_seconds_only,
    a_delivery_is_held_by_one_sender_and_ends_once,
    mails_and_other_deliveries_are_claimed_apart,
    what_was_given_up_is_listed_and_tried_again,
    a_lease_is_renewed_while_it_is_held_and_ends_when_it_is_released,
    a_delivery_whose_server_ended_counts_as_failed,
    a_message_that_can_be_changed_is_kept_as_long_as_its_review_waits,
    the_url_of_a_callback_is_kept_as_long_as_its_delivery,
}

fn delivery(world: &World, target: &str, hours: i64) -> NewDelivery {
    use crate::clock::Clock as _;
    NewDelivery {
        id: NewDelivery::id_of(&["entry", target]),
        kind: DeliveryKind::Webhook,
        target: target.to_owned(),
        event: DeliveryEvent::Announce(Occasion::Requested),
        subject: DeliverySubject::Review(ReviewId(uuid::Uuid::max()), None),
        place: shared::log::Cursor("somewhere".to_owned()),
        receipt: None,
        due_at: after(world.clock.now(), hours),
    }
}

async fn settle(store: &Store, held: &StoredDelivery, outcome: &DeliveryOutcome) -> bool {
    store.settle(&[(held, outcome.clone())]).await.expect("writes") == [true]
}

async fn of_two_servers_that_read_the_same_entries_one_makes_the_deliveries(world: World) {
    let other = world.another().await;
    let (origin, head) = (world.store.origin(), world.store.head().await.expect("reads"));
    assert_eq!(world.store.outbox().await.expect("reads"), None);
    assert!(world.store.feed(None, &origin, &[]).await.expect("writes"));
    assert!(!other.feed(None, &head, &[]).await.expect("writes"), "the place is there already");
    let told = [delivery(&world, "desk", -1)];
    let (one, two) =
        tokio::join!(world.store.feed(Some(&origin), &head, &told), other.feed(Some(&origin), &head, &told));
    assert!(one.expect("writes") != two.expect("writes"), "one of them");
    assert_eq!(world.store.outbox().await.expect("reads"), Some(head));
    assert_eq!(world.store.claim_deliveries(DeliveryLane::Others, "a", 10, LEASE, &[]).await.expect("claims").len(), 1);
    other.close().await;
}

async fn a_server_that_is_frozen_while_it_makes_deliveries_holds_up_the_others_for_seconds_only(world: World) {
    let (origin, head) = (world.store.origin(), world.store.head().await.expect("reads"));
    assert!(world.store.feed(None, &origin, &[]).await.expect("writes"));
    if !world.database.url.starts_with("postgres") {
        // With SQLite, there is only one server.
        return;
    }
    let other = world.another().await;
    let mut frozen = world.store.inner.db.write_on_this_thread().await.expect("writes");
    let moved = frozen.move_place(("outbox", "place"), origin.0.as_str(), head.0.as_str()).await;
    assert!(moved.expect("writes"), "it has moved the place, and does not end");
    let begun = std::time::Instant::now();
    assert!(other.feed(Some(&origin), &head, &[]).await.expect("writes"), "the frozen one has made nothing");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    drop(frozen);
    other.close().await;
}

async fn a_delivery_is_held_by_one_sender_and_ends_once(world: World) {
    let made = [delivery(&world, "now", -1), delivery(&world, "later", 2)];
    world.store.add_deliveries(&made).await.expect("writes");
    world.store.add_deliveries(&made).await.expect("the same again changes nothing");
    let other = world.another().await;
    let (one, two) = tokio::join!(
        world.store.claim_deliveries(DeliveryLane::Others, "a", 10, LEASE, &[]),
        other.claim_deliveries(DeliveryLane::Others, "b", 10, LEASE, &[])
    );
    let mut claimed = one.expect("claims");
    claimed.extend(two.expect("claims"));
    assert_eq!(claimed.len(), 1, "one, and what is due later is not");
    let first = claimed.remove(0);
    assert_eq!((first.id, first.attempt, first.failures), (made[0].id, 1, 0));
    // When the lease has ended, another server may claim the delivery, and the outcome of the first no longer counts.
    let failed = DeliveryOutcome::Failed { after: Duration::ZERO, error: "HTTP 500".to_owned() };
    assert!(settle(&world.store, &first, &failed).await);
    let second = other.claim_deliveries(DeliveryLane::Others, "b", 10, LEASE, &[]).await.expect("claims").remove(0);
    assert_eq!((second.id, second.attempt, second.failures), (first.id, 2, 1));
    let taken = DeliveryOutcome::SENT;
    assert!(!settle(&world.store, &first, &taken).await);
    assert!(settle(&other, &second, &taken).await);
    assert!(!settle(&other, &second, &taken).await, "it has ended");
    assert_eq!(world.store.sent_since(DeliveryKind::Webhook, "now", LEASE).await.expect("reads").0, 1);
    assert_eq!(
        world.store.next_delivery(DeliveryLane::Others, &[]).await.expect("reads").map(|next| next.at),
        Some(made[1].due_at)
    );
    other.close().await;
}

async fn mails_and_other_deliveries_are_claimed_apart(world: World) {
    let mail = NewDelivery { kind: DeliveryKind::Person(Channel::Email), ..delivery(&world, "ana", -2) };
    world.store.add_deliveries(&[mail, delivery(&world, "desk", -1)]).await.expect("writes");
    for (lane, target) in [(DeliveryLane::Others, "desk"), (DeliveryLane::Mails, "ana")] {
        assert!(world.store.next_delivery(lane, &[]).await.expect("reads").is_some());
        let claimed = world.store.claim_deliveries(lane, "a", 10, LEASE, &[]).await.expect("claims");
        assert_eq!(claimed.iter().map(|held| held.target.as_str()).collect::<Vec<_>>(), [target]);
    }
}

async fn what_was_given_up_is_listed_and_tried_again(world: World) {
    world.store.add_deliveries(&[delivery(&world, "desk", -1)]).await.expect("writes");
    let held = world.store.claim_deliveries(DeliveryLane::Others, "a", 1, LEASE, &[]).await.expect("claims").remove(0);
    let given_up = DeliveryOutcome::GivenUp { error: "HTTP 410 Gone".to_owned() };
    assert!(settle(&world.store, &held, &given_up).await);
    let listed = world.store.deliveries(&DeliveryQuery::default()).await.expect("reads").items;
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].status, listed[0].attempts), (DeliveryStatus::GivenUp, 1));
    assert_eq!(listed[0].error.as_deref(), Some("HTTP 410 Gone"));
    assert!(world.store.retry_delivery(held.id).await.expect("writes"));
    assert!(!world.store.retry_delivery(held.id).await.expect("writes"), "it waits already");
    let again = world.store.claim_deliveries(DeliveryLane::Others, "a", 1, LEASE, &[]).await.expect("claims").remove(0);
    assert_eq!((again.id, again.failures), (held.id, 0));
    assert!(settle(&world.store, &again, &DeliveryOutcome::SENT).await);
    world.store.forget_deliveries(LEASE).await.expect("writes");
    let query = DeliveryQuery { status: Some(DeliveryStatus::Sent), ..DeliveryQuery::default() };
    assert_eq!(world.store.deliveries(&query).await.expect("reads").items.len(), 1, "it is kept for a while");
    world.clock.advance(Duration::from_secs(1));
    let more = world.store.forget_deliveries(Duration::ZERO).await.expect("writes");
    assert_eq!((more, world.store.deliveries(&query).await.expect("reads").items.len()), (false, 0));
}

async fn a_lease_is_renewed_while_it_is_held_and_ends_when_it_is_released(world: World) {
    world.store.add_deliveries(&[delivery(&world, "desk", -1)]).await.expect("writes");
    let store = &world.store;
    let held = [store
        .claim_deliveries(DeliveryLane::Others, "a", 1, Duration::ZERO, &[])
        .await
        .expect("claims")
        .remove(0)
        .lease()];
    let renew = async |sender| store.renew(WorkTable::Deliveries, sender, &held, LEASE).await.expect("renews");
    assert_eq!((renew("b").await, renew("a").await), (Vec::new(), held.to_vec()));
    assert_eq!(
        store.claim_deliveries(DeliveryLane::Others, "b", 1, LEASE, &[]).await.expect("claims"),
        Vec::new(),
        "the lease was renewed"
    );
    store.release(WorkTable::Deliveries, "a", &held, Progress::Begun, Duration::ZERO).await.expect("releases");
    assert_eq!(renew("a").await, Vec::new(), "it is held no longer");
    let again = store.claim_deliveries(DeliveryLane::Others, "b", 1, LEASE, &[]).await.expect("claims").remove(0);
    assert_eq!((again.attempt, again.failures), (2, 0));
}

/// So a delivery that kills every server is given up like any other.
async fn a_delivery_whose_server_ended_counts_as_failed(world: World) {
    world.store.add_deliveries(&[delivery(&world, "desk", -1)]).await.expect("writes");
    let store = &world.store;
    for failures in 0..3 {
        let held = store
            .claim_deliveries(DeliveryLane::Others, "ends", 1, Duration::ZERO, &[])
            .await
            .expect("claims")
            .remove(0);
        assert_eq!(held.failures, failures);
    }
    let held = store.claim_deliveries(DeliveryLane::Others, "lives", 1, LEASE, &[]).await.expect("claims").remove(0);
    let failed = DeliveryOutcome::Failed { after: Duration::ZERO, error: "HTTP 500".to_owned() };
    assert!(settle(store, &held, &failed).await);
    assert_eq!(
        store.claim_deliveries(DeliveryLane::Others, "lives", 1, LEASE, &[]).await.expect("claims").remove(0).failures,
        4
    );
}

/// No matter how long that is: its buttons must be removed then, and reactions to it decide.
async fn a_message_that_can_be_changed_is_kept_as_long_as_its_review_waits(world: World) {
    let review = world.launched_review("hello").await;
    let about = |target| NewDelivery {
        subject: DeliverySubject::Review(review.id, review.run_id),
        ..delivery(&world, target, -1)
    };
    // The review of the last one no longer exists.
    let made = [about("ana"), about("desk"), delivery(&world, "tom", -1)];
    world.store.add_deliveries(&made).await.expect("writes");
    for held in world.store.claim_deliveries(DeliveryLane::Others, "a", 10, LEASE, &[]).await.expect("claims") {
        let receipt = (held.target != "desk").then(|| format!("the message to {}", held.target));
        let sent = DeliveryOutcome::Sent { shown: receipt.clone(), receipt };
        assert!(settle(&world.store, &held, &sent).await);
    }
    world.clock.advance(Duration::from_secs(1));
    let query = DeliveryQuery { status: Some(DeliveryStatus::Sent), ..DeliveryQuery::default() };
    let kept = async || {
        assert!(!world.store.forget_deliveries(Duration::ZERO).await.expect("writes"));
        let left = world.store.deliveries(&query).await.expect("reads").items;
        left.into_iter().map(|delivery| delivery.target).collect::<Vec<_>>()
    };
    assert_eq!(kept().await, ["ana"]);
    assert_eq!(world.store.messages(review.id, DeliveryKind::Webhook).await.expect("reads").len(), 1);
    // One that a later version has sent keeps nothing from being announced.
    let later = "UPDATE deliveries SET event = 'review.sung' WHERE target = 'ana'";
    assert_eq!(world.database.execute(later).await.expect("runs"), 1);
    assert_eq!(world.store.messages(review.id, DeliveryKind::Webhook).await.expect("reads"), []);
    let reacted = world.store.message_with_reactions("the message to ana").await.expect("reads");
    assert_eq!(reacted.map(|(review, ..)| review), Some(review.id));
    let before = world.store.head().await.expect("reads");
    assert!(world.store.feed(None, &before, &[]).await.expect("writes"));
    world.store.commit(decide(&review, "ana", "yes")).await.expect("it is decided");
    assert_eq!(kept().await, ["ana"], "whoever makes deliveries of the log has not read it yet, and changes it then");
    let head = world.store.head().await.expect("reads");
    assert!(world.store.feed(Some(&before), &head, &[]).await.expect("writes"));
    assert_eq!(kept().await, Vec::<String>::new());
}

/// The URL may contain a secret of the receiver.
async fn the_url_of_a_callback_is_kept_as_long_as_its_delivery(world: World) {
    let (store, mut runs) = (&world.store, Vec::new());
    for _ in 0..2 {
        let mut wanted = launch("hello");
        if let Operation::Launch { callback_url, .. } = &mut wanted.operation {
            *callback_url = Some("https://hooks.example/done?key=s3cret".to_owned());
        }
        let Committed::Run { run } = store.commit(wanted).await.expect("the run starts") else { panic!("a run") };
        runs.push(run.summary.id);
    }
    let told = NewDelivery {
        kind: DeliveryKind::Callback,
        event: DeliveryEvent::Announce(Occasion::RunCompleted),
        subject: DeliverySubject::Run(runs[0]),
        ..delivery(&world, "dev", -1)
    };
    store.add_deliveries(&[told]).await.expect("writes");
    let held = store.claim_deliveries(DeliveryLane::Others, "a", 1, LEASE, &[]).await.expect("claims").remove(0);
    let given_up = DeliveryOutcome::GivenUp { error: "HTTP 500".to_owned() };
    assert!(settle(store, &held, &given_up).await);
    store.forget_deliveries(LEASE).await.expect("writes");
    assert!(store.callback_of_run(runs[0]).await.expect("reads").is_some(), "an admin may try again");
    world.clock.advance(Duration::from_secs(1));
    store.forget_deliveries(Duration::ZERO).await.expect("writes");
    assert_eq!(store.callback_of_run(runs[0]).await.expect("reads"), None);
    assert!(store.callback_of_run(runs[1]).await.expect("reads").is_some(), "nothing was posted about it yet");
}
