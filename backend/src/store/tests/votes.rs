//! Votes: they are counted together, found by those who may vote, and lost with the right to vote.

use serde_json::json;
use shared::api::{DecisionEffect, ReviewQuery, UserPatch};
use shared::definition::Flow;
use shared::id::RunId;
use shared::log::EntryKind;
use shared::review::{Outcome, Review};

use super::support::{World, actor, decide, decided, new_run, on_both, person};
use crate::engine::{Input, Refusal};
use crate::store::{Change, CommitError, NewFlow, Operation, UserChange};

on_both! {
    two_votes_at_once_are_both_counted,
    who_has_lost_the_right_is_no_longer_counted,
    a_list_shows_who_may_vote_and_secret_votes_to_nobody_else,
}

/// Launches a flow in which two of the editors must agree.
pub async fn committee(world: &World, more: serde_json::Value) -> Review {
    for name in ["eva", "ed"] {
        world.add_user(name, &["reviewer", "editor"]).await;
    }
    let mut human = json!({
        "prompt": "Shall we?", "policy": {"quorum": 2}, "reviewers": {"roles": ["editor"]},
        "options": [{"id": "yes", "label": "Yes"}, {"id": "no", "kind": "stop", "label": "No"}],
    });
    human.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
    let flow = json!({ "id": "committee", "nodes": { "decide": { "human": human } } });
    let flow: Flow = serde_json::from_value(flow).expect("a flow");
    let source = serde_json::to_string(&flow).expect("JSON");
    let new = NewFlow { flow, source, digest: "sha256:2".to_owned() };
    world.store.commit(Change::by_server(Operation::SaveFlow(Box::new(new)))).await.expect("the flow is saved");
    let (run, flow) = (new_run(), "committee".parse().expect("an id"));
    let launch = Operation::launch(run, flow, shared::JsonMap::new());
    let launch = Change { by: Some(actor("dev")), key: None, operation: launch };
    world.store.commit(launch).await.expect("the run starts");
    world.review_of(run).await
}

fn voters(review: &Review) -> Vec<&str> {
    review.voting.iter().flat_map(|voting| &voting.voters).map(std::ops::Deref::deref).collect()
}

async fn change(world: &World, name: &str, patch: UserPatch) {
    let change = UserChange { username: name.parse().expect("a name"), patch, password_hash: None };
    world.store.commit(Change::by_server(Operation::UpdateUser(Box::new(change)))).await.expect("a person changes");
}

async fn recount(world: &World, run: RunId) -> Result<(), CommitError> {
    let recount = Operation::Run { run, input: Box::new(Input::Recount) };
    world.store.commit(Change::by_server(recount)).await.map(|_| ())
}

async fn two_votes_at_once_are_both_counted(world: World) {
    let review = committee(&world, json!({})).await;
    assert_eq!(voters(&review), ["ed", "eva"]);
    let other = world.another().await;
    let first = world.store.commit(decide(&review, "eva", "yes"));
    let second = other.commit(decide(&review, "ed", "yes"));
    let (first, second) = tokio::join!(first, second);
    let mut outcomes = [decided(first).expect("counted").outcome, decided(second).expect("counted").outcome];
    outcomes.sort_by_key(|outcome| *outcome == DecisionEffect::Resolved);
    assert_eq!(outcomes, [DecisionEffect::Recorded, DecisionEffect::Resolved]);
    let stored = world.store.review(review.id).await.expect("reads").expect("is there");
    let resolution = stored.resolution.as_ref().expect("resolved");
    assert_eq!((stored.decisions.len(), resolution.by.len(), resolution.outcome), (2, 2, Outcome::Accepted));
    other.close().await;
}

async fn who_has_lost_the_right_is_no_longer_counted(world: World) {
    let review = committee(&world, json!({})).await;
    let run = review.run_id.expect("of a run");
    decided(world.store.commit(decide(&review, "eva", "yes")).await).expect("recorded");
    assert_eq!(world.store.runs_to_recount(None, 10).await.expect("reads"), [(review.id, run)]);
    let refused = recount(&world, run).await;
    assert!(matches!(refused, Err(CommitError::Refused(Refusal::Unchanged))), "nobody has changed: {refused:?}");
    change(&world, "eva", UserPatch { active: Some(false), ..UserPatch::default() }).await;
    recount(&world, run).await.expect("it is looked at again");
    let stored = world.store.review(review.id).await.expect("reads").expect("is there");
    assert_eq!((voters(&stored), stored.decisions.len()), (vec!["ed"], 0));
    assert!(stored.problem.as_ref().is_some_and(|problem| problem.contains("only 1 person may vote")));
    // A person who is given the role may vote, since without them nobody could accept.
    change(&world, "tom", UserPatch { roles: Some(vec!["editor".to_owned()]), ..UserPatch::default() }).await;
    let answer = decided(world.store.commit(decide(&stored, "tom", "yes")).await).expect("recorded");
    assert_eq!((answer.outcome, voters(&answer.review)), (DecisionEffect::Recorded, vec!["ed", "tom"]));
    assert_eq!(answer.review.problem, None);
    decided(world.store.commit(decide(&stored, "ed", "yes")).await).expect("resolved");
    assert_eq!(world.store.runs_to_recount(None, 10).await.expect("reads"), []);
    let told = world.told(EntryKind::RunCompleted).await;
    let changes: Vec<_> = told.iter().filter_map(|entry| entry.event.data.get("change")?.as_str()).collect();
    assert_eq!(changes, ["vote", "voters", "voters", "vote"]);
}

async fn a_list_shows_who_may_vote_and_secret_votes_to_nobody_else(world: World) {
    let review = committee(&world, json!({"blind": true, "reviewers": {}})).await;
    world.add_user("late", &["reviewer"]).await;
    decided(world.store.commit(decide(&review, "eva", "no")).await).expect("recorded");
    let of = async |name: &str| {
        let viewer = shared::access::Principal { roles: ["reviewer".to_owned()].into(), ..person(name) };
        let mine = ReviewQuery { assigned: Some(shared::inbox::Assigned::Me), ..ReviewQuery::default() };
        let mine = world.store.reviews(&viewer, &mine).await.expect("reads").items.len();
        let seen = world.store.pending(&viewer, 10, usize::MAX).await.expect("reads");
        (
            mine,
            seen.tally.numbers(&viewer).0,
            seen.reviews[0].decisions.len(),
            seen.reviews[0].voting.as_ref().map(|voting| voting.votes),
        )
    };
    assert_eq!(of("eva").await, (1, 1, 1, Some(1)), "one's own vote");
    assert_eq!(of("ana").await, (1, 1, 0, Some(1)), "and no others");
    assert_eq!(of("late").await, (0, 1, 0, Some(1)), "who came later sees it, and does not vote");
    for name in ["ana", "tom"] {
        decided(world.store.commit(decide(&review, name, "yes")).await).expect("counted");
    }
    let viewer = shared::access::Principal { roles: ["reviewer".to_owned()].into(), ..person("ana") };
    assert_eq!(world.store.pending(&viewer, 10, usize::MAX).await.expect("reads").tally.numbers(&viewer), (0, 0, 0));
    assert_eq!(world.store.review(review.id).await.expect("reads").expect("is there").decisions.len(), 3);
}
