//! People find again what they decided: the newest decision first, whatever the review's own age, and a secret vote only
//! by who cast it.

use std::time::Duration;

use serde_json::json;
use shared::access::Principal;
use shared::api::ReviewQuery;
use shared::id::ReviewId;
use shared::person_filter::PersonFilter;
use shared::review::ReviewStatus;

use super::support::{World, decide, decided, on_both, person};
use super::votes::committee;
use crate::store::Store;
use crate::store::log_index::{IndexProgress, Indexed};

on_both! {
    what_a_person_decided_is_listed_by_the_time_of_the_decision,
    a_vote_is_listed_once_and_shown_to_others_when_the_review_is_over,
    a_secret_vote_is_listed_when_the_review_is_over,
    decisions_are_found_in_the_index_of_the_log_and_beyond_it,
}

fn viewer(name: &str, role: &str) -> Principal {
    Principal { roles: [role.to_owned()].into(), ..person(name) }
}

/// Returns the ids of all pages of a list, which have `limit` reviews each.
async fn listed(store: &Store, viewer: &Principal, query: &ReviewQuery, limit: u32) -> Vec<ReviewId> {
    let mut query = ReviewQuery { limit: Some(limit), ..query.clone() };
    let mut ids = Vec::new();
    loop {
        let page = store.reviews(viewer, &query).await.expect("reads");
        assert!(page.items.len() <= limit as usize, "{query:?}");
        ids.extend(page.items.iter().map(|review| review.id));
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            return ids;
        }
    }
}

fn decided_by(name: &str) -> ReviewQuery {
    ReviewQuery { decided_by: Some(name.parse::<PersonFilter>().expect("a person")), ..ReviewQuery::default() }
}

async fn decide_at(world: &World, review: &shared::review::Review, who: &str, option: &str) {
    world.clock.advance(Duration::from_secs(1));
    decided(world.store.commit(decide(review, who, option)).await).expect("it is decided");
}

async fn what_a_person_decided_is_listed_by_the_time_of_the_decision(world: World) {
    let mut reviews = Vec::new();
    for text in ["wind one", "wind two", "wind three", "rain"] {
        reviews.push(world.launched_review(text).await);
    }
    for (index, who) in [(2, "ana"), (1, "tom"), (0, "ana"), (3, "ana")] {
        decide_at(&world, &reviews[index], who, "yes").await;
    }
    let ids = |of: &[usize]| of.iter().map(|index| reviews[*index].id).collect::<Vec<_>>();
    let (ana, boss) = (viewer("ana", "reviewer"), viewer("boss", "admin"));
    for limit in [1, 2, 50] {
        assert_eq!(listed(&world.store, &ana, &decided_by("me"), limit).await, ids(&[3, 0, 2]));
        assert_eq!(listed(&world.store, &boss, &decided_by("ana"), limit).await, ids(&[3, 0, 2]));
        let with = |q: &str| ReviewQuery { q: Some(q.to_owned()), ..decided_by("me") };
        assert_eq!(listed(&world.store, &ana, &with("wind"), limit).await, ids(&[0, 2]));
        assert_eq!(listed(&world.store, &ana, &with("!?"), limit).await, []);
        let over = ReviewQuery { status: Some(ReviewStatus::Resolved), ..decided_by("me") };
        assert_eq!(listed(&world.store, &ana, &over, limit).await, ids(&[3, 0, 2]));
        for (flow, expected) in [("ask", &[3, 0, 2][..]), ("other", &[])] {
            let of_flow = ReviewQuery { flow: Some(flow.to_owned()), ..decided_by("me") };
            assert_eq!(listed(&world.store, &ana, &of_flow, limit).await, ids(expected));
        }
    }
    let pending = ReviewQuery { status: Some(ReviewStatus::Pending), ..decided_by("me") };
    assert_eq!(listed(&world.store, &ana, &pending, 50).await, []);
    assert_eq!(listed(&world.store, &viewer("tom", "reviewer"), &decided_by("me"), 50).await, ids(&[1]));
    assert_eq!(listed(&world.store, &boss, &decided_by("me"), 50).await, []);
}

async fn a_vote_is_listed_once_and_shown_to_others_when_the_review_is_over(world: World) {
    votes_are_listed(&world, false).await;
}

async fn a_secret_vote_is_listed_when_the_review_is_over(world: World) {
    votes_are_listed(&world, true).await;
}

async fn votes_are_listed(world: &World, blind: bool) {
    let (eva, boss) = (viewer("eva", "reviewer"), viewer("boss", "admin"));
    let review = committee(world, json!({"blind": blind, "reviewers": {}})).await;
    let query = decided_by("eva");
    for option in ["no", "yes"] {
        decide_at(world, &review, "eva", option).await;
        // The newer vote takes the place of the one before. The log does not name secret voters.
        let own = if blind { vec![] } else { vec![review.id] };
        assert_eq!(listed(&world.store, &eva, &query, 1).await, own);
        assert_eq!(listed(&world.store, &boss, &query, 1).await, [], "it may still change");
    }
    decide_at(world, &review, "ana", "yes").await;
    for viewer in [&eva, &boss] {
        assert_eq!(listed(&world.store, viewer, &query, 1).await, [review.id]);
    }
}

async fn decisions_are_found_in_the_index_of_the_log_and_beyond_it(world: World) {
    let (ana, eva) = (viewer("ana", "reviewer"), viewer("eva", "reviewer"));
    let secret = committee(&world, json!({"blind": true, "reviewers": {}})).await;
    decide_at(&world, &secret, "eva", "yes").await;
    decide_at(&world, &secret, "ana", "yes").await;
    let mut ids = vec![secret.id];
    for round in 0..2 {
        for number in 0..40 {
            let review = world.launched_review("hello").await;
            if number % 10 == 0 {
                decide_at(&world, &review, "ana", "no").await;
                ids.insert(0, review.id);
            }
        }
        for limit in [1, 3, 50] {
            assert_eq!(listed(&world.store, &ana, &decided_by("me"), limit).await, ids, "{round} {limit}");
            assert_eq!(listed(&world.store, &eva, &decided_by("me"), limit).await, [secret.id], "{round} {limit}");
        }
        index_all(&world).await;
    }
    let mut conn = world.store.inner.db.read().await.expect("reads");
    assert!(conn.indexed_to().await.expect("reads") > 64, "most of it is in the index");
}

async fn index_all(world: &World) {
    let mut progress = IndexProgress::default();
    while world.store.index_log(&mut progress, 64).await.expect("indexes") != Indexed::All {}
}
