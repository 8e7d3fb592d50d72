//! People who cannot be erased yet, and what happens to their names.

use std::time::Duration;

use shared::api::UserPatch;
use shared::decision::Via;

use super::support::{NAME, REMARK, World, person, whole_pass};
use crate::engine::Input;
use crate::erasure::eraser::Reached;
use crate::store::tests::support::on_both;
use crate::store::{Change, CommitError, NewUserRecord, Operation, UserChange};

on_both! {
    whoever_is_needed_is_not_erased_and_it_says_what_to_do,
    a_name_is_free_once_nothing_names_the_person,
    what_waits_for_its_seal_or_its_end_is_erased_afterwards,
}

impl World {
    async fn refused(&self, why: &str) {
        match self.erase().await {
            Err(CommitError::Conflict(message)) => assert!(message.contains(why), "{message}"),
            other => panic!("{other:?}"),
        }
    }
}

async fn whoever_is_needed_is_not_erased_and_it_says_what_to_do(world: World) {
    let (run, review) = world.launch(NAME, "text").await;
    world.refused("deactivate the account first").await;
    world.on_review(NAME, review.id, Input::Claim { review: review.id, by: person(NAME), via: Via::Human }).await;
    world.deactivate().await;
    world.refused("1 review is pending").await;
    world.record.clock.advance(Duration::from_hours(1));
    world.refused("1 run still in progress").await;
    let review = world.store().run_reviews(run).await.expect("reads").pop().expect("it asks");
    world.decide("zoe", &review, "a remark").await;
    world.erase().await.expect("nothing waits for them any more");
}

async fn a_name_is_free_once_nothing_names_the_person(mut world: World) {
    world.finished(NAME, NAME, REMARK).await;
    world.deactivate().await;
    world.record.seal_all().await;
    let erased = world.erase().await.expect("they are erased");
    let add = || async {
        let user = serde_json::json!({"username": NAME, "roles": [], "created_at": "2026-01-01T00:00:00Z"});
        let user = serde_json::from_value(user).expect("a person");
        let record = Box::new(NewUserRecord { user, password_hash: None });
        let create = Operation::CreateUser(record);
        world.store().commit(Change::by_server(create)).await
    };
    assert!(matches!(add().await, Err(CommitError::Conflict(_))), "they would be erased with the one before");
    assert_eq!(whole_pass(&mut world.eraser()).await, Reached::End);
    add().await.expect("the name is free");
    // The pseudonym does not belong to anyone.
    let patch = UserPatch { active: Some(true), ..UserPatch::default() };
    let change = UserChange { username: erased.username, patch, password_hash: None };
    let change = Operation::UpdateUser(Box::new(change));
    let refused = world.store().commit(Change::by_server(change)).await;
    assert!(matches!(refused, Err(CommitError::Conflict(_))), "{refused:?}");
}

async fn what_waits_for_its_seal_or_its_end_is_erased_afterwards(mut world: World) {
    let (run, review) = world.launch("zoe", "text").await;
    let said = Input::Comment { review: review.id, by: person(NAME), via: Via::Human, text: REMARK.to_owned() };
    world.on_review(NAME, review.id, said).await;
    world.deactivate().await;
    world.erase().await.expect("they are erased");
    assert_eq!(world.eraser().pass(u64::MAX).await.expect("looks"), Reached::Later);
    let review = world.store().run_reviews(run).await.expect("reads").pop().expect("it asks");
    world.decide("zoe", &review, "a remark").await;
    assert_eq!(world.eraser().pass(u64::MAX).await.expect("looks"), Reached::Soon, "nothing of it is sealed");
    world.erase_all().await;
    assert_eq!(world.traces().await, [""; 0]);
    assert!(world.record.check(None).await.valid);
}
