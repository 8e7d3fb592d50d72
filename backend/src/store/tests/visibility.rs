//! Lists, compared with the rule in `shared::access`.

use std::collections::BTreeSet;

use serde_json::json;
use shared::access::{Absent, Access, Act, Principal, access};
use shared::api::{ReviewQuery, RunQuery};
use shared::id::ReviewId;
use shared::review::Review;

use super::support::{World, decide, decided, on_both};
use crate::store::db::Arg;
use crate::store::{blobs, db::Sql, queue, review_row, search, statistics};

on_both! {
    a_list_shows_exactly_what_the_rule_allows,
    a_list_is_read_page_by_page,
    words_and_roles_narrow_a_list,
}

pub fn viewers() -> Vec<Principal> {
    let names = ["ana", "tom", "dev", "boss"];
    let roles: [&[&str]; 8] = [
        &[],
        &["reviewer", "legal"],
        &["reviewer"],
        &["editor"],
        &["editor", "reviewer"],
        &["asker"],
        &["developer"],
        &["admin"],
    ];
    let mut viewers = Vec::new();
    for name in names {
        for roles in roles {
            for token in [false, true] {
                let own = roles.iter().map(ToString::to_string).collect();
                let all = Principal::new(name.parse().expect("a name"), own);
                viewers.push(Principal { token, ..all.clone() });
                if !token && (name, roles.contains(&"reviewer")) == ("ana", true) {
                    for absent in [("tom", "editor"), ("dev", "reviewer"), ("boss", "admin")] {
                        let them =
                            Absent { username: absent.0.parse().expect("a name"), roles: [absent.1.to_owned()].into() };
                        viewers.push(Principal { stands_for: vec![them], ..all.clone() });
                    }
                }
            }
        }
    }
    viewers
}

/// Gives a review other reviewers, as another flow would.
pub async fn readdress(world: &World, review: &mut Review, reviewers: serde_json::Value) {
    review.reviewers = serde_json::from_value(reviewers).expect("reviewers");
    rewrite(world, review).await;
}

/// Replaces the stored review by this one.
pub async fn rewrite(world: &World, review: &Review) {
    let run = review.run_id.expect("of a run").0;
    let body = blobs::encode(run, review, &mut blobs::NewBlobs::new()).expect("encodes");
    let columns: [(&str, Arg); 11] = [
        ("status", review.status.as_str().into()),
        ("kind", review.kind.as_str().into()),
        ("severity", review.stakes.severity.as_str().into()),
        ("flow", review.flow.as_ref().map(ToString::to_string).into()),
        ("requested_by", review.requested_by.as_str().into()),
        ("not_requester", review.reviewers.not_requester.into()),
        ("created_at", review.created_at.0.into()),
        ("tags", review_row::tags_of(review).into()),
        ("search", search::text_of(review).into()),
        ("body", body.into()),
        ("facts", statistics::column_of(review).expect("facts").into()),
    ];
    let queued = queue::COLUMNS.split(", ").zip(queue::columns_of(review));
    let mut update = Sql::new("UPDATE reviews SET run_id = run_id");
    for (name, value) in columns.into_iter().chain(queued) {
        update = update.push(", ").push(name).push(" = ").bind(value);
    }
    let mut conn = world.store.inner.db.write_on_this_thread().await.expect("writes");
    conn.execute(update.push(" WHERE id = ").bind(review.id.0)).await.expect("writes");
    for (table, key) in [("review_audience", "review_id"), ("queue", "id"), ("undecided_reviews", "id")] {
        let sql = Sql::new("DELETE FROM ").push(table).push(" WHERE ").push(key).push(" = ").bind(review.id.0);
        conn.execute(sql).await.expect("writes");
    }
    conn.execute(Sql::new(&review_row::AUDIENCE.insert()).values(review_row::audience_rows(review)))
        .await
        .expect("writes");
    if review.is_pending() {
        let (row, class, outline) = queue::row_of(review).expect("a row");
        let class = Sql::new(&queue::CLASSES.insert()).values([vec![class.into(), outline.into()]]);
        conn.execute(class.push(" ON CONFLICT DO NOTHING")).await.expect("writes");
        conn.execute(Sql::new(&queue::QUEUE.insert()).values([row])).await.expect("writes");
    }
    if let Some(row) = review_row::undecided_row(review) {
        conn.execute(Sql::new(&review_row::UNDECIDED.insert()).values([row])).await.expect("writes");
    }
    conn.commit().await.expect("writes");
}

async fn a_list_shows_exactly_what_the_rule_allows(world: World) {
    let addressed = [
        json!({}),
        json!({"roles": ["editor"]}),
        json!({"roles": ["reviewer"], "not_requester": true}),
        json!({"roles": ["developer", "asker"]}),
        json!({"users": ["tom"]}),
        json!({"users": ["dev"], "roles": ["legal"], "not_requester": true}),
        json!({"not_requester": true}),
        json!({"roles": ["editor"]}),
        json!({"users": ["tom"]}),
        json!({"tags": ["legal"]}),
        json!({"roles": ["editor"], "tags": ["reviewer"], "users": ["dev"]}),
        json!({"roles": ["editor", "legal"], "tags": ["legal", "reviewer"], "not_requester": true}),
        json!({"roles": ["reviewer", "editor"], "tags": ["legal"]}),
    ];
    let mut reviews = Vec::new();
    for (index, reviewers) in addressed.into_iter().enumerate() {
        let mut review = world.launched_review("hello").await;
        if index == 1 {
            review = decided(world.store.commit(decide(&review, "ana", "yes")).await).expect("decides").review;
        }
        let handed = |from: &str, to: &str| json!({ "from": from, "to": to, "at": review.created_at });
        review.delegations = match index {
            7 => serde_json::from_value(json!([handed("ana", "tom")])).expect("delegations"),
            8 => serde_json::from_value(json!([handed("tom", "ana"), handed("dev", "tom")])).expect("delegations"),
            _ => Vec::new(),
        };
        if index == 12 {
            review.escalated = vec!["editor".to_owned()];
        }
        if index == 4 {
            // A question of a program.
            review.flow = None;
        }
        readdress(&world, &mut review, reviewers).await;
        reviews.push(review);
    }
    for viewer in viewers() {
        let seen = |act: fn(&Review) -> Act<'_>| -> BTreeSet<ReviewId> {
            let allowed = reviews.iter().filter(|review| access(&viewer, act(review)) == Access::Allowed);
            allowed.map(|review| review.id).collect()
        };
        let listed = |page: shared::api::Page<Review>| -> BTreeSet<ReviewId> {
            page.items.into_iter().map(|review| review.id).collect()
        };
        let page = world.store.reviews(&viewer, &ReviewQuery::default()).await.expect("reads");
        assert_eq!(listed(page), seen(|review| Act::SeeReview(review)), "{viewer:?}");
        let mine = ReviewQuery { assigned: Some(shared::inbox::Assigned::Me), ..ReviewQuery::default() };
        let page = world.store.reviews(&viewer, &mine).await.expect("reads");
        assert_eq!(listed(page), seen(|review| Act::Decide(review)), "{viewer:?} decides");
        let pending = world.store.pending(&viewer, 50, usize::MAX).await.expect("reads");
        let visible = seen(|review| Act::SeeReview(review));
        let waiting = reviews.iter().filter(|review| review.is_pending() && visible.contains(&review.id)).count();
        assert_eq!((pending.tally.numbers(&viewer).0, pending.reviews.len()), (waiting as u64, waiting), "{viewer:?}");

        let runs = world.store.runs(&viewer, &RunQuery::default()).await.expect("reads").items;
        for review in &reviews {
            let id = review.run_id.expect("of a run");
            let state = world.store.run(id).await.expect("reads").expect("is there");
            let summary = crate::engine::summary(&state);
            let seen = world.store.seen_through(&viewer, &summary).await.expect("reads");
            assert_eq!(runs.iter().any(|run| run.id == id), seen.is_some(), "{viewer:?}");
            if access(&viewer, Act::Decide(review)) == Access::Allowed {
                assert!(seen.is_some(), "{viewer:?}");
            }
        }
    }
}

async fn a_list_is_read_page_by_page(world: World) {
    for n in 0..7 {
        world.clock.advance(std::time::Duration::from_millis(1));
        world.launch(&format!("number {n}")).await;
    }
    for viewer in viewers().into_iter().filter(|viewer| viewer.has("reviewer")) {
        let mut query = ReviewQuery { limit: Some(3), ..ReviewQuery::default() };
        let mut times = Vec::new();
        loop {
            let page = world.store.reviews(&viewer, &query).await.expect("reads");
            times.extend(page.items.iter().map(|review| review.created_at));
            query.cursor = page.next_cursor;
            if query.cursor.is_none() {
                break;
            }
        }
        assert_eq!(times.len(), 7, "{viewer:?}");
        assert!(times.is_sorted_by(|a, b| a > b), "newest first");
    }
}

async fn words_and_roles_narrow_a_list(world: World) {
    world.launch("hello").await;
    let viewer = Principal::new("ana".parse().expect("a name"), ["reviewer".to_owned()].into());
    for (q, role, flow, count) in [
        (Some("GO may"), None, None, 1),
        (Some("100%"), None, None, 0),
        (Some("_ay"), None, None, 0),
        (None, Some("reviewer"), Some("ask"), 1),
        (None, Some("editor"), None, 0),
        (None, None, Some("other"), 0),
    ] {
        let query = ReviewQuery {
            q: q.map(str::to_owned),
            role: role.map(str::to_owned),
            flow: flow.map(str::to_owned),
            ..ReviewQuery::default()
        };
        assert_eq!(world.store.reviews(&viewer, &query).await.expect("reads").items.len(), count, "{query:?}");
    }
}
