//! The timer of a review: one row, no matter how many deadlines there are.

use std::time::Duration;

use serde_json::json;
use shared::api::ReviewQuery;
use shared::id::{RunId, TaskId};
use shared::log::EntryKind;
use shared::review::{Review, ReviewStatus};

use super::support::{World, actor, decide, decided, new_run, on_both, person};
use crate::engine::Input;
use crate::store::{Change, NewFlow, Operation, Room};

on_both! { an_escalation_asks_others_on_the_same_row_and_votes_of_before_count }

/// A person has an hour; then people with the role `lead` are asked too, and have two hours.
async fn launched(world: &World) -> Review {
    let flow = serde_json::from_value(json!({ "id": "late", "nodes": { "ask": { "human": {
        "prompt": "Well?",
        "options": [{ "id": "yes", "label": "Yes" }],
        "timeout": "1h",
        "on_timeout": { "escalate": "lead", "extend": "2h", "then": "reject" },
    } } } }));
    let new = NewFlow { flow: flow.expect("a flow"), source: "late".to_owned(), digest: "sha256:2".to_owned() };
    world.store.commit(Change::by_server(Operation::SaveFlow(Box::new(new)))).await.expect("saved");
    let run = new_run();
    let (flow, input) = ("late".parse().expect("an id"), shared::JsonMap::new());
    let launch = Operation::launch(run, flow, input);
    world.store.commit(Change { by: Some(actor("dev")), key: None, operation: launch }).await.expect("launched");
    world.review_of(run).await
}

/// Claims the only timer, as a worker would.
async fn timer(world: &World) -> TaskId {
    // PostgreSQL uses its own clock.
    let mut conn = world.store.inner.db.write_on_this_thread().await.expect("writes");
    conn.execute(super::super::db::Sql::new("UPDATE tasks SET ready_at = 0")).await.expect("writes");
    conn.commit().await.expect("writes");
    let room = Room { calls: 10, timers: 10, suspects: 1 };
    let claimed = world.store.claim("w", room, Duration::from_secs(30), &[]).await.expect("claims");
    assert_eq!(claimed.len(), 1);
    claimed[0].task.id
}

async fn due(world: &World, run: RunId) {
    let input = Box::new(Input::Due { task: timer(world).await });
    world.store.commit(Change::by_server(Operation::Run { run, input })).await.expect("it is due");
    assert_eq!(world.store.counts().await.expect("reads")["tasks"], 1, "one row");
}

async fn an_escalation_asks_others_on_the_same_row_and_votes_of_before_count(world: World) {
    world.add_user("lia", &["lead"]).await;
    let seen = launched(&world).await;
    let run = seen.run_id.expect("of a run");
    let mut lia = person("lia");
    lia.roles.insert("lead".to_owned());
    let pending = ReviewQuery { status: Some(ReviewStatus::Pending), ..ReviewQuery::default() };

    world.clock.advance(Duration::from_mins(54));
    due(&world, run).await;
    assert!(world.store.reviews(&lia, &pending).await.expect("reads").items.is_empty());
    world.clock.advance(Duration::from_mins(6));
    due(&world, run).await;
    let listed = world.store.reviews(&lia, &pending).await.expect("reads").items;
    assert_eq!(listed.iter().map(|review| review.id).collect::<Vec<_>>(), [seen.id], "it stands in her list");
    assert_eq!(listed[0].escalated, ["lead"]);

    let entries = world.told(EntryKind::ReviewUpdated).await;
    let kinds: Vec<_> = entries.iter().map(|entry| entry.event.kind).filter(|kind| kind.is_review()).collect();
    assert_eq!(kinds, [EntryKind::ReviewRequested, EntryKind::ReviewExpiring, EntryKind::ReviewUpdated]);
    // Ana is still asked what she saw before.
    let answer = decided(world.store.commit(decide(&seen, "ana", "yes")).await).expect("it counts");
    assert_eq!(answer.review.status, ReviewStatus::Resolved);
    assert_eq!(world.store.counts().await.expect("reads")["tasks"], 0);
}
