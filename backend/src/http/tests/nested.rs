//! Tests of nested flows over the API.

use serde_json::json;

use super::Site;
use super::story::decision;

const CHECK: &str = r#"
id: check
input: { type: object, required: [text], properties: { text: { type: string } } }
output: [text]
nodes:
  read:
    human:
      prompt: "Is this right?"
      review_keys: [text]
      edit_keys: [text]
      options: [{ id: yes, label: Yes }, { id: no, kind: stop, label: No }]
"#;

const LETTER: &str = r#"
id: letter
nodes:
  write: { set: { draft: "Dear all" }, next: [check, stamp] }
  check: { flow: { id: check, input: { text: "{{ draft }}" } }, write_keys: [text], next: send }
  stamp: { human: { prompt: "Which stamp?" }, next: send }
  send: { set: { sent: "{{ text }}" }, join: all }
"#;

#[tokio::test]
async fn reviews_inside_a_called_flow_are_the_runs_and_its_report_tells_all() {
    let site = Site::new().await;
    let dev = site.join("dev", &["developer"]).await;
    let early = dev.put_flow("/api/v1/flows/letter", LETTER).await.expect(422);
    let mistake = &early["errors"][0];
    assert_eq!((&mistake["path"], &mistake["line"]), (&json!("/nodes/check/flow/id"), &json!(5)), "{early}");
    dev.put_flow("/api/v1/flows/check", CHECK).await.expect(200);
    let saved = dev.put_flow("/api/v1/flows/letter", LETTER).await.expect(200);
    let drawn = saved["graph"]["nodes"].as_array().unwrap();
    assert!(drawn.iter().any(|node| node["id"] == "check/read"), "{drawn:?}");
    assert_eq!(saved["definition"]["nodes"]["check"]["flow"]["version"], 1);

    let ana = site.join("ana", &["reviewer"]).await;
    let run = dev.post("/api/v1/runs", &json!({ "flow": "letter", "input": {} })).await.expect(201);
    let path = format!("/api/v1/runs/{}", run["id"].as_str().unwrap());
    assert_eq!(run["calls"]["check:1"]["text"], "Dear all");
    let reviews = dev.get(&format!("{path}/reviews")).await.expect(200);
    let reviews = reviews["items"].as_array().or(reviews.as_array()).unwrap().clone();
    let nodes: Vec<_> = reviews.iter().map(|review| review["node"].as_str().unwrap()).collect();
    assert_eq!(nodes, ["check:1/read", "stamp"], "both wait, each by its own id, the newest first");
    for review in &reviews {
        let at = format!("/api/v1/reviews/{}/decisions", review["id"].as_str().unwrap());
        let mut decision = decision(review, "yes");
        if review["node"] == "stamp" {
            decision["verdict"] = json!({ "type": "text", "text": "a blue one" });
        }
        ana.post(&at, &decision).await.expect(200);
    }
    let over = dev.get(&path).await.expect(200);
    assert_eq!((&over["status"], &over["state"]["sent"]), (&json!("completed"), &json!("Dear all")));
    assert!(over.get("calls").is_none());
    let report = dev.get(&format!("{path}/report")).await.expect(200);
    let steps: Vec<_> = report["steps"].as_array().unwrap().iter().map(|step| step["node"].as_str().unwrap()).collect();
    assert_eq!(steps, ["write", "check", "stamp", "check:1/read", "send"]);
}
