//! Decisions, deadlines, and what survives a restart.

use std::time::Duration;

use shared::api::DecisionEffect;
use shared::decision::Via;
use shared::reassignment::Assignee;
use shared::review::{Outcome, ReviewStatus};
use shared::run::RunStatus;

use super::support::{Dice, World, decide, decided, launch, on_both, on_review, person};
use crate::engine::{Input, Refusal};
use crate::store::db::Sql;
use crate::store::{Change, CommitError, FailedLogin, Operation, Room};

on_both! {
    a_decision_ends_the_run,
    of_many_decisions_at_once_one_wins,
    of_decisions_and_withdrawals_at_once_one_wins,
    a_decision_and_a_reassignment_at_once_do_not_both_take_effect,
    a_decision_after_the_deadline_finds_it_expired,
    a_large_text_is_stored_once_and_comes_back,
    a_store_that_is_opened_again_goes_on,
    changes_that_wait_for_a_flow_hold_up_no_others,
    a_transaction_that_nobody_ends_leaves_nothing,
}

async fn a_decision_ends_the_run(world: World) {
    let run = world.launch("hello").await;
    assert_eq!(run.summary.status, RunStatus::WaitingForHuman);
    let review = world.review_of(run.summary.id).await;
    let answer = decided(world.store.commit(decide(&review, "ana", "yes")).await).expect("it is decided");
    assert_eq!(answer.outcome, DecisionEffect::Resolved);
    let state = world.store.run(run.summary.id).await.expect("reads").expect("is there");
    assert_eq!(crate::engine::summary(&state).status, RunStatus::Completed);
    assert_eq!(world.store.review(review.id).await.expect("reads"), Some(answer.review));
    assert_eq!(
        world.store.next_due(Room { calls: 1, timers: 1, suspects: 1 }, &[]).await.expect("reads"),
        None,
        "the deadline went with the review"
    );
    let steps = world.store.steps(run.summary.id).await.expect("reads");
    assert_eq!(steps.len(), 1);
}

async fn of_many_decisions_at_once_one_wins(world: World) {
    let review = world.launched_review("hello").await;
    let other = world.another().await;
    let mut waiting = tokio::task::JoinSet::new();
    for n in 0..64 {
        let (who, option) = if n % 2 == 0 { ("ana", "yes") } else { ("tom", "no") };
        let store = if n % 4 < 2 { world.store.clone() } else { other.clone() };
        let change = decide(&review, who, option);
        waiting.spawn(async move { decided(store.commit(change).await) });
    }
    let answers = waiting.join_all().await;
    let winners: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().ok()).collect();
    assert_eq!(winners.len(), 1);
    for answer in &answers {
        match answer {
            Ok(_) => {}
            Err(CommitError::Refused(Refusal::ReviewResolved(review))) => {
                assert_eq!(review.resolution, winners[0].review.resolution, "the conflict says who won");
            }
            Err(other) => panic!("an unexpected refusal: {other}"),
        }
    }
    other.close().await;
}

async fn of_decisions_and_withdrawals_at_once_one_wins(world: World) {
    let review = world.launched_review("hello").await;
    let mut waiting = tokio::task::JoinSet::new();
    for n in 0..32 {
        let store = world.store.clone();
        let withdraw = Input::Withdraw { review: review.id, by: person("dev"), via: Via::Human, reason: None };
        let change = if n % 2 == 0 { decide(&review, "ana", "yes") } else { on_review(review.id, "dev", withdraw) };
        waiting.spawn(async move { decided(store.commit(change).await) });
    }
    let answers = waiting.join_all().await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    let stored = world.store.review(review.id).await.expect("reads").expect("is there");
    for refused in answers.into_iter().filter_map(Result::err) {
        let CommitError::Refused(Refusal::ReviewResolved(told)) = refused else { panic!("{refused:?}") };
        assert_eq!(*told, stored, "everybody learns of the same resolution");
    }
}

async fn a_decision_and_a_reassignment_at_once_do_not_both_take_effect(world: World) {
    let other = world.another().await;
    for n in 0..16 {
        let review = world.launched_review("hello").await;
        let to = Assignee::User("tom".parse().expect("a name"));
        let (by, reason) = (person("boss"), "away".to_owned());
        let reassign = Input::Reassign { review: review.id, by, via: Via::Human, from: None, to, reason };
        let (decision, reassignment) = (decide(&review, "ana", "yes"), on_review(review.id, "boss", reassign));
        let (decision, reassignment) = if n % 2 == 0 {
            tokio::join!(world.store.commit(decision), other.commit(reassignment))
        } else {
            let (reassignment, decision) = tokio::join!(other.commit(reassignment), world.store.commit(decision));
            (decision, reassignment)
        };
        let stored = world.store.review(review.id).await.expect("reads").expect("is there");
        match (decided(decision), decided(reassignment)) {
            (Ok(_), Err(CommitError::Refused(Refusal::ReviewResolved(told)))) => {
                assert!(stored.reassignments.is_empty());
                assert_eq!(*told, stored);
            }
            (Err(CommitError::Refused(Refusal::NotFound)), Ok(answer)) => assert_eq!(answer.review, stored),
            other => panic!("{other:?}"),
        }
    }
    other.close().await;
}

async fn a_decision_after_the_deadline_finds_it_expired(world: World) {
    let review = world.launched_review("hello").await;
    let run = review.run_id.expect("of a run");
    world.clock.advance(Duration::from_hours(1));
    let refused = decided(world.store.commit(decide(&review, "ana", "yes")).await);
    let Err(CommitError::Refused(Refusal::ReviewResolved(now))) = refused else { panic!("{refused:?}") };
    assert_eq!(now.status, ReviewStatus::Expired);
    assert_eq!(now.resolution.map(|resolution| resolution.outcome), Some(Outcome::Expired));
    let state = world.store.run(run).await.expect("reads").expect("is there");
    assert_eq!(crate::engine::summary(&state).status, RunStatus::Failed, "the expiry is on disk");
    // The timer itself then comes too late.
    let task = shared::id::TaskId(uuid::Uuid::nil());
    let due = Operation::Run { run, input: Box::new(Input::Due { task }) };
    let late = world.store.commit(Change::by_server(due)).await;
    assert!(matches!(late, Err(CommitError::Refused(Refusal::TaskOver))), "{late:?}");
}

async fn a_large_text_is_stored_once_and_comes_back(world: World) {
    let text = "a long draft ".repeat(10_000);
    let review = world.launched_review(&text).await;
    assert_eq!(review.items[0].value, text.as_str());
    let state = world.store.run(review.run_id.expect("of a run")).await.expect("reads").expect("is there");
    assert_eq!(state.keys["text"], text.as_str());
    assert_eq!(world.store.counts().await.expect("counts")["blobs"], 1);
}

async fn a_store_that_is_opened_again_goes_on(world: World) {
    let review = world.launched_review("hello").await;
    world.store.close().await;
    let again = world.another().await;
    decided(again.commit(decide(&review, "tom", "yes")).await).expect("it is decided");
    let closed = world.store.commit(decide(&review, "ana", "no")).await;
    assert!(matches!(closed, Err(CommitError::Unavailable(_))), "{closed:?}");
}

async fn a_transaction_that_nobody_ends_leaves_nothing(world: World) {
    let review = world.launched_review("hello").await;
    let spoil = || Sql::new("UPDATE reviews SET body = '{}'");
    let db = &world.store.inner.db;
    let mut conn = db.write_on_this_thread().await.expect("a transaction");
    assert_eq!(conn.execute(spoil()).await.expect("updates"), 1);
    drop(conn);
    // Nothing is left either if the last statement is not awaited.
    let mut conn = db.write_on_this_thread().await.expect("a transaction");
    let _ = tokio::time::timeout(Duration::ZERO, conn.execute(spoil())).await;
    drop(conn);
    decided(world.store.commit(decide(&review, "ana", "yes")).await).expect("the review is as it was");
}

async fn changes_that_wait_for_a_flow_hold_up_no_others(world: World) {
    let review = world.launched_review("hello").await;
    // This store has compiled no flow yet, and gets no turn to do so.
    let cold = world.another().await;
    let turn = cold.inner.flows.turn.lock().await;
    let mut launched = Box::pin(cold.commit(launch("good day")));
    let mut decision = Box::pin(cold.commit(decide(&review, "ana", "yes")));
    assert!(futures::poll!(&mut launched).is_pending() && futures::poll!(&mut decision).is_pending());
    let username = "ana".parse().expect("a name");
    let failed = FailedLogin { username, unrecorded: 0, in_session: false, wrong_code: false };
    let beside = Operation::LoginFailed(Box::new(failed));
    cold.commit(Change::by_server(beside)).await.expect("it needs no flow");
    assert!(futures::poll!(&mut launched).is_pending() && futures::poll!(&mut decision).is_pending());
    drop(turn);
    launched.await.expect("the run starts");
    decided(decision.await).expect("it is decided");
    let unknown = Operation::Launch {
        run: super::support::new_run(),
        flow: "ask".parse().expect("an id"),
        version: Some(7),
        input: shared::JsonMap::new(),
        context: Box::default(),
        callback_url: None,
    };
    let refused = cold.commit(Change { operation: unknown, ..launch("") }).await;
    assert!(matches!(refused, Err(CommitError::NotFound)), "there is no such version");
    cold.close().await;
}

/// `SQLite` itself ends the transaction if the disk is full.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_said_and_all_goes_on_once_there_is_room() {
    let world = World::sqlite().await;
    let room = async |pages: &str| {
        let mut conn = world.store.inner.db.write_on_this_thread().await.expect("a transaction");
        conn.fetch(Sql::new("PRAGMA max_page_count = ").push(pages)).await.expect("is set");
        conn.rollback().await.expect("ended");
    };
    room("1").await;
    // Larger than the free space in the file, even when compressed.
    let mut dice = Dice(5);
    let draft: String = (0..100_000).map(|_| char::from(b'a' + u8::try_from(dice.below(26)).expect("small"))).collect();
    let full = world.store.commit(launch(&draft)).await;
    assert!(matches!(&full, Err(CommitError::Unavailable(why)) if why.contains("is full")), "it is not");
    room("1000000").await;
    world.launch("hello").await;
}

/// `SQLite` has one writer, which waits for the lock of the file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_whose_caller_has_gone_before_it_is_begun_is_never_made() {
    let world = World::sqlite().await;
    let lock = world.store.inner.db.write_on_this_thread().await.expect("a transaction");
    let mut begun = Box::pin(world.store.commit(launch("begun")));
    assert!(futures::poll!(&mut begun).is_pending());
    while world.store.inner.queue.waiting() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut left = Box::pin(world.store.commit(launch("left")));
    assert!(futures::poll!(&mut left).is_pending());
    assert_eq!(world.store.inner.queue.waiting(), 1);
    drop(left);
    lock.rollback().await.expect("ended");
    begun.await.expect("the other one is made");
    world.launch("after").await;
    assert_eq!(world.store.counts().await.expect("counts")["runs"], 2);
}
