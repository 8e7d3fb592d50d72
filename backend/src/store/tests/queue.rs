//! The queue follows the rules of filters and of rights: lists in both orders, their pages, and counts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use shared::access::{Access, Act, Principal, access};
use shared::api::ReviewQuery;
use shared::id::ReviewId;
use shared::inbox::{AgeGroup, Assigned, Counts, Facets, Nearness, ReviewOrder, Urgency, is_with, roles};
use shared::review::Review;
use shared::time::Timestamp;

use super::support::{Dice, World, decide, decided, on_both, on_review, person};
use super::visibility::{rewrite, viewers};
use crate::clock::Clock as _;
use crate::engine::Input;
use crate::store::db::Sql;
use crate::store::log_index::{IndexProgress, Indexed};
use crate::store::search;

on_both! {
    lists_and_counts_are_what_the_rules_say,
    a_search_that_looks_at_some_only_says_so,
    what_changes_moves_in_the_queue,
    reviews_of_an_earlier_version_stand_in_the_queue_after_a_start,
}

/// Makes reviews of every kind.
async fn reviews(world: &World, dice: &mut Dice, count: usize) -> Vec<Review> {
    let reviewers = [
        json!({}),
        json!({ "roles": ["editor"] }),
        json!({ "roles": ["reviewer", "editor"], "not_requester": true }),
        json!({ "users": ["tom"] }),
        json!({ "users": ["dev"], "roles": ["legal"], "not_requester": true }),
        json!({ "tags": ["legal"] }),
        json!({ "roles": ["editor", "legal"], "tags": ["legal", "reviewer"] }),
    ];
    let now = world.clock.now().0;
    let mut all = Vec::new();
    for _ in 0..count {
        let mut review = world.launched_review(dice.of::<&str>(&["hello ocean", "100% wind", "WIND and rain"])).await;
        let at = |minutes: i64| Timestamp(now + minutes * 60_000_000);
        review.created_at = at(-*dice.of(&[0, 0, 60, 60, 120, 180, 60 * 24, 60 * 24 * 7]));
        review.expires_at = dice.of(&[None, Some(10), Some(30), Some(31), Some(1440), Some(1441), Some(-5)]).map(at);
        if let Some(minutes) = dice.of(&[None, Some(5), Some(-5)]) {
            let by = "tom".parse().expect("a name");
            review.claimed_by = Some(shared::review::Claim { by, token: None, until: at(*minutes) });
        }
        let mut more = json!({
            "severity": dice.of(&["low", "medium", "high", "critical"]), "kind": dice.of(&["approval", "tool_calls"]),
            "flow": dice.of(&["ask", "mail"]), "reversible": dice.of(&[Value::Null, json!(true), json!(false)]),
            "reviewers": dice.of(&reviewers), "escalated": dice.of(&[json!([]), json!([]), json!(["legal"])]),
            "status": dice.of(&["pending", "pending", "pending", "resolved"]),
            "requested_by": dice.of(&["dev", "ana"]), "barred": dice.of(&[json!([]), json!([]), json!(["tom"])]),
        });
        if dice.below(5) == 0 {
            more["delegations"] = json!([{ "from": "ana", "to": "tom", "at": review.created_at }]);
        }
        let mut whole = serde_json::to_value(&review).expect("JSON");
        whole.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let review = serde_json::from_value(whole).expect("a review");
        rewrite(world, &review).await;
        all.push(review);
    }
    all
}

fn query(dice: &mut Dice) -> ReviewQuery {
    let mut query = json!({});
    let parts: [(&str, &[Value]); 9] = [
        ("kind", &[json!("approval"), json!("tool_calls")]),
        ("severity", &[json!("critical"), json!("low")]),
        ("flow", &[json!("ask"), json!("mail"), json!("other")]),
        ("role", &[json!("reviewer"), json!("editor"), json!("legal")]),
        ("tag", &[json!("legal"), json!("gold")]),
        ("assigned", &[json!("me"), json!("claimed"), json!("unclaimed")]),
        (
            "due",
            &[
                json!("30m"),
                json!("1day"),
                json!("none"),
                json!("2100-01-01T00:00:00Z"),
                json!("9999-12-31T23:59:59.999999Z"),
            ],
        ),
        ("irreversible", &[json!(true), json!(false)]),
        ("age", &[json!("1h"), json!("2h 1s"), json!("1day"), json!("7days"), json!("0s")]),
    ];
    for (name, values) in parts {
        if dice.below(4) == 0 {
            query[name] = dice.of(values).clone();
        }
    }
    if dice.below(4) == 0 {
        query["q"] = dice
            .of(&[json!("wind"), json!("Ocean hello"), json!("100%"), json!("_"), json!("dev che"), json!("nothing")])
            .clone();
    }
    serde_json::from_value(query).expect("a query")
}

fn has_words(review: &Review, query: &ReviewQuery) -> bool {
    let Some(q) = query.q.as_ref().map(|q| q.to_lowercase()) else { return true };
    let text = search::text_of(review);
    let parts = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let (wanted, words) = (parts(&q), parts(&text));
    !wanted.is_empty() && wanted.iter().all(|wanted| words.iter().any(|word| word.starts_with(wanted)))
}

async fn lists_and_counts_are_what_the_rules_say(world: World) {
    let mut dice = Dice(7);
    let all = reviews(&world, &mut dice, 60).await;
    // Some are found by the index, and the others among the newer log entries.
    assert!(matches!(
        world.store.index_log(&mut IndexProgress::default(), 40).await.expect("indexes"),
        Indexed::Some(_)
    ));
    let (viewers, now) = (viewers(), world.clock.now());
    for round in 0..150 {
        let viewer = dice.of(&viewers).clone();
        let query = if round < 10 { ReviewQuery::default() } else { query(&mut dice) };
        let seen = |review: &&Review| access(&viewer, Act::SeeReview(review)) == Access::Allowed;
        let fit = |review: &&Review| has_words(review, &query) && query.matches(review, &viewer, now);
        let about = format!("{viewer:?}\n{query:?}");

        let whole = ReviewQuery { limit: Some(200), ..query.clone() };
        let listed = world.store.reviews(&viewer, &whole).await.expect("reads").items;
        let listed: BTreeSet<ReviewId> = listed.iter().map(|review| review.id).collect();
        assert_eq!(listed, all.iter().filter(seen).filter(fit).map(|review| review.id).collect(), "{about}");

        let pending: Vec<&Review> = all.iter().filter(|review| review.is_pending()).filter(seen).collect();
        let mut urgent: Vec<Urgency> = pending.iter().copied().filter(fit).map(Urgency::of).collect();
        urgent.sort();
        let paged = pages(&world, &viewer, &query).await;
        assert_eq!(paged, urgent, "{about}");

        let found: Vec<&Review> = pending.into_iter().filter(|review| has_words(review, &query)).collect();
        let facets = world.store.facets(&viewer, &query).await.expect("counts");
        assert_eq!(facets, counted(&found, &query, &viewer, now), "{about}");
        if round < 10 {
            let numbers = world.store.tally().await.expect("counts").numbers(&viewer);
            assert_eq!((numbers.0, numbers.1), (facets.total, facets.mine), "{about}");
        }
    }
}

/// Reads the queue page by page.
async fn pages(world: &World, viewer: &Principal, query: &ReviewQuery) -> Vec<Urgency> {
    let mut query = ReviewQuery { order: Some(ReviewOrder::Urgency), limit: Some(7), ..query.clone() };
    let mut all = Vec::new();
    loop {
        let page = world.store.reviews(viewer, &query).await.expect("reads");
        all.extend(page.items.iter().map(Urgency::of));
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            return all;
        }
    }
}

/// Counts the reviews one by one.
fn counted(found: &[&Review], query: &ReviewQuery, viewer: &Principal, now: Timestamp) -> Facets {
    let fit: Vec<_> = found.iter().filter(|review| query.matches(review, viewer, now)).collect();
    let mine = fit.iter().filter(|review| is_with(Assigned::Me, review, viewer, now)).count();
    let facet = |query: ReviewQuery, values: &dyn Fn(&Review) -> BTreeSet<String>| {
        let mut tally = BTreeMap::<String, u64>::new();
        for review in found.iter().filter(|review| query.matches(review, viewer, now)) {
            for value in values(review) {
                *tally.entry(value).or_default() += 1;
            }
        }
        let mut values: Vec<_> =
            tally.into_iter().map(|(value, count)| shared::inbox::Count { value, count }).collect();
        values.sort_by(|one, other| other.count.cmp(&one.count).then(one.value.cmp(&other.value)));
        Counts { values, rest: None }
    };
    let with = |review: &Review| {
        let with = Assigned::ALL.iter().copied().filter(|with| is_with(*with, review, viewer, now));
        with.map(|with| with.as_str().to_owned()).collect()
    };
    let one = |value: &str| BTreeSet::from([value.to_owned()]);
    Facets {
        total: fit.len() as u64,
        mine: mine as u64,
        at_least: false,
        kind: facet(ReviewQuery { kind: None, ..query.clone() }, &|review| one(review.kind.as_str())),
        severity: facet(ReviewQuery { severity: None, ..query.clone() }, &|review| {
            one(review.stakes.severity.as_str())
        }),
        flow: facet(ReviewQuery { flow: None, ..query.clone() }, &|review| {
            review.flow.iter().map(ToString::to_string).collect()
        }),
        role: facet(ReviewQuery { role: None, ..query.clone() }, &|review| roles(review).map(str::to_owned).collect()),
        tag: facet(ReviewQuery { tag: None, ..query.clone() }, &|review| {
            review.reviewers.tags.iter().cloned().collect()
        }),
        assigned: facet(ReviewQuery { assigned: None, ..query.clone() }, &with),
        due: facet(ReviewQuery { due: None, ..query.clone() }, &|review| {
            one(Nearness::of(review.expires_at, now).as_str())
        }),
        age: facet(ReviewQuery { age: None, ..query.clone() }, &|review| {
            one(AgeGroup::of(review.created_at, now).as_str())
        }),
    }
}

fn ana() -> Principal {
    Principal { roles: ["reviewer".to_owned()].into(), ..person("ana") }
}

async fn a_search_that_looks_at_some_only_says_so(world: World) {
    for n in 0..6 {
        world.launch(&format!("wind {n}")).await;
    }
    let query = ReviewQuery { q: Some("wind".to_owned()), ..ReviewQuery::default() };
    let some = world.store.facets_among(&ana(), &query, 5, 4).await.expect("counts");
    assert_eq!((some.total, some.at_least), (4, true));
    let all = world.store.facets_among(&ana(), &query, 5, 7).await.expect("counts");
    assert_eq!((all.total, all.at_least), (6, false));
    let few = world.store.facets_among(&ana(), &query, 6, 4).await.expect("counts");
    assert_eq!((few.total, few.at_least), (6, false), "so few are looked up");
    let without = world.store.facets_among(&ana(), &ReviewQuery::default(), 5, 4).await.expect("counts");
    assert_eq!((without.total, without.at_least), (6, false), "no words, no limit");
}

async fn what_changes_moves_in_the_queue(world: World) {
    let review = world.launched_review("hello").await;
    let count = async |query: Value| {
        let query: ReviewQuery = serde_json::from_value(query).expect("a query");
        let total = world.store.facets(&ana(), &query).await.expect("counts").total;
        assert_eq!(pages(&world, &ana(), &query).await.len() as u64, total);
        total
    };
    assert_eq!(count(json!({ "due": "1h" })).await, 1);
    assert_eq!(count(json!({ "assigned": "claimed" })).await, 0);
    let claim = Input::Claim { review: review.id, by: person("tom"), via: shared::decision::Via::Human };
    world.store.commit(on_review(review.id, "tom", claim)).await.expect("claimed");
    assert_eq!(count(json!({ "assigned": "claimed" })).await, 1);
    world.clock.advance(std::time::Duration::from_mins(15));
    assert_eq!(count(json!({ "assigned": "claimed" })).await, 0, "the lease is over, and nobody wrote");
    assert_eq!(count(json!({ "assigned": "me" })).await, 1);
    assert_eq!(count(json!({ "age": "20m" })).await, 0);
    world.clock.advance(std::time::Duration::from_mins(5));
    assert_eq!(count(json!({ "age": "20m" })).await, 1, "it has grown old, and nobody wrote");
    let delegate = Input::Delegate {
        review: review.id,
        by: person("ana"),
        via: shared::decision::Via::Human,
        to: "tom".parse().expect("a name"),
        person: None,
    };
    world.store.commit(on_review(review.id, "ana", delegate)).await.expect("handed over");
    assert_eq!((count(json!({})).await, count(json!({ "assigned": "me" })).await), (1, 0), "seen, and no longer hers");
    let now = world.store.review(review.id).await.expect("reads").expect("is there");
    decided(world.store.commit(decide(&now, "tom", "yes")).await).expect("decided");
    assert_eq!(count(json!({})).await, 0);
}

async fn reviews_of_an_earlier_version_stand_in_the_queue_after_a_start(world: World) {
    let mut dice = Dice(3);
    reviews(&world, &mut dice, 12).await;
    let boss = Principal { roles: ["admin".to_owned()].into(), ..person("boss") };
    let query = ReviewQuery::default();
    let before = pages(&world, &boss, &query).await;
    let broken = before[0].id;
    let mut conn = world.store.inner.db.write_on_this_thread().await.expect("writes");
    let old =
        "UPDATE reviews SET facts = NULL, due = NULL, severity_rank = NULL, irreversible = NULL, claimed_until = NULL";
    for old in [old, "DELETE FROM queue", "DELETE FROM classes"] {
        conn.execute(Sql::new(old)).await.expect("writes");
    }
    conn.execute(Sql::new("UPDATE reviews SET body = '{' WHERE id = ").bind(broken.0)).await.expect("writes");
    conn.commit().await.expect("writes");
    assert!(pages(&world, &boss, &query).await.is_empty());

    let store = world.another().await;
    let after: BTreeSet<ReviewId> = pages(&world, &boss, &query).await.iter().map(|place| place.id).collect();
    assert_eq!(after, before.iter().map(|place| place.id).collect(), "also what cannot be read");
    for viewer in viewers() {
        let (pending, mine, _) = store.tally().await.expect("counts").numbers(&viewer);
        let unreadable = store.pending(&viewer, 200, usize::MAX).await.expect("reads").reviews;
        assert_eq!(pending, unreadable.len() as u64, "{viewer:?}");
        let first = store.pending(&viewer, 200, 1).await.expect("reads");
        assert_eq!((first.tally.numbers(&viewer).0, first.reviews.len()), (pending, 0), "nothing fits into a byte");
        assert!(mine <= pending);
    }
    store.close().await;
}
