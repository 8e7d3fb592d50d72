//! Tests that feedback can be given and listed, that later runs get it, and that a run keeps the feedback that it got.

use serde_json::{Value, json};

use super::{Client, Site as World, Site};
use crate::engine::{Phase, RunState};
use crate::store::Store;
use crate::store::tests::support::on_both;

on_both! {
    an_agent_is_told_the_newest_feedback_on_it_in_later_runs,
    retracted_feedback_is_told_to_no_agent_any_more,
}

const FLOW: &str = "
id: letters
agents: { writer: { model: demo/writer, instructions: Be kind., feedback: 2 } }
nodes:
  ask:
    human: { prompt: Write?, options: [{ id: yes, label: Write }], reviewers: { roles: [editor] } }
    next: draft
  draft: { agent: writer, prompt: Write., write_keys: [draft] }
";
/// The same flow without the human node at the start.
const AT_ONCE: &str = "
id: letters
agents: { writer: { model: demo/writer, instructions: Be kind., feedback: 2 } }
nodes: { draft: { agent: writer, prompt: Write., write_keys: [draft] } }
";

async fn launch(client: &Client<'_>) -> String {
    let run = client.post("/api/v1/runs", &json!({ "flow": "letters", "input": {} })).await.expect(201);
    run["id"].as_str().unwrap().to_owned()
}

fn said(content: &str, importance: u32) -> Value {
    json!({ "agent": "writer", "type": "guidance", "aspect": "style", "content": content, "importance": importance })
}

/// Returns the system prompt of the only agent of the run that is working.
async fn told(store: &Store, run: &str) -> String {
    let state: RunState = store.run(run.parse().unwrap()).await.unwrap().unwrap();
    let prompts = state.branches.values().filter_map(|branch| match &branch.phase {
        Phase::Agent { conversation, .. } => conversation.instructions.clone(),
        _ => None,
    });
    prompts.collect()
}

async fn an_agent_is_told_the_newest_feedback_on_it_in_later_runs(site: World) {
    let dev = site.join("dev", &["developer"]).await;
    dev.put_flow("/api/v1/flows/letters", AT_ONCE).await.expect(200);
    let first = launch(&dev).await;
    assert_eq!(told(&site.store, &first).await, "Be kind.");
    for (content, importance) in [("Be brief.", 1), ("Say thanks.", 5), ("Use no jokes.", 3)] {
        dev.post(&format!("/api/v1/runs/{first}/feedback"), &said(content, importance)).await.expect(201);
    }
    let second = launch(&dev).await;
    let expected = told(&site.store, &second).await;
    let lines: Vec<_> = expected.lines().collect();
    assert!(
        lines[0] == "Be kind." && lines[3].contains("Use no jokes.") && lines[4].contains("Say thanks."),
        "{lines:?}"
    );
    assert_eq!(lines.len(), 5);
    // A run keeps the feedback that it got: neither further feedback nor a restart changes the prompt.
    dev.post(&format!("/api/v1/runs/{second}/feedback"), &said("Never mind.", 2)).await.expect(201);
    assert_eq!(told(&site.store, &first).await, "Be kind.");
    let options = site.database.options(site.clock.clone());
    let again = Store::open(options).await.unwrap();
    assert_eq!(told(&again, &second).await, expected);
    again.close().await;

    let contents = async |query: &str| {
        let page = dev.get(&format!("/api/v1/feedback?{query}")).await.expect(200);
        page["items"].as_array().unwrap().iter().map(|said| said["content"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(contents("").await, ["Never mind.", "Use no jokes.", "Say thanks.", "Be brief."]);
    assert_eq!(contents(&format!("run={second}")).await, ["Never mind."]);
    assert_eq!(contents("agent=writer&type=guidance&flow=letters&limit=1").await, ["Never mind."]);
    assert_eq!(contents("type=praise").await, [""; 0]);
    assert_eq!(contents("agent=reader").await, [""; 0]);
    assert_eq!(contents("since=2999-01-01T00:00:00Z").await, [""; 0]);
    let page = dev.get("/api/v1/feedback?limit=3").await.expect(200);
    let cursor = page["next_cursor"].as_str().unwrap();
    assert_eq!(contents(&format!("limit=3&cursor={cursor}")).await, ["Be brief."]);
}

async fn retracted_feedback_is_told_to_no_agent_any_more(site: World) {
    let dev = site.join("dev", &["developer"]).await;
    dev.put_flow("/api/v1/flows/letters", AT_ONCE).await.expect(200);
    let run = launch(&dev).await;
    let give = async |content: &str| {
        let given = dev.post(&format!("/api/v1/runs/{run}/feedback"), &said(content, 3)).await.expect(201);
        format!("/api/v1/feedback/{}", given["id"].as_str().unwrap())
    };
    let (kept, wrong) = (give("Be brief.").await, give("Be rude.").await);
    let tom = site.join("tom", &["reviewer"]).await;
    tom.delete(&wrong).await.code(404);
    dev.delete(&wrong).await.expect(204);
    dev.delete(&wrong).await.code(404);
    let told = told(&site.store, &launch(&dev).await).await;
    assert!(told.contains("Be brief.") && !told.contains("Be rude."), "{told}");
    assert_eq!(dev.get("/api/v1/feedback").await.expect(200)["items"].as_array().unwrap().len(), 1);
    let admin = site.login("admin").await;
    let audit = admin.get("/api/v1/audit?kind=feedback.retracted").await.expect(200);
    assert_eq!((audit["items"].as_array().unwrap().len(), &audit["items"][0]["actor"]), (1, &json!("dev")));
    assert!(wrong.ends_with(audit["items"][0]["data"]["feedback"].as_str().unwrap()));
    admin.delete(&kept).await.expect(204);
}

#[tokio::test]
async fn feedback_is_given_once_and_is_on_the_record() {
    let site = Site::new().await;
    let dev = site.join("dev", &["developer"]).await;
    dev.put_flow("/api/v1/flows/letters", FLOW).await.expect(200);
    let run = launch(&dev).await;
    let path = format!("/api/v1/runs/{run}/feedback");
    let key = [("idempotency-key", "once")];
    let given = dev.post_with(&path, &said("Be brief.", 4), &key).await.expect(201);
    assert_eq!((&given["by"], &given["flow"], &given["run_id"]), (&json!("dev"), &json!("letters"), &json!(run)));
    assert_eq!(dev.post_with(&path, &said("Be brief.", 4), &key).await.expect(201), given);
    let log = dev.get(&format!("/api/v1/log?run={run}&limit=200")).await.expect(200);
    let entries: Vec<_> = log["items"].as_array().unwrap().iter().filter(|e| e["kind"] == "feedback.given").collect();
    assert_eq!((entries.len(), &entries[0]["data"]["feedback"]), (1, &given));
    let admin = site.login("admin").await;
    let audit = admin.get("/api/v1/audit?kind=feedback.given").await.expect(200);
    assert_eq!(audit["items"][0]["actor"], "dev");

    for (wrong, place) in [
        (json!({ "agent": "reader", "type": "praise", "content": "Good." }), "/agent"),
        (json!({ "agent": "writer", "type": "praise", "content": "" }), "/content"),
        (json!({ "agent": "writer", "type": "praise", "content": "Good.", "importance": 6 }), "/importance"),
        (json!({ "agent": "writer", "type": "blame", "content": "Bad." }), "/type"),
    ] {
        assert_eq!(dev.post(&path, &wrong).await.expect(422)["errors"][0]["path"], place);
    }
    for list in ["feedback", "log"] {
        let refused = dev.get(&format!("/api/v1/{list}?run=one")).await.expect(422);
        assert_eq!(refused["errors"][0]["path"], "/run", "{list}");
    }
}

#[tokio::test]
async fn who_may_see_a_run_may_say_how_its_agents_worked_and_sees_what_they_said() {
    let site = Site::new().await;
    let dev = site.join("dev", &["developer"]).await;
    dev.put_flow("/api/v1/flows/letters", FLOW).await.expect(200);
    let run = launch(&dev).await;
    let path = format!("/api/v1/runs/{run}/feedback");
    let (ana, tom) = (site.join("ana", &["editor"]).await, site.join("tom", &["reviewer"]).await);
    ana.post(&path, &said("Be brief.", 4)).await.expect(201);
    tom.post(&path, &said("Be long.", 4)).await.code(404);
    dev.post(&path, &said("Be kind.", 4)).await.expect(201);
    for (client, count) in [(&ana, 1), (&tom, 0), (&dev, 2)] {
        let page = client.get("/api/v1/feedback").await.expect(200);
        assert_eq!(page["items"].as_array().unwrap().len(), count);
    }
    // The log shows the same feedback as the list.
    for (client, count) in [(&ana, 1), (&dev, 2)] {
        let log = client.get(&format!("/api/v1/log?run={run}&limit=200")).await.expect(200);
        let entries = log["items"].as_array().unwrap();
        assert_eq!(entries.iter().filter(|entry| entry["kind"] == "feedback.given").count(), count);
    }
}
