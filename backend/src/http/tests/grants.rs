//! Tests of remembered approvals over HTTP.

use serde_json::{Value, json};

use super::{Client, Site};

/// A flow with two gated calls, one after the other. Tool nodes make them, because no worker runs in these tests.
const FLOW: &str = r"
id: deploy
tools:
  note:
    builtin: set_state
    parameters: { type: object, properties: { key: { type: string }, value: { type: string } } }
gates: { before_tool: { note: { severity: high, allowed_decisions: [approve, reject] } } }
nodes:
  one: { tool: note, arguments: { key: done, value: web }, write_keys: [done], next: two }
  two: { tool: note, arguments: { key: done, value: api }, write_keys: [done] }
";

async fn launch(client: &Client<'_>) -> String {
    let run = client.post("/api/v1/runs", &json!({ "flow": "deploy", "input": {} })).await.expect(201);
    format!("/api/v1/runs/{}", run["id"].as_str().unwrap())
}

async fn reviews(client: &Client<'_>, run: &str) -> Vec<Value> {
    client.get(&format!("{run}/reviews")).await.expect(200)["items"].as_array().unwrap().clone()
}

async fn approve(client: &Client<'_>, review: &Value, remember: &Value, status: u16) -> Value {
    let decision = json!({ "type": "approve", "remember": remember });
    let verdict = json!({ "type": "actions", "decisions": { "c1-1": decision } });
    let body = json!({ "revision": review["revision"], "digest": review["digest"], "verdict": verdict });
    client.post(&format!("/api/v1/reviews/{}/decisions", review["id"].as_str().unwrap()), &body).await.expect(status)
}

#[tokio::test]
async fn what_somebody_allowed_does_not_come_back_with_them() {
    let site = Site::new().await;
    let admin = site.login("admin").await;
    let dev = site.join("dev", &["developer"]).await;
    let ana = site.join("ana", &["reviewer"]).await;
    dev.put_flow("/api/v1/flows/deploy", FLOW).await.expect(200);
    let run = launch(&dev).await;
    let asked = reviews(&ana, &run).await.remove(0);
    approve(&ana, &asked, &json!({ "scope": "flow" }), 200).await;
    for active in [false, true] {
        admin.patch("/api/v1/users/ana", &json!({ "active": active })).await.expect(200);
    }
    let next = launch(&dev).await;
    assert_eq!(dev.get(&next).await.expect(200)["status"], "waiting_for_human", "they are asked anew");
    assert_eq!(admin.get("/api/v1/grants").await.expect(200)["items"], json!([]));
    let revoked = admin.get("/api/v1/audit?kind=grant.revoked").await.expect(200);
    assert_eq!(revoked["items"][0]["actor"], "admin", "{revoked}");
}

#[tokio::test]
async fn what_was_allowed_is_not_asked_again_until_it_is_taken_back() {
    let site = Site::new().await;
    let dev = site.join("dev", &["developer"]).await;
    let ana = site.join("ana", &["reviewer"]).await;
    let tom = site.join("tom", &["reviewer"]).await;
    let saved = dev.put_flow("/api/v1/flows/deploy", FLOW).await.expect(200);
    assert_eq!(saved["version"], 1);

    let run = launch(&dev).await;
    let asked = reviews(&ana, &run).await.remove(0);
    for (wrong, place) in [
        (json!({ "scope": "run", "for_ms": 25 * 3_600_000 }), "/verdict/decisions/c1-1/remember/for_ms"),
        (json!({ "scope": "run", "arguments": ["region"] }), "/verdict/decisions/c1-1/remember/arguments/0"),
    ] {
        let refused = approve(&ana, &asked, &wrong, 422).await;
        assert_eq!(refused["errors"][0]["path"], place, "{refused}");
    }
    approve(&ana, &asked, &json!({ "scope": "flow", "arguments": ["key"] }), 200).await;
    assert_eq!(dev.get(&run).await.expect(200)["status"], "completed", "the second call was not asked about");
    let all = reviews(&ana, &run).await;
    let second = all.iter().find(|review| review["resolution"]["via"] == "auto").expect("on the record");
    let decision = &second["resolution"]["decision"];
    assert_eq!((&decision["by"], &decision["via"]), (&json!("ana"), &json!("auto")));

    let next = launch(&dev).await;
    assert_eq!(dev.get(&next).await.expect(200)["status"], "completed", "nor is another run of this version");

    let listed = ana.get("/api/v1/grants").await.expect(200);
    let grant = listed["items"][0].clone();
    assert_eq!((&grant["tool"], &grant["arguments"]), (&json!("note"), &json!({ "key": "done" })));
    assert_eq!(decision["grant"], grant["id"]);
    assert_eq!(tom.get("/api/v1/grants").await.expect(200)["items"], json!([]));
    let path = format!("/api/v1/grants/{}", grant["id"].as_str().unwrap());
    assert_eq!(tom.delete(&path).await.code(404), "not_found");
    let admin = site.login("admin").await;
    assert_eq!(admin.get("/api/v1/grants").await.expect(200)["items"].as_array().unwrap().len(), 1);
    ana.delete(&path).await.expect(204);
    assert_eq!(ana.get("/api/v1/grants").await.expect(200)["items"], json!([]));
    let asked_again = launch(&dev).await;
    assert_eq!(dev.get(&asked_again).await.expect(200)["status"], "waiting_for_human");
    for (kind, count) in [("grant.made", 1), ("grant.used", 3), ("grant.revoked", 1)] {
        let audit = admin.get(&format!("/api/v1/audit?kind={kind}")).await.expect(200);
        assert_eq!(audit["items"].as_array().unwrap().len(), count, "{kind}");
    }
}

#[tokio::test]
async fn a_grant_for_a_run_ends_with_it_and_one_for_a_flow_is_of_one_version() {
    let site = Site::new().await;
    let dev = site.join("dev", &["developer"]).await;
    let ana = site.join("ana", &["reviewer"]).await;
    dev.put_flow("/api/v1/flows/deploy", FLOW).await.expect(200);
    let run = launch(&dev).await;
    approve(&ana, &reviews(&ana, &run).await[0], &json!({ "scope": "run" }), 200).await;
    assert_eq!(dev.get(&run).await.expect(200)["status"], "completed");
    assert_eq!(ana.get("/api/v1/grants").await.expect(200)["items"], json!([]), "it ended with the run");
    let run = launch(&dev).await;
    approve(&ana, &reviews(&ana, &run).await[0], &json!({ "scope": "flow" }), 200).await;
    dev.put_flow("/api/v1/flows/deploy", &FLOW.replace("value: api", "value: worker")).await.expect(200);
    let run = launch(&dev).await;
    assert_eq!(dev.get(&run).await.expect(200)["status"], "waiting_for_human", "another version is asked about");

    // A grant approves nothing once its giver has lost the right to decide.
    let run = launch(&dev).await;
    approve(&ana, &reviews(&ana, &run).await[0], &json!({ "scope": "flow" }), 200).await;
    let admin = site.login("admin").await;
    admin.patch("/api/v1/users/ana", &json!({ "roles": [] })).await.expect(200);
    let run = launch(&dev).await;
    assert_eq!(dev.get(&run).await.expect(200)["status"], "waiting_for_human");
}
