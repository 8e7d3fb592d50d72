//! Tests of a run as clients follow it: its context, what it waits for, and its report.

use serde_json::{Value, json};

use super::story::decision;
use super::{Client, Site as World, Site};
use crate::store::tests::support::on_both;

on_both! {
    several_reviews_of_a_run_wait_each_by_its_own_id_and_the_context_goes_through_all_of_them,
    a_run_stands_where_its_status_says_however_it_ends,
    a_request_waits_until_a_run_ends_or_stops_for_people,
}

const FLOW: &str = r#"
id: offer
nodes:
  begin: { set: { text: "For {{ context.tenant }}" }, next: [to-price, to-legal, note] }
  to-price: { set: { a: 1 }, next: price }
  to-legal: { set: { b: 1 }, next: legal }
  price: { human: { prompt: Price?, options: [{ id: ok, label: Ok }] }, next: join }
  legal: { human: { prompt: Legal?, options: [{ id: ok, label: Ok }, { id: no, kind: stop, label: "No" }] }, next: join }
  note: { set: { noted: "{{ context.user }} {{ context.session }}" }, next: join }
  join: { join: all, set: { joined: true }, next: last }
  last:
    human: { prompt: "Send as {{ context.metadata.case }} to {{ context.tenant }}?", options: [{ id: ok, label: Ok }] }
    next: [{ to: sent, when: 'context.metadata.case == "C-9" && context.tenant == "acme"' }, { to: lost, else: true }]
  sent: { set: { sent: "{{ context.metadata.case }} by {{ decisions.last.by | join(', ') }}" } }
  lost: { set: { sent: "" } }
"#;

async fn decide(client: &Client<'_>, review: &Value, metadata: Value) -> Value {
    let mut body = decision(review, "ok");
    body["metadata"] = metadata;
    client.post(&format!("/api/v1/reviews/{}/decisions", review["id"].as_str().unwrap()), &body).await.expect(200)
}

/// Returns the text in `field` of each item.
fn each<'v>(items: &'v Value, field: &str) -> Vec<&'v str> {
    items.as_array().unwrap().iter().map(|item| item[field].as_str().unwrap()).collect()
}

async fn several_reviews_of_a_run_wait_each_by_its_own_id_and_the_context_goes_through_all_of_them(site: Site) {
    let dev = site.join("dev", &["developer"]).await;
    let ana = site.join("ana", &["reviewer"]).await;
    dev.put_flow("/api/v1/flows/offer", FLOW).await.expect(200);
    let context = json!({ "user": "mara", "tenant": "acme", "session": "s1", "metadata": { "plan": "gold" } });
    let run = dev.post("/api/v1/runs", &json!({ "flow": "offer", "context": context })).await.expect(201);
    assert_eq!((&run["status"], &run["context"]), (&json!("waiting_for_human"), &context));
    assert_eq!(run["state"]["noted"], "mara s1", "the branch without a person went on");
    let path = format!("/api/v1/runs/{}", run["id"].as_str().unwrap());
    let reviews = format!("{path}/reviews");

    let pending = ana.get(&reviews).await.expect(200)["items"].clone();
    assert_eq!(each(&pending, "status"), ["pending", "pending"]);
    let by_prompt = |prompt: &str| {
        let found = pending.as_array().unwrap().iter().find(|review| review["prompt"] == prompt);
        found.unwrap().clone()
    };
    let (price, legal) = (by_prompt("Price?"), by_prompt("Legal?"));
    assert!(price["id"] != legal["id"] && price["context"] == context && legal["context"] == context);

    // After one review is decided, the other one and its step wait unchanged.
    decide(&ana, &price, json!({ "case": "C-9" })).await;
    let other = ana.get(&format!("/api/v1/reviews/{}", legal["id"].as_str().unwrap())).await.expect(200);
    assert_eq!((&other["status"], &other["revision"]), (&json!("pending"), &legal["revision"]));
    let report = dev.get(&format!("{path}/report")).await.expect(200);
    assert_eq!(report["status"], "waiting_for_human");
    assert_eq!(each(&report["steps"], "node"), ["begin", "to-price", "to-legal", "note", "price", "legal"]);
    assert_eq!(
        each(&report["steps"], "status"),
        ["completed", "completed", "completed", "completed", "completed", "waiting"]
    );

    decide(&ana, &legal, json!({})).await;
    let last = ana.get(&reviews).await.expect(200)["items"][0].clone();
    assert_eq!(last["prompt"], "Send as C-9 to acme?", "what a decision adds is known from then on");
    let known =
        json!({ "user": "mara", "tenant": "acme", "session": "s1", "metadata": { "plan": "gold", "case": "C-9" } });
    assert_eq!(last["context"], known);
    decide(&ana, &last, json!({})).await;

    let done = dev.get(&path).await.expect(200);
    assert_eq!((&done["status"], &done["state"]["sent"]), (&json!("completed"), &json!("C-9 by ana")));
    let report = dev.get(&format!("{path}/report")).await.expect(200);
    assert_eq!((&report["run_id"], &report["status"]), (&run["id"], &json!("completed")));
    assert_eq!(
        each(&report["steps"], "node"),
        ["begin", "to-price", "to-legal", "note", "price", "legal", "join", "last", "sent"]
    );
    let steps = report["steps"].as_array().unwrap();
    assert!(steps.iter().all(|step| step["duration_ms"].is_u64() && step["visit"] == 1), "{report}");
    assert!(steps.iter().all(|step| step["started_at"].is_string() && step["kind"].is_string()), "{report}");
    let whole = report["duration_ms"].as_u64().unwrap();
    assert!(steps.iter().all(|step| step["duration_ms"].as_u64().unwrap() <= whole), "{report}");
    assert_eq!(each(&report["reviews"], "status"), ["resolved"; 3]);
    assert_eq!(report["reviews"][2]["id"], last["id"], "in the order in which they were asked");
    assert_eq!(ana.get(&reviews).await.expect(200)["items"].as_array().unwrap().len(), 3);
}

async fn a_run_stands_where_its_status_says_however_it_ends(site: Site) {
    let dev = site.join("dev", &["developer"]).await;
    let ana = site.join("ana", &["reviewer"]).await;
    dev.put_flow("/api/v1/flows/offer", FLOW).await.expect(200);
    for (status, review) in [("failed", "resolved"), ("cancelled", "withdrawn")] {
        let launch = json!({ "flow": "offer", "context": { "user": "mara", "tenant": "acme", "session": "s1" } });
        let run = dev.post("/api/v1/runs", &launch).await.expect(201);
        let path = format!("/api/v1/runs/{}", run["id"].as_str().unwrap());
        let pending = ana.get(&format!("{path}/reviews")).await.expect(200)["items"].clone();
        let legal = pending.as_array().unwrap().iter().find(|review| review["prompt"] == "Legal?").unwrap();
        if status == "failed" {
            let decide = format!("/api/v1/reviews/{}/decisions", legal["id"].as_str().unwrap());
            ana.post(&decide, &decision(legal, "no")).await.expect(200);
        } else {
            dev.post(&format!("{path}/cancel"), &json!({ "reason": "Not needed." })).await.expect(200);
        }
        let report = dev.get(&format!("{path}/report")).await.expect(200);
        assert_eq!(report["status"], status);
        assert!(report["steps"].as_array().unwrap().iter().all(|step| step["duration_ms"].is_u64()), "{report}");
        let legal = report["reviews"].as_array().unwrap().iter().find(|review| review["prompt"] == "Legal?").unwrap();
        assert_eq!(legal["status"], review);
        if status == "failed" {
            let failed = report["steps"].as_array().unwrap().iter().find(|step| step["node"] == "legal").unwrap();
            assert_eq!(failed["error"]["code"], "FLOW_HUMAN_REJECTED");
            assert_eq!(each(&report["reviews"], "status").iter().filter(|one| **one == "withdrawn").count(), 1);
        }
    }
}

async fn a_request_waits_until_a_run_ends_or_stops_for_people(site: Site) {
    const ANSWER: &str = r"
id: answer
agents: { clerk: { model: demo/clerk } }
nodes: { write: { agent: clerk, prompt: Write. } }
";
    let dev = site.join("dev", &["developer"]).await;
    dev.put_flow("/api/v1/flows/offer", FLOW).await.expect(200);
    dev.put_flow("/api/v1/flows/answer", ANSWER).await.expect(200);
    let asks = dev.post("/api/v1/runs", &json!({ "flow": "offer" })).await.expect(201);
    let stopped = format!("/api/v1/runs/{}?wait=60s", asks["id"].as_str().unwrap());
    assert_eq!(dev.get(&stopped).await.expect(200)["status"], "waiting_for_human", "it has stopped already");

    // No worker runs, so the agent of this run is not called.
    let works = dev.post("/api/v1/runs", &json!({ "flow": "answer" })).await.expect(201);
    let path = format!("/api/v1/runs/{}", works["id"].as_str().unwrap());
    let (long, brief) = (format!("{path}?wait=60s"), format!("{path}?wait=10ms"));
    assert_eq!(dev.get(&brief).await.expect(200)["status"], "running", "it has waited long enough");
    let (cancel, reason) = (format!("{path}/cancel"), json!({ "reason": "Not needed." }));
    let (waited, cancelled) = tokio::join!(dev.get(&long), dev.post(&cancel, &reason));
    cancelled.expect(200);
    assert_eq!(waited.expect(200)["status"], "cancelled");
    let too_long = dev.get(&format!("{path}?wait=61s")).await.expect(422);
    assert_eq!(too_long["errors"][0]["path"], "/wait", "{too_long}");
}
