//! Reviews and runs with large values: what is read without these values is still read.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use shared::JsonMap;
use shared::access::{Act, Principal, access};
use shared::api::RunQuery;
use shared::decision::{ActionDecision, DecisionRequest, Verdict, Via};
use shared::id::RunId;
use shared::review::Review;

use super::support::{World, actor, new_run, on_both, on_review, person};
use crate::engine::Input;
use crate::store::db::{Conn, Sql};
use crate::store::packed::unpack;
use crate::store::{Change, NewFlow, Operation};

on_both! {
    whoever_decided_an_edited_call_sees_its_review_without_large_values,
    a_review_with_a_moved_decision_is_read_as_a_whole,
    a_run_with_a_moved_phase_is_read_as_a_whole,
}

/// An object of about 4 KB that consists of short strings.
fn large(words: &str) -> Value {
    (0..41).map(|number| (format!("k{number:02}"), json!(words.repeat(90 / words.len())))).collect::<JsonMap>().into()
}

/// Starts a run that makes a gated call. Returns its review.
async fn asked(world: &World) -> Review {
    let flow = json!({
        "id": "notes",
        "tools": {"note": {"builtin": "set_state", "ask_permission": true}},
        "nodes": {"one": {"tool": "note", "arguments": {"key": "done", "value": "x"}, "write_keys": ["done"]}},
    });
    let flow = serde_json::from_value(flow).expect("the flow is well-formed");
    let new = NewFlow { flow, source: String::new(), digest: "sha256:2".to_owned() };
    world.store.commit(Change::by_server(Operation::SaveFlow(Box::new(new)))).await.expect("the flow is saved");
    let (run, flow) = (new_run(), "notes".parse().expect("an id"));
    let operation = Operation::launch(run, flow, JsonMap::new());
    world.store.commit(Change { by: Some(actor("dev")), key: None, operation }).await.expect("it starts");
    world.review_of(run).await
}

/// Decides a gated call with other arguments.
async fn edit(world: &World, review: &Review, value: Value) {
    let arguments = [("key".to_owned(), json!("done")), ("value".to_owned(), value)].into_iter().collect();
    let request = DecisionRequest {
        revision: review.revision,
        digest: review.digest.clone(),
        verdict: Verdict::Actions {
            decisions: [("c1-1".to_owned(), ActionDecision::Edit { arguments })].into(),
            instructions: None,
        },
        edits: JsonMap::new(),
        comment: None,
        metadata: JsonMap::new(),
    };
    let input = Input::decide(review.id, person("ana"), Via::Human, request);
    world.store.commit(on_review(review.id, "ana", input)).await.expect("she decides");
}

fn ana() -> Principal {
    Principal::new("ana".parse().expect("a name"), ["reviewer".to_owned()].into())
}

/// The outline of a review, on which the log decides who may see its entries.
async fn outline(world: &World, review: &Review) -> Review {
    world.store.review_outline(review.id).await.expect("reads").expect("it is there")
}

async fn whoever_decided_an_edited_call_sees_its_review_without_large_values(world: World) {
    let review = asked(&world).await;
    edit(&world, &review, large("go ")).await;
    let outline = outline(&world, &review).await;
    assert!(!outline.unreadable, "{:?}", outline.problem);
    assert!(access(&ana(), Act::SeeReview(&outline)).is_allowed());
    let mut conn = world.store.inner.db.read().await.expect("reads");
    let stored = stored(&mut conn, "reviews", "body", review.id.0).await;
    assert_eq!(stored["decisions"][0]["verdict"]["decisions"]["c1-1"]["type"], "edit", "it is the engine's");
}

/// Reads a stored column as it is.
async fn stored(conn: &mut Conn, table: &str, column: &str, id: uuid::Uuid) -> Value {
    let sql = Sql::new(&format!("SELECT {column} FROM {table} WHERE id = ")).bind(id);
    let row = conn.fetch_one(sql).await.expect("reads").expect("a row");
    serde_json::from_str(&unpack(row.text(0).expect("text")).expect("unpacks")).expect("JSON")
}

/// Moves the value at a pointer out of a stored column, as a server of an earlier version did.
async fn move_out(world: &World, run: RunId, table: &str, column: &str, id: uuid::Uuid, at: &str) {
    let mut conn = world.store.inner.db.write_on_this_thread().await.expect("writes");
    let mut stored = stored(&mut conn, table, column, id).await;
    let moved = stored.pointer_mut(at).expect("it is stored there");
    let body = moved.to_string();
    let digest: [u8; 32] = Sha256::digest(body.as_bytes()).into();
    *moved = json!({"$blob": format!("o{}", hex::encode(digest))});
    let blob = vec![run.0.into(), (&digest).into(), body.into()];
    let insert = Sql::new("INSERT INTO blobs (run_id, digest, body) ").values([blob]);
    conn.execute(insert.push(" ON CONFLICT (run_id, digest) DO NOTHING")).await.expect("writes");
    let set = Sql::new(&format!("UPDATE {table} SET {column} = ")).bind(stored.to_string());
    conn.execute(set.push(" WHERE id = ").bind(id)).await.expect("writes");
    conn.commit().await.expect("commits");
}

async fn a_review_with_a_moved_decision_is_read_as_a_whole(world: World) {
    let review = asked(&world).await;
    edit(&world, &review, json!("y")).await;
    let run = review.run_id.expect("of a run");
    move_out(&world, run, "reviews", "body", review.id.0, "/decisions/0").await;
    let outline = outline(&world, &review).await;
    assert!(!outline.unreadable, "{:?}", outline.problem);
    assert_eq!(outline.decisions[0].by.as_str(), "ana");
    assert!(access(&ana(), Act::SeeReview(&outline)).is_allowed());
}

async fn a_run_with_a_moved_phase_is_read_as_a_whole(world: World) {
    let review = asked(&world).await;
    let run = review.run_id.expect("of a run");
    let dev = Principal::new("dev".parse().expect("a name"), ["developer".to_owned()].into());
    let before = world.store.visible_summary(&dev, run).await.expect("reads").expect("it is there");
    move_out(&world, run, "runs", "state", run.0, "/branches/1/phase").await;
    let listed = world.store.runs(&dev, &RunQuery::default()).await.expect("reads").items;
    assert_eq!(listed, [before]);
}
