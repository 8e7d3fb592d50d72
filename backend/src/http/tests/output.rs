//! Tests of outputs that wait for approval.

use serde_json::{Value, json};

use super::Site;

const FLOW: &str = "
id: answer
gates: { before_return: true }
nodes: { write: { set: { reply: 'Dear Ann', notes: internal } } }
output: [reply]
";

#[tokio::test]
async fn an_output_is_given_out_once_there_is_leave() {
    let site = Site::new().await;
    let dev = site.join("dev", &["developer"]).await;
    let ana = site.join("ana", &["reviewer"]).await;
    dev.put_flow("/api/v1/flows/answer", FLOW).await.expect(200);
    let run = dev.post("/api/v1/runs", &json!({ "flow": "answer", "input": {} })).await.expect(201);
    let path = format!("/api/v1/runs/{}", run["id"].as_str().unwrap());
    let run = dev.get(&path).await.expect(200);
    assert_eq!((&run["status"], run.get("output")), (&json!("waiting_for_human"), None));
    assert_eq!(run["positions"][0]["node"], "end");

    let review = ana.get(&format!("{path}/reviews")).await.expect(200)["items"][0].clone();
    assert_eq!((&review["kind"], &review["actions"][0]["type"]), (&json!("output"), &json!("output")));
    let decide = |decision: Value| {
        json!({
            "revision": review["revision"], "digest": review["digest"],
            "verdict": { "type": "actions", "decisions": { "output": decision } },
        })
    };
    let decisions = format!("/api/v1/reviews/{}/decisions", review["id"].as_str().unwrap());
    let respond = decide(json!({ "type": "respond", "message": "Never mind" }));
    let refused = ana.post(&decisions, &respond).await.expect(422);
    assert_eq!(refused["errors"][0]["path"], "/verdict/decisions/output/type");
    ana.post(&decisions, &decide(json!({ "type": "edit", "arguments": { "reply": "Dearest Ann" } }))).await.expect(200);
    let run = dev.get(&path).await.expect(200);
    assert_eq!((&run["status"], &run["output"]), (&json!("completed"), &json!({ "reply": "Dearest Ann" })));
    let steps = dev.get(&format!("{path}/report")).await.expect(200)["steps"].clone();
    assert_eq!(
        (&steps[1]["node"], &steps[1]["kind"], &steps[1]["status"]),
        (&json!("end"), &json!("return"), &json!("completed"))
    );
}
