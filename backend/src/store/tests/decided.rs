//! People find again what they decided: the newest decision first, whatever the review's own age, and a secret vote only
//! by who cast it.

use std::time::Duration;

use serde_json::json;
use shared::access::Principal;
use shared::api::ReviewQuery;
use shared::id::ReviewId;
use shared::person_filter::PersonFilter;
use shared::review::ReviewStatus;
use uuid::Uuid;

use super::support::{World, decide, decided, on_both, person};
use super::votes::committee;
use crate::store::Store;
use crate::store::db::Sql;
use crate::store::earlier_decisions::Listed;

on_both! {
    what_a_person_decided_is_listed_by_the_time_of_the_decision,
    a_vote_is_listed_once_and_shown_to_others_when_the_review_is_over,
    what_an_earlier_version_stored_is_listed_too,
    what_an_older_server_left_is_in_no_list,
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
    let review = committee(&world, json!({"blind": true, "reviewers": {}})).await;
    let (eva, boss) = (viewer("eva", "reviewer"), viewer("boss", "admin"));
    for option in ["no", "yes"] {
        decide_at(&world, &review, "eva", option).await;
        let mut conn = world.store.inner.db.read().await.expect("reads");
        let rows = conn.fetch(Sql::new("SELECT username FROM decided_reviews")).await.expect("reads");
        assert_eq!(rows.len(), 1, "the newer vote takes the place of the one before");
        assert_eq!(listed(&world.store, &eva, &decided_by("me"), 1).await, [review.id]);
        assert_eq!(listed(&world.store, &boss, &decided_by("eva"), 1).await, [], "it is secret");
    }
    decide_at(&world, &review, "ana", "yes").await;
    assert_eq!(listed(&world.store, &boss, &decided_by("eva"), 1).await, [review.id]);
}

async fn what_an_earlier_version_stored_is_listed_too(world: World) {
    let mut ids = Vec::new();
    for text in ["one", "two", "three"] {
        let review = world.launched_review(text).await;
        decide_at(&world, &review, "ana", "no").await;
        ids.insert(0, review.id);
    }
    let mut mine = None;
    let step = async |mine: &mut Option<Uuid>| world.store.list_earlier_decisions(mine, 2).await.expect("lists");
    assert_eq!(step(&mut mine).await, Listed::All, "this version stored all of them");
    assert_eq!(world.database.execute("DELETE FROM decided_reviews").await.expect("runs"), 3);
    let sql = Sql::new("INSERT INTO unlisted_decisions (one, after_id, last_id) VALUES (1, ").bind(Uuid::nil());
    world.store.inner.db.execute(sql.push(", ").bind(Uuid::max()).push(")")).await.expect("writes");
    let ana = viewer("ana", "reviewer");
    assert_eq!(listed(&world.store, &ana, &decided_by("me"), 50).await, []);
    assert_eq!(step(&mut mine).await, Listed::Some);
    assert_eq!(step(&mut Some(Uuid::nil())).await, Listed::Elsewhere, "another server has continued");
    assert_eq!(listed(&world.store, &ana, &decided_by("me"), 50).await.len(), 2);
    assert_eq!(step(&mut mine).await, Listed::Some);
    assert_eq!(step(&mut mine).await, Listed::All);
    assert_eq!(listed(&world.store, &ana, &decided_by("me"), 50).await, ids);
}

async fn what_an_older_server_left_is_in_no_list(world: World) {
    let review = world.launched_review("hello").await;
    decide_at(&world, &review, "ana", "no").await;
    // A vote that was replaced, and one of a person who has not decided the review.
    for left in ["username, decided_at - 1", "'tom', decided_at"] {
        let sql =
            format!("INSERT INTO decided_reviews SELECT {left}, review_id FROM decided_reviews WHERE username = 'ana'");
        assert!(world.database.execute(&sql).await.expect("runs") > 0);
    }
    for limit in [1, 50] {
        assert_eq!(listed(&world.store, &viewer("ana", "reviewer"), &decided_by("me"), limit).await, [review.id]);
        assert_eq!(listed(&world.store, &viewer("tom", "reviewer"), &decided_by("me"), limit).await, []);
    }
}
