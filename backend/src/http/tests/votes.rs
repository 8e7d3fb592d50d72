//! Tests of reviews that several people decide, from the flow file to the audit log.

use axum::body::Body;
use serde_json::{Value, json};

use super::{Client, Received, Site};

const FLOW: &str = r#"
id: committee
input: { type: object, properties: { text: { type: string } } }
nodes:
  decide:
    human:
      prompt: Shall this go out?
      review_keys: [text]
      edit_keys: [text]
      options: [{ id: yes, label: "Yes" }, { id: no, kind: stop, label: "No" }]
      policy: { groups: { editor: 1, legal: 1 } }
      deny: 1
      validator: { when: "!has(response.edits.text) || size(response.edits.text) > 5", message: Too short. }
    next: check
  check:
    human:
      prompt: And once more?
      options: [{ id: yes, label: "Yes" }, { id: no, kind: stop, label: "No" }]
      reviewers: { not_same_as: decide }
      policy: majority
      blind: true
"#;

async fn vote(client: &Client<'_>, review: &Value, option: &str, edits: Value) -> Received {
    let verdict = json!({ "type": "choose", "option": option });
    let body =
        json!({ "revision": review["revision"], "digest": review["digest"], "verdict": verdict, "edits": edits });
    client.post(&format!("/api/v1/reviews/{}/decisions", review["id"].as_str().unwrap()), &body).await
}

async fn pending(client: &Client<'_>) -> Value {
    client.get("/api/v1/reviews?status=pending").await.expect(200)["items"][0].clone()
}

#[tokio::test]
async fn several_people_decide_and_four_eyes_check_it_in_secret() {
    let site = Site::new().await;
    let dev = site.join("dev", &["developer"]).await;
    let ana = site.join("ana", &["reviewer", "editor"]).await;
    let saved = dev.put_flow("/api/v1/flows/committee", FLOW).await.expect(200);
    let warning = &saved["warnings"][0];
    assert_eq!(warning["path"], "/nodes/decide/human/policy/groups/legal", "{saved}");
    assert!(warning["line"].is_u64() && warning["message"].as_str().unwrap().contains("nobody has this role now"));
    let tom = site.join("tom", &["legal"]).await;
    let validate = dev.request("POST", "/api/v1/flows/validate").header("content-type", "application/yaml");
    let checked = site.send(validate.body(Body::from(FLOW)).unwrap()).await.expect(200);
    assert_eq!(checked["warnings"], json!([]));

    let launch = json!({ "flow": "committee", "input": { "text": "a first text" } });
    let run = dev.post("/api/v1/runs", &launch).await.expect(201);
    let review = pending(&ana).await;
    assert_eq!(review["voting"]["groups"][1], json!({ "role": "legal", "voters": ["tom"] }));
    let refused = vote(&ana, &review, "yes", json!({ "text": "no" })).await.expect(422);
    assert_eq!(refused["errors"][0]["path"], "/edits/text");
    assert_eq!(refused["errors"][0]["message"], "Too short.");
    assert_eq!(vote(&ana, &review, "yes", json!({})).await.expect(200)["outcome"], "recorded");
    // Tom changes the content, which voids Ana's vote.
    let edited = vote(&tom, &review, "yes", json!({ "text": "a better text" })).await.expect(200);
    assert_eq!((&edited["outcome"], &edited["review"]["revision"]), (&json!("recorded"), &json!(2)));
    assert_eq!(edited["review"]["voting"]["voided"], json!(["ana"]));
    assert_eq!(vote(&ana, &review, "yes", json!({})).await.code(409), "revision_changed");
    let resolved = vote(&ana, &edited["review"], "yes", json!({})).await.expect(200);
    assert_eq!(resolved["review"]["resolution"]["by"], json!(["tom", "ana"]));

    // Those who decided the first step are barred from the second. Only the admin remains, until two others join.
    let path = format!("/api/v1/runs/{}", run["id"].as_str().unwrap());
    assert_eq!(dev.get(&path).await.expect(200)["state"]["text"], "a better text");
    let review = pending(&ana).await;
    assert_eq!((&review["barred"], &review["voting"]["voters"]), (&json!(["ana", "tom"]), &json!(["admin"])));
    assert_eq!(vote(&ana, &review, "yes", json!({})).await.code(403), "forbidden");
    let admin = site.login("admin").await;
    admin.post(&format!("{path}/cancel"), &json!({})).await.expect(200);
    let (eva, ed) = (site.join("eva", &["reviewer"]).await, site.join("ed", &["reviewer"]).await);
    let second = dev.post("/api/v1/runs", &launch).await.expect(201);
    let review = pending(&ana).await;
    vote(&ana, &review, "yes", json!({})).await.expect(200);
    vote(&tom, &review, "yes", json!({})).await.expect(200);

    let review = pending(&eva).await;
    assert_eq!(review["voting"]["voters"], json!(["admin", "ed", "eva"]));
    let own = vote(&eva, &review, "no", json!({})).await.expect(200)["review"].clone();
    assert_eq!((own["decisions"].as_array().unwrap().len(), &own["voting"]["votes"]), (1, &json!(1)));
    let item = format!("/api/v1/reviews/{}", review["id"].as_str().unwrap());
    let run = format!("/api/v1/runs/{}", second["id"].as_str().unwrap());
    for (client, sees) in [(&eva, 1), (&ed, 0), (&dev, 0), (&admin, 0)] {
        let votes = |review: &Value| review["decisions"].as_array().unwrap().len();
        assert_eq!(votes(&client.get(&item).await.expect(200)), sees);
        assert_eq!(votes(&pending(client).await), sees);
        let report = client.get(&format!("{run}/report")).await.expect(200);
        assert_eq!(votes(report["reviews"].as_array().unwrap().last().unwrap()), sees);
    }
    for path in [
        format!("/api/v1/audit?review={}", review["id"].as_str().unwrap()),
        format!("/api/v1/log?run={}", second["id"].as_str().unwrap()),
    ] {
        let told = admin.get(&path).await.expect(200);
        let votes = told["items"].as_array().unwrap().iter().filter(|entry| entry["review_id"] == review["id"]);
        for entry in votes.filter(|entry| entry["kind"] == "review.updated") {
            assert_eq!((&entry["data"]["review"]["decisions"], &entry["actor"]), (&json!([]), &Value::Null), "{entry}");
        }
    }
    vote(&ed, &review, "yes", json!({})).await.expect(200);
    vote(&admin, &review, "yes", json!({})).await.expect(200);
    assert_eq!(ed.get(&item).await.expect(200)["decisions"].as_array().unwrap().len(), 3, "shown after the resolution");
    let done = dev.get(&run).await.expect(200);
    assert_eq!(done["status"], "completed");
}
