//! Pages of large rows: each page has few rows, and together they have all.

use std::collections::BTreeSet;

use shared::access::Principal;
use shared::api::{AuditQuery, Page, ReviewQuery};
use shared::inbox::ReviewOrder;
use shared::log::Cursor;
use shared::review::{Review, ReviewStatus};

use super::support::{World, decide, decided, on_both};
use crate::store::log_row::Form;
use crate::store::page_bytes::MAX_PAGE_BYTES;

on_both! {
    pages_of_large_rows_are_short_and_miss_none,
}

/// The number of reviews, each with a text of slightly more than a quarter of a page.
const MANY: usize = 9;

async fn pages_of_large_rows_are_short_and_miss_none(world: World) {
    world.add_user("rob", &["reviewer"]).await;
    let mut reviews = Vec::new();
    for number in 0..MANY {
        let text = format!("{number} {}", "x".repeat(MAX_PAGE_BYTES / 4));
        reviews.push(world.launched_review(&text).await);
    }
    let ids: BTreeSet<_> = reviews.iter().map(|review| review.id).collect();
    let viewer = Principal::new("rob".parse().expect("a name"), ["reviewer".to_owned()].into());

    let pending = [ReviewOrder::Urgency, ReviewOrder::Newest].map(|order| ReviewQuery {
        status: Some(ReviewStatus::Pending),
        order: Some(order),
        limit: Some(50),
        ..ReviewQuery::default()
    });
    let all = ReviewQuery { order: Some(ReviewOrder::Newest), limit: Some(50), ..ReviewQuery::default() };
    for mut query in pending.into_iter().chain([all]) {
        let mut seen = Vec::new();
        loop {
            let Page { items, next_cursor } = world.store.reviews(&viewer, &query).await.expect("reads");
            assert_eq!(items.len(), 3.min(MANY - seen.len()), "{query:?}");
            seen.extend(items.iter().map(|review: &Review| review.id));
            query.cursor = next_cursor;
            if query.cursor.is_none() {
                break;
            }
        }
        assert_eq!((seen.len(), seen.into_iter().collect::<BTreeSet<_>>()), (MANY, ids.clone()), "{query:?}");
    }

    decided(world.store.commit(decide(&reviews[0], "rob", "yes")).await).expect("it is decided");
    log_and_audit_have_every_entry(&world).await;
    // A single row exceeds a page, and the cursor may lie within the row.
    for _ in 0..2 {
        world.launch(&"x".repeat(MAX_PAGE_BYTES * 3 / 5)).await;
    }
    log_and_audit_have_every_entry(&world).await;
}

async fn log_and_audit_have_every_entry(world: &World) {
    let mut one_by_one = vec![];
    let mut from = world.store.origin();
    loop {
        let page = world.store.log(&from, None, 1).await.expect("reads").expect("a place of this log");
        one_by_one.extend(page.entries.into_iter().map(|entry| entry.cursor));
        if !page.more {
            break;
        }
        from = page.cursor;
    }
    let mut after: Option<Cursor> = Some(world.store.origin());
    let mut told = Vec::new();
    while let Some(from) = after.take() {
        let page = world.store.log(&from, None, 1000).await.expect("reads").expect("a place of this log");
        let bytes: usize = page.entries.iter().map(|entry| serde_json::to_string(entry).expect("JSON").len()).sum();
        assert!(bytes < 2 * MAX_PAGE_BYTES, "{bytes}");
        assert!(!page.entries.is_empty(), "it goes on");
        told.extend(page.entries.into_iter().map(|entry| entry.cursor));
        after = Some(page.cursor).filter(|_| page.more);
    }
    let mut query = AuditQuery { limit: Some(200), ..AuditQuery::default() };
    let mut audited = Vec::new();
    loop {
        let page = world.store.audit(&query, Form::Whole).await.expect("reads");
        let bytes: usize = page.items.iter().map(|entry| serde_json::to_string(entry).expect("JSON").len()).sum();
        assert!(bytes <= MAX_PAGE_BYTES + 100_000, "{bytes}");
        assert!(!page.items.is_empty(), "it goes on");
        audited.extend(page.items.into_iter().map(|entry| entry.cursor));
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            break;
        }
    }
    audited.reverse();
    assert_eq!((audited, &one_by_one), (told.clone(), &told));
}
