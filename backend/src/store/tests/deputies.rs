//! Deputies decide with the rights that hold in the transaction.

use std::time::Duration;

use shared::access::{Access, Act, access};
use shared::api::{ReviewQuery, UserPatch};
use shared::decision::Via;
use shared::deputy::Deputyship;
use shared::id::DeputyId;
use shared::log::EntryKind;
use shared::review::Review;

use super::support::{World, actor, decide, decided, new_run, on_both, on_review, person};
use crate::clock::Clock as _;
use crate::engine::{Input, Refusal};
use crate::store::{Change, CommitError, Committed, Operation, Standing, UserChange};

on_both! {
    a_deputy_decides_while_the_span_lasts_and_no_longer,
    a_deputy_has_the_rights_that_the_person_has_now,
    a_review_that_was_handed_over_is_for_the_delegate,
    a_reviewer_who_lost_the_role_can_no_longer_decide_what_they_had_open,
    a_claim_that_has_run_out_is_shown_nowhere,
    what_somebody_delegated_is_theirs_to_give_only_while_they_may_decide_it,
}

fn change(by: &str, operation: Operation) -> Change {
    Change { by: Some(actor(by)), key: None, operation }
}

/// Makes `deputy` stand in for `person`, beginning in `from` minutes, for ten minutes.
async fn name_deputy(world: &World, person: &str, deputy: &str, from: u64) -> Result<Deputyship, CommitError> {
    let from = world.clock.now().after(Duration::from_mins(from));
    let span = Deputyship {
        id: DeputyId(new_run().0),
        person: person.parse().expect("a name"),
        deputy: deputy.parse().expect("a name"),
        from,
        until: from.after(Duration::from_mins(10)),
        note: None,
        made_by: person.parse().expect("a name"),
        created_at: world.clock.now(),
    };
    match world.store.commit(change(person, Operation::NameDeputy(Box::new(span)))).await? {
        Committed::Deputy { deputyship } => Ok(*deputyship),
        other => panic!("{other:?}"),
    }
}

/// A review for `lea` alone.
async fn for_lea(world: &World) -> Review {
    let mut review = world.launched_review("hello").await;
    super::visibility::readdress(world, &mut review, serde_json::json!({ "users": ["lea"] })).await;
    review
}

async fn a_deputy_decides_while_the_span_lasts_and_no_longer(world: World) {
    world.add_user("lea", &["reviewer"]).await;
    let span = name_deputy(&world, "lea", "tom", 10).await.expect("it is named");
    let review = for_lea(&world).await;
    let refused = world.store.commit(decide(&review, "tom", "yes")).await;
    assert!(matches!(refused, Err(CommitError::Refused(Refusal::NotFound))), "{refused:?}");

    world.clock.advance(Duration::from_mins(10));
    let record = world.store.user("tom").await.expect("reads").expect("is there");
    let Standing { stands_for, until, .. } = world.store.standing(&record).await.expect("reads");
    assert_eq!((&*stands_for[0].username, until), ("lea", Some(span.until)));
    let after = decided(world.store.commit(decide(&review, "tom", "yes")).await).expect("decides").review;
    assert_eq!((&*after.decisions[0].by, after.decisions[0].on_behalf_of.as_deref()), ("tom", Some("lea")));

    let review = for_lea(&world).await;
    world.clock.advance(Duration::from_mins(10));
    let refused = world.store.commit(decide(&review, "tom", "yes")).await;
    assert!(matches!(refused, Err(CommitError::Refused(Refusal::NotFound))), "{refused:?}");
    assert_eq!(world.store.deputyships().await.expect("reads"), []);
    let told = world.told(EntryKind::DeputyNamed).await;
    assert!(told.iter().any(|entry| entry.event.data.get("deputy").is_some_and(|name| name == "tom")));
}

async fn a_deputy_has_the_rights_that_the_person_has_now(world: World) {
    world.add_user("lea", &["reviewer"]).await;
    let review = for_lea(&world).await;
    let span = name_deputy(&world, "lea", "tom", 0).await.expect("it is named");
    let inactive = UserPatch { active: Some(false), ..UserPatch::default() };
    let off = UserChange { username: "lea".parse().expect("a name"), patch: inactive, password_hash: None };
    world.store.commit(change("boss", Operation::UpdateUser(Box::new(off)))).await.expect("she leaves");
    let refused = world.store.commit(decide(&review, "tom", "yes")).await;
    assert!(matches!(refused, Err(CommitError::Refused(Refusal::NotFound))), "{refused:?}");
    let refused = world.store.commit(change("ana", Operation::RemoveDeputy(span.id))).await;
    assert!(matches!(refused, Err(CommitError::NotFound)), "{refused:?}");
    world.store.commit(change("tom", Operation::RemoveDeputy(span.id))).await.expect("he declines");
    assert_eq!(world.store.deputyships().await.expect("reads"), []);
    let refused = name_deputy(&world, "ana", "dev", 0).await;
    let Err(CommitError::Refused(Refusal::Invalid(mistakes))) = refused else { panic!("{refused:?}") };
    assert_eq!(mistakes[0].path, "/deputy");
}

async fn a_review_that_was_handed_over_is_for_the_delegate(world: World) {
    world.add_user("lea", &["reviewer"]).await;
    let review = for_lea(&world).await;
    let hand = |by: &str, to: &str| {
        let input = Input::Delegate {
            review: review.id,
            by: person(by),
            via: Via::Human,
            to: to.parse().expect("a name"),
            person: None,
        };
        on_review(review.id, by, input)
    };
    world.store.commit(hand("lea", "tom")).await.expect("it changes hands");
    let refused = world.store.commit(hand("tom", "dev")).await;
    assert!(matches!(refused, Err(CommitError::Refused(Refusal::Invalid(_)))), "{refused:?}");
    let lists = async |name: &str| {
        let viewer = world.store.user(name).await.expect("reads").expect("is there").principal(None);
        let mine = ReviewQuery { assigned: Some(shared::inbox::Assigned::Me), ..ReviewQuery::default() };
        let mine = world.store.reviews(&viewer, &mine).await.expect("reads").items.len();
        (mine, world.store.reviews(&viewer, &ReviewQuery::default()).await.expect("reads").items.len())
    };
    assert_eq!((lists("tom").await, lists("lea").await, lists("ana").await), ((1, 1), (0, 1), (0, 0)));
    world.store.commit(hand("tom", "lea")).await.expect("it goes back");
    assert_eq!((lists("tom").await, lists("lea").await), ((0, 1), (1, 1)));
    world.store.commit(decide(&review, "lea", "yes")).await.expect("she decides");
}

async fn a_reviewer_who_lost_the_role_can_no_longer_decide_what_they_had_open(world: World) {
    let review = world.launched_review("hello").await;
    let ana = world.store.user("ana").await.expect("reads").expect("is there").principal(None);
    assert_eq!(access(&ana, Act::Decide(&review)), Access::Allowed, "it lies open before her");
    let patch = UserPatch { roles: Some(vec!["editor".to_owned()]), ..UserPatch::default() };
    let lost = UserChange { username: ana.username.clone(), patch, password_hash: None };
    world.store.commit(change("boss", Operation::UpdateUser(Box::new(lost)))).await.expect("she is changed");
    let refused = world.store.commit(decide(&review, "ana", "yes")).await;
    assert!(matches!(refused, Err(CommitError::Refused(Refusal::NotFound))), "{refused:?}");
    assert!(world.store.review(review.id).await.expect("reads").expect("is there").is_pending());
}

async fn a_claim_that_has_run_out_is_shown_nowhere(world: World) {
    let review = world.launched_review("hello").await;
    let claim = Input::Claim { review: review.id, by: person("ana"), via: Via::Human };
    world.store.commit(on_review(review.id, "ana", claim)).await.expect("she claims it");
    let tom = world.store.user("tom").await.expect("reads").expect("is there").principal(None);
    let claims = async || {
        let one = world.store.review(review.id).await.expect("reads").expect("is there");
        let listed = world.store.reviews(&tom, &ReviewQuery::default()).await.expect("reads").items.remove(0);
        let live = world.store.pending(&tom, 50, usize::MAX).await.expect("reads").reviews.remove(0);
        let of_run = world.review_of(review.run_id.expect("of a run")).await;
        [one, listed, live, of_run].map(|review| review.claimed_by.is_some())
    };
    world.clock.advance(Duration::from_secs(15 * 60 - 1));
    assert_eq!(claims().await, [true; 4]);
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(claims().await, [false; 4]);
}

async fn what_somebody_delegated_is_theirs_to_give_only_while_they_may_decide_it(world: World) {
    world.add_user("lea", &["reviewer"]).await;
    let review = for_lea(&world).await;
    let input = Input::Delegate {
        review: review.id,
        by: person("lea"),
        via: Via::Human,
        to: "tom".parse().expect("a name"),
        person: None,
    };
    world.store.commit(on_review(review.id, "lea", input)).await.expect("it changes hands");
    let patch = UserPatch { active: Some(false), ..UserPatch::default() };
    let left = UserChange { username: "lea".parse().expect("a name"), patch, password_hash: None };
    world.store.commit(change("boss", Operation::UpdateUser(Box::new(left)))).await.expect("she leaves");
    let refused = world.store.commit(decide(&review, "tom", "yes")).await;
    assert!(matches!(refused, Err(CommitError::Refused(Refusal::NotFound))), "{refused:?}");
    let left = world.store.review(review.id).await.expect("reads").expect("is there");
    assert!(left.is_pending() && left.delegations.is_empty() && left.problem.is_some());
}
