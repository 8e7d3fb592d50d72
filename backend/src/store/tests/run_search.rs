//! Runs are found by words, time and person: the same, whether the index of the log has reached them or not.

use std::time::Duration;

use shared::access::Principal;
use shared::api::RunQuery;
use shared::id::RunId;
use shared::person_filter::PersonFilter;
use shared::run::{Ending, RunStatus};

use super::support::{World, decide, decided, on_both, person};
use crate::store::log_index::{BLOCK, IndexProgress, Indexed};

on_both! {
    runs_are_found_by_words_time_and_person,
}

const TEXTS: [&str; 4] = ["Wind over the ocean", "Refund order 4711", "windmill", "Ocean order"];

/// Returns the ids of all pages of a list, which have one run each.
async fn listed(world: &World, viewer: &Principal, query: &RunQuery) -> Vec<RunId> {
    let mut query = RunQuery { limit: Some(1), ..query.clone() };
    let mut ids = Vec::new();
    loop {
        let page = world.store.runs(viewer, &query).await.expect("reads");
        assert!(page.items.len() <= 1, "{query:?}");
        ids.extend(page.items.iter().map(|run| run.id));
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            return ids;
        }
    }
}

async fn runs_are_found_by_words_time_and_person(world: World) {
    let mut runs = Vec::new();
    for text in TEXTS {
        world.clock.advance(Duration::from_mins(1));
        runs.push(world.launch(text).await.summary);
    }
    let review = world.review_of(runs[1].id).await;
    decided(world.store.commit(decide(&review, "ana", "no")).await).expect("it is decided");
    let q = |q: &str| RunQuery { q: Some(q.to_owned()), ..RunQuery::default() };
    let id = runs[2].id.to_string();
    let (after, before) = (Some(runs[1].created_at), Some(runs[3].created_at));
    let by = |name: &str| Some(name.parse::<PersonFilter>().expect("a person"));
    let cases: [(RunQuery, &[usize]); 14] = [
        (q("wind"), &[2, 0]),
        (q("ORDER oce"), &[3]),
        (q("ask dev"), &[3, 2, 1, 0]),
        (q("running"), &[]),
        (q("!?"), &[]),
        (q(&id), &[2]),
        (q(&id[..23]), &[2]),
        (RunQuery { started_after: after, started_before: before, ..RunQuery::default() }, &[2, 1]),
        (RunQuery { started_after: after, ..q("order") }, &[3, 1]),
        (RunQuery { started_before: before, ..q("order") }, &[1]),
        (RunQuery { status: Some(RunStatus::Failed), ..q("order") }, &[1]),
        (RunQuery { ending: Some(Ending::Rejected), requested_by: by("dev"), ..RunQuery::default() }, &[1]),
        (RunQuery { flow: Some("ask".to_owned()), requested_by: by("dev"), ..q("wind") }, &[2, 0]),
        (RunQuery { flow: Some("other".to_owned()), ..q("wind") }, &[]),
    ];
    // First read from the log itself, then along its index.
    for indexed in [false, true] {
        if indexed {
            // A block is indexed once it is full.
            for number in 0..BLOCK {
                world.add_user(&format!("person{number}"), &["reviewer"]).await;
            }
            while world.store.index_log(&mut IndexProgress::default(), BLOCK).await.expect("indexes") != Indexed::All {}
        }
        for (query, expected) in &cases {
            let expected: Vec<RunId> = expected.iter().map(|index| runs[*index].id).collect();
            // One sees everything, one what they are involved in, and one what they started.
            for (name, role) in [("boss", "admin"), ("ana", "reviewer"), ("dev", "asker")] {
                let viewer = Principal { roles: [role.to_owned()].into(), ..person(name) };
                assert_eq!(listed(&world, &viewer, query).await, expected, "{name}, indexed: {indexed}: {query:?}");
            }
            let nobody = Principal { roles: ["asker".to_owned()].into(), ..person("eve") };
            assert_eq!(listed(&world, &nobody, query).await, [], "{query:?}");
        }
        let mine = RunQuery { requested_by: Some(PersonFilter::Me), ..RunQuery::default() };
        for (name, count) in [("dev", 4), ("boss", 0)] {
            let viewer = Principal { roles: ["admin".to_owned()].into(), ..person(name) };
            assert_eq!(listed(&world, &viewer, &mine).await.len(), count, "{name}");
        }
    }
    // Whoever sees few runs, or looks among those that ended in some way, waits for no scan of the log.
    world.database.execute("DELETE FROM log").await.expect("runs");
    for (name, role, query, expected) in [
        ("dev", "asker", q("wind"), &[2, 0][..]),
        ("boss", "admin", RunQuery { status: Some(RunStatus::Failed), ..q("order") }, &[1]),
        ("ana", "reviewer", RunQuery { ending: Some(Ending::Rejected), ..q("order") }, &[1]),
    ] {
        let viewer = Principal { roles: [role.to_owned()].into(), ..person(name) };
        let expected: Vec<RunId> = expected.iter().map(|index| runs[*index].id).collect();
        assert_eq!(listed(&world, &viewer, &query).await, expected, "{name}: {query:?}");
    }
}
