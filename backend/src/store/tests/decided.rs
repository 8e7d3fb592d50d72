//! People find again what they decided: the newest decision first, whatever the review's own age, and a secret vote only
//! by who cast it.

use std::time::Duration;

use serde_json::json;
use shared::access::Principal;
use shared::api::ReviewQuery;
use shared::id::ReviewId;
use shared::person_filter::PersonFilter;
use shared::review::{Review, ReviewStatus};

use super::acts::decide_with_edit;
use super::support::{World, actor, decide, decided, new_run, on_both, person};
use super::votes::committee;
use crate::clock::Clock as _;
use crate::engine::Carrier;
use crate::store::log_index::{IndexProgress, Indexed};
use crate::store::{Change, Committed, Operation, Store};

on_both! {
    what_a_person_decided_is_listed_by_the_time_of_the_decision,
    a_vote_is_listed_once_and_shown_to_others_when_the_review_is_over,
    a_secret_vote_is_listed_when_the_review_is_over,
    a_vote_whose_edit_ends_its_review_is_listed_once,
    decisions_are_found_in_the_index_of_the_log_and_beyond_it,
    a_filter_finds_the_oldest_decisions_behind_many_others,
}

fn viewer(name: &str, role: &str) -> Principal {
    Principal { roles: [role.to_owned()].into(), ..person(name) }
}

/// Returns the reviews on all pages of a list, which have up to `limit` each.
async fn pages(store: &Store, viewer: &Principal, query: &ReviewQuery, limit: u32) -> Vec<Review> {
    let mut query = ReviewQuery { limit: Some(limit), ..query.clone() };
    let mut reviews = Vec::new();
    loop {
        let page = store.reviews(viewer, &query).await.expect("reads");
        assert!(page.items.len() <= limit as usize, "{query:?}");
        reviews.extend(page.items);
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            return reviews;
        }
    }
}

/// Like [`pages`], with only the ids of the reviews.
async fn listed(store: &Store, viewer: &Principal, query: &ReviewQuery, limit: u32) -> Vec<ReviewId> {
    pages(store, viewer, query, limit).await.iter().map(|review| review.id).collect()
}

fn decided_by(name: &str) -> ReviewQuery {
    ReviewQuery { decided_by: Some(name.parse::<PersonFilter>().expect("a person")), ..ReviewQuery::default() }
}

async fn decide_at(world: &World, review: &Review, who: &str, option: &str) {
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

async fn a_vote_whose_edit_ends_its_review_is_listed_once(world: World) {
    let eva = viewer("eva", "reviewer");
    let one_suffices = json!({"policy": {"quorum": 1}, "review_keys": ["text"], "edit_keys": ["text"]});
    let review = committee(&world, one_suffices).await;
    let earlier = world.launched_review("earlier").await;
    decide_at(&world, &earlier, "eva", "yes").await;
    world.clock.advance(Duration::from_secs(1));
    let ended = decided(world.store.commit(decide_with_edit(&review, "eva")).await).expect("it is decided");
    assert!(!ended.review.is_pending());
    let log = world.store.log(&world.store.origin(), review.run_id, 1000).await.expect("reads").expect("of this log");
    let naming = log.entries.iter().filter(|entry| entry.event.deciders().contains(&eva.username));
    let rows: Vec<_> = naming.map(|entry| world.store.place(&entry.cursor).expect("of this log").seq).collect();
    assert!(matches!(&rows[..], [vote, end] if vote == end), "two entries of one row name her: {rows:?}");
    for limit in [1, 50] {
        assert_eq!(listed(&world.store, &eva, &decided_by("eva"), limit).await, [review.id, earlier.id]);
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

/// Asks people a question without a flow.
async fn question(world: &World) -> Review {
    let asked = json!({"kind": "clarification", "question": "May I?",
        "options": [{"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"}]});
    let question = Carrier::of(&serde_json::from_value(asked).expect("a question")).expect("it can be asked");
    let operation = Operation::Ask { run: new_run(), question: Box::new(question) };
    let asked = world.store.commit(Change { by: Some(actor("dev")), key: None, operation }).await;
    let Ok(Committed::Review { review }) = asked else { panic!("{asked:?}") };
    *review
}

async fn a_filter_finds_the_oldest_decisions_behind_many_others(world: World) {
    let rules = json!({"policy": {"quorum": 1}, "severity": "critical", "reversible": false,
        "reviewers": {"tags": ["editor"]}});
    let rare = [committee(&world, rules).await, question(&world).await, world.launched_review("rain").await];
    for review in &rare {
        decide_at(&world, review, "eva", "yes").await;
    }
    for number in 0..40 {
        let review = world.launched_review("wind").await;
        decide_at(&world, &review, "eva", "yes").await;
        if number == 30 {
            index_all(&world).await;
        }
    }
    let cases = [
        (json!({"flow": "committee"}), 1),
        (json!({"kind": "clarification"}), 1),
        (json!({"severity": "critical"}), 1),
        (json!({"irreversible": true}), 1),
        (json!({"tag": "editor"}), 1),
        (json!({"run": rare[2].run_id}), 1),
        // Few reviews have one word, and many the other.
        (json!({"q": "rain"}), 1),
        (json!({"q": "rain", "flow": "committee"}), 0),
        (json!({"q": "wind"}), 40),
        (json!({"q": "wind", "flow": "committee"}), 0),
        (json!({"flow": "ask"}), 41),
        (json!({"flow": "ask", "severity": "critical"}), 0),
        (json!({"status": "resolved"}), 43),
        (json!({"status": "expired"}), 0),
    ];
    for viewer in [viewer("eva", "reviewer"), viewer("boss", "admin")] {
        let all = pages(&world.store, &viewer, &decided_by("eva"), 50).await;
        assert_eq!(all.len(), 43);
        for (filter, count) in &cases {
            let query: ReviewQuery = serde_json::from_value(filter.clone()).expect("a query");
            let matches = |review: &&Review| {
                query.matches(review, &viewer, world.clock.now())
                    && query.run.is_none_or(|run| review.run_id == Some(run))
                    && query.q.as_ref().is_none_or(|word| review.items.iter().any(|item| item.value == **word))
            };
            let expected: Vec<_> = all.iter().filter(matches).map(|review| review.id).collect();
            assert_eq!(expected.len(), *count, "{filter}");
            let query = ReviewQuery { decided_by: decided_by("eva").decided_by, ..query };
            for limit in [3, 50] {
                assert_eq!(listed(&world.store, &viewer, &query, limit).await, expected, "{filter} {limit}");
            }
            let first = ReviewQuery { limit: Some(1), ..query };
            let first = world.store.reviews(&viewer, &first).await.expect("reads").items;
            assert_eq!(first.first().map(|review| review.id), expected.first().copied(), "{filter}");
        }
    }
}

async fn index_all(world: &World) {
    let mut progress = IndexProgress::default();
    while world.store.index_log(&mut progress, 64).await.expect("indexes") != Indexed::All {}
}
