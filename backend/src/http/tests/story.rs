//! Tests the way from a flow file to a decision in the audit log.

use axum::body::Body;
use futures::future::join_all;
use serde_json::{Value, json};

use super::{Client, Received, Site as World, Site};
use crate::store::tests::support::on_both;

on_both! {
    of_many_decisions_at_the_same_moment_one_wins_and_the_others_learn_of_it,
}

pub(super) const FLOW: &str = r#"
id: gate
title: Ask before publishing
input:
  type: object
  required: [topic]
  properties: { topic: { type: string } }
nodes:
  review:
    human:
      prompt: "Publish {{ topic }}?"
      review_keys: [topic]
      edit_keys: [topic]
      options:
        - { id: approve, kind: accept, label: Publish }
        - { id: reject, kind: stop, label: Throw away }
      reviewers: { roles: [editor] }
    next: done
  done:
    set: { message: "Published {{ topic }}" }
"#;

async fn launch(client: &Client<'_>) -> Value {
    let launch = json!({ "flow": "gate", "input": { "topic": "the ocean" }, "context": { "tenant": "acme" } });
    let answer = client.post("/api/v1/runs", &launch).await;
    let location = answer.headers["location"].to_str().unwrap().to_owned();
    let run = answer.expect(201);
    assert_eq!(location, format!("/api/v1/runs/{}", run["id"].as_str().unwrap()));
    run
}

/// Returns a developer, an editor, a run, and its pending review.
async fn asked(site: &Site) -> (Client<'_>, Client<'_>, Value, Value) {
    let dev = site.join("dev", &["developer"]).await;
    dev.put_flow("/api/v1/flows/gate", FLOW).await.expect(200);
    let ana = site.join("ana", &["reviewer", "editor"]).await;
    let run = launch(&dev).await;
    let list = ana.get("/api/v1/reviews?status=pending&assigned=me").await.expect(200);
    let review = list["items"][0].clone();
    assert_eq!(review["run_id"], run["id"], "{list}");
    (dev, ana, run, review)
}

pub(super) fn decision(review: &Value, option: &str) -> Value {
    let verdict = json!({ "type": "choose", "option": option });
    json!({ "revision": review["revision"], "digest": review["digest"], "verdict": verdict })
}

async fn decide(client: &Client<'_>, review: &Value, body: &Value, key: &str) -> Received {
    let path = format!("/api/v1/reviews/{}/decisions", review["id"].as_str().unwrap());
    client.post_with(&path, body, &[("idempotency-key", key)]).await
}

#[tokio::test]
async fn a_decision_made_on_what_was_seen_carries_the_run_on_and_is_made_once() {
    let site = Site::new().await;
    let (dev, ana, run, review) = asked(&site).await;
    assert_eq!((&run["status"], &run["context"]["tenant"]), (&json!("waiting_for_human"), &json!("acme")));
    assert_eq!(review["prompt"], "Publish the ocean?");
    let review_path = format!("/api/v1/reviews/{}", review["id"].as_str().unwrap());
    assert_eq!(ana.get(&review_path).await.expect(200)["digest"], review["digest"]);
    ana.get(&review_path).await.expect(200);

    let mut stale = decision(&review, "approve");
    stale["digest"] = json!("sha256:00");
    let refused = decide(&ana, &review, &stale, "k0").await.expect(409);
    assert_eq!((&refused["code"], &refused["review"]["id"]), (&json!("revision_changed"), &review["id"]));
    let unknown = decide(&ana, &review, &decision(&review, "perhaps"), "k1").await.expect(422);
    assert!(unknown["errors"][0]["path"].as_str().unwrap().starts_with("/verdict"), "{unknown}");

    let mut good = decision(&review, "approve");
    good["edits"] = json!({ "topic": "the sea" });
    let first = decide(&ana, &review, &good, "k2").await.expect(200);
    assert_eq!((&first["outcome"], &first["review"]["status"]), (&json!("resolved"), &json!("resolved")));
    assert_eq!(decide(&ana, &review, &good, "k2").await.expect(200), first, "the same key answers the same");
    let other = decide(&ana, &review, &decision(&review, "reject"), "k2").await;
    assert_eq!(other.code(422), "key_reused");
    let late = decide(&ana, &review, &decision(&review, "reject"), "k3").await.expect(409);
    assert_eq!(late["code"], "review_resolved");
    assert_eq!((&late["resolution"]["by"], &late["resolution"]["outcome"]), (&json!(["ana"]), &json!("accepted")));

    let path = format!("/api/v1/runs/{}", run["id"].as_str().unwrap());
    let done = dev.get(&path).await.expect(200);
    assert_eq!((&done["status"], &done["state"]["message"]), (&json!("completed"), &json!("Published the sea")));
    assert_eq!(dev.post(&format!("{path}/cancel"), &json!({})).await.code(409), "run_over");
    let report = dev.get(&format!("{path}/report")).await.expect(200);
    let steps = report["steps"].as_array().unwrap();
    assert_eq!(steps.iter().map(|step| &step["node"]).collect::<Vec<_>>(), ["review", "done"]);
    assert_eq!(report["reviews"].as_array().unwrap().len(), 1);

    let admin = site.login("admin").await;
    let query = format!("/api/v1/audit?review={}", review["id"].as_str().unwrap());
    let kinds = |page: &Value| -> Vec<String> {
        page["items"].as_array().unwrap().iter().map(|entry| entry["kind"].as_str().unwrap().to_owned()).collect()
    };
    let audit = admin.get(&query).await.expect(200);
    assert_eq!(kinds(&audit), ["review.resolved", "review.viewed", "review.requested"], "{audit}");
    assert_eq!(audit["items"][0]["actor"], "ana");
    let log = dev.get(&format!("/api/v1/log?run={}", run["id"].as_str().unwrap())).await.expect(200);
    assert_eq!(kinds(&log).first().map(String::as_str), Some("run.started"));
    assert_eq!(kinds(&log).last().map(String::as_str), Some("run.completed"));

    let csv = admin.get("/api/v1/audit/export?format=csv&kind=review.resolved").await;
    assert!(csv.headers["content-disposition"].to_str().unwrap().contains("countersign-audit.csv"));
    let text = csv.expect(200);
    assert_eq!(text.as_str().unwrap().lines().count(), 2, "{text}");
    assert_eq!(dev.get("/api/v1/audit").await.code(403), "forbidden");
}

async fn of_many_decisions_at_the_same_moment_one_wins_and_the_others_learn_of_it(site: Site) {
    let (_, ana, _, review) = asked(&site).await;
    let (ana, review) = (&ana, &review);
    let answers = join_all((0..8).map(async |index| {
        let option = if index % 2 == 0 { "approve" } else { "reject" };
        decide(ana, review, &decision(review, option), &format!("k{index}")).await
    }))
    .await;
    let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 200);
    let [winner] = &won[..] else { panic!("{won:?}") };
    for answer in lost {
        let problem = answer.expect(409);
        assert_eq!(problem["code"], "review_resolved");
        assert_eq!(problem["resolution"], winner.body["review"]["resolution"]);
    }
}

#[tokio::test]
async fn who_may_not_see_a_review_does_not_know_of_it_and_who_may_not_decide_is_told_so() {
    let site = Site::new().await;
    let (dev, _, run, review) = asked(&site).await;
    let tom = site.join("tom", &["reviewer", "legal"]).await;
    let path = format!("/api/v1/reviews/{}", review["id"].as_str().unwrap());
    let run = format!("/api/v1/runs/{}", run["id"].as_str().unwrap());
    assert_eq!(tom.get(&path).await.code(404), "not_found");
    assert_eq!(decide(&tom, &review, &decision(&review, "approve"), "k").await.code(404), "not_found");
    assert_eq!(tom.post(&format!("{path}/claim"), &json!({})).await.code(404), "not_found");
    for hidden in [run.clone(), format!("{run}/report"), format!("{run}/reviews"), "/api/v1/runs/none".to_owned()] {
        assert_eq!(tom.get(&hidden).await.code(404), "not_found", "{hidden}");
    }
    assert_eq!(tom.get("/api/v1/reviews").await.expect(200)["items"], json!([]));
    assert_eq!(tom.get("/api/v1/runs").await.expect(200)["items"], json!([]));
    let log = tom.get("/api/v1/log").await.expect(200);
    assert!(!log.to_string().contains("the ocean"), "{log}");

    dev.get(&path).await.expect(200);
    assert_eq!(decide(&dev, &review, &decision(&review, "approve"), "k").await.code(403), "forbidden");
    assert_eq!(tom.put_flow("/api/v1/flows/gate", FLOW).await.code(403), "forbidden");
    let launch = json!({ "flow": "gate", "input": { "topic": "x" } });
    assert_eq!(tom.post("/api/v1/runs", &launch).await.code(403), "forbidden");
}

#[tokio::test]
async fn a_claim_and_a_comment_are_seen_and_void_nothing() {
    let site = Site::new().await;
    let (dev, ana, _, review) = asked(&site).await;
    let path = format!("/api/v1/reviews/{}", review["id"].as_str().unwrap());
    let claimed = ana.post(&format!("{path}/claim"), &json!({})).await.expect(200);
    assert_eq!(claimed["review"]["claimed_by"]["by"], "ana");
    let no_body = ana.request("POST", &format!("{path}/release")).body(Body::empty()).unwrap();
    assert_eq!(site.send(no_body).await.expect(200)["review"]["claimed_by"], json!(null));
    let comment = json!({ "text": "Is this the right ocean?" });
    let commented = ana.post(&format!("{path}/comments"), &comment).await.expect(200);
    assert_eq!(commented["review"]["comments"][0]["text"], "Is this the right ocean?");
    let answer = json!({ "text": "It is." });
    for _ in 0..2 {
        let key = [("idempotency-key", "answer")];
        let answered = dev.post_with(&format!("{path}/comments"), &answer, &key).await.expect(200);
        assert_eq!(answered["review"]["comments"][1]["by"], "dev", "who may not decide can answer, once");
    }
    assert_eq!(commented["review"]["digest"], review["digest"]);
    assert_eq!(ana.post(&format!("{path}/comments"), &json!({ "text": " " })).await.code(422), "invalid");
    decide(&ana, &review, &decision(&review, "approve"), "k").await.expect(200);
}

#[tokio::test]
async fn a_review_is_taken_back_once_by_who_started_the_run() {
    let site = Site::new().await;
    let (dev, ana, run, review) = asked(&site).await;
    let path = format!("/api/v1/reviews/{}/withdraw", review["id"].as_str().unwrap());
    let why = json!({ "reason": "The campaign is off." });
    assert_eq!(ana.post(&path, &why).await.code(403), "forbidden");
    let key = [("idempotency-key", "w1")];
    let taken = dev.post_with(&path, &why, &key).await.expect(200);
    assert_eq!((&taken["outcome"], &taken["review"]["status"]), (&json!("resolved"), &json!("withdrawn")));
    assert_eq!(dev.post_with(&path, &why, &key).await.expect(200), taken);
    assert_eq!(dev.post(&path, &why).await.code(409), "review_resolved");
    let late = decide(&ana, &review, &decision(&review, "approve"), "k").await.expect(409);
    assert_eq!(late["resolution"]["reason"], "The campaign is off.");
    let run = dev.get(&format!("/api/v1/runs/{}", run["id"].as_str().unwrap())).await.expect(200);
    assert_eq!((&run["status"], &run["error"]["message"]), (&json!("failed"), &json!("The campaign is off.")));
}

#[tokio::test]
async fn the_same_launch_said_twice_starts_one_run() {
    let site = Site::new().await;
    let (dev, ..) = asked(&site).await;
    let launch = json!({ "flow": "gate", "input": { "topic": "wind" } });
    let key = [("idempotency-key", "launch-1")];
    let first = dev.post_with("/api/v1/runs", &launch, &key).await.expect(201);
    assert_eq!(dev.post_with("/api/v1/runs", &launch, &key).await.expect(201), first);
    assert_eq!(dev.get("/api/v1/runs?flow=gate").await.expect(200)["items"].as_array().unwrap().len(), 2);
    let wrong = dev.post_with("/api/v1/runs", &launch, &[("idempotency-key", "not visible")]).await;
    assert_eq!(wrong.code(422), "invalid");
    let unfit = dev.post("/api/v1/runs", &json!({ "flow": "gate", "input": {} })).await.expect(422);
    assert!(unfit["errors"][0]["path"].as_str().unwrap().starts_with("/input"), "{unfit}");
    let unknown = json!({ "flow": "no-such-flow", "input": {} });
    assert_eq!(dev.post("/api/v1/runs", &unknown).await.code(404), "not_found");
    let cancelled = format!("/api/v1/runs/{}/cancel", first["id"].as_str().unwrap());
    let cancelled = dev.post(&cancelled, &json!({ "reason": "changed my mind" })).await.expect(200);
    assert_eq!((&cancelled["status"], &cancelled["cancel_reason"]), (&json!("cancelled"), &json!("changed my mind")));
}

#[tokio::test]
async fn a_flow_is_saved_with_its_picture_or_refused_with_every_mistake() {
    let site = Site::new().await;
    let dev = site.join("dev", &["developer"]).await;
    let saved = dev.put_flow("/api/v1/flows/gate", FLOW).await.expect(200);
    assert_eq!((&saved["version"], &saved["source"]), (&json!(1), &json!(FLOW)));
    assert!(saved["graph"]["nodes"].as_array().unwrap().len() >= 2, "{saved}");
    assert_eq!(dev.put_flow("/api/v1/flows/gate", FLOW).await.expect(200)["version"], 1);
    let changed = FLOW.replace("Throw away", "No");
    assert_eq!(dev.put_flow("/api/v1/flows/gate", &changed).await.expect(200)["version"], 2);
    assert_eq!(dev.get("/api/v1/flows/gate?version=1").await.expect(200)["source"], FLOW);
    assert_eq!(dev.get("/api/v1/flows/gate").await.expect(200)["version"], 2);
    assert_eq!(dev.get("/api/v1/flows/gate?version=3").await.code(404), "not_found");
    assert_eq!(dev.get("/api/v1/flows").await.expect(200)["items"][0]["id"], "gate");

    let elsewhere = dev.put_flow("/api/v1/flows/other", FLOW).await.expect(422);
    assert_eq!((&elsewhere["code"], &elsewhere["errors"][0]["path"]), (&json!("flow_invalid"), &json!("/id")));
    let broken = FLOW.replace("next: done", "next: dne");
    let refused = dev.put_flow("/api/v1/flows/gate", &broken).await.expect(422);
    assert!(refused["errors"][0]["line"].is_u64(), "{refused}");
    let request = dev.request("POST", "/api/v1/flows/validate").header("content-type", "application/yaml");
    let checked = site.send(request.body(Body::from(broken)).unwrap()).await.expect(200);
    assert_eq!((&checked["valid"], &checked["errors"]), (&json!(false), &refused["errors"]));
}
