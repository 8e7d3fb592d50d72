//! Tests of what guardrails say before a decision, and of what is recorded after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{Client, Site, http_options};
use crate::engine::{GuardrailAnswer, GuardrailPrograms, Inquiry};
use crate::flow::check;
use crate::store::testing::{Database, ManualClock};
use crate::store::{Change, NewFlow, Operation};

/// A flow with a gated call of a tool node, and an edit. No worker runs in these tests.
const FLOW: &str = "
id: guarded
input: { type: object, properties: { draft: { type: string, default: A text } } }
guardrails: [pii-redaction, code-safety, { name: names, pattern: falcon, message: Leave the name out. }]
tools:
  note:
    builtin: set_state
    parameters: { type: object, properties: { key: { type: string }, value: { type: string } } }
gates: { before_tool: { note: { severity: high } } }
nodes:
  one: { tool: note, arguments: { key: done, value: rm -rf / }, write_keys: [done], failure: { then: { goto: two } } }
  two: { human: { prompt: Fine?, edit_keys: [draft], options: [{ id: yes, label: Fine }] } }
";

async fn pending(client: &Client<'_>, run: &str) -> Value {
    let reviews = client.get(&format!("{run}/reviews")).await.expect(200)["items"].as_array().unwrap().clone();
    reviews.into_iter().find(|review| review["status"] == "pending").expect("a review is pending")
}

fn body(review: &Value, verdict: &Value, edits: &Value) -> Value {
    json!({ "revision": review["revision"], "digest": review["digest"], "verdict": verdict, "edits": edits })
}

fn path(review: &Value, what: &str) -> String {
    format!("/api/v1/reviews/{}/{what}", review["id"].as_str().unwrap())
}

#[tokio::test]
async fn a_veto_is_told_beforehand_and_stands_on_the_record() {
    let site = Site::new().await;
    let dev = site.join("dev", &["developer"]).await;
    let ana = site.join("ana", &["reviewer"]).await;
    let nobody = site.join("mia", &[]).await;
    dev.put_flow("/api/v1/flows/guarded", FLOW).await.expect(200);
    let run = dev.post("/api/v1/runs", &json!({ "flow": "guarded", "input": {} })).await.expect(201);
    let run = format!("/api/v1/runs/{}", run["id"].as_str().unwrap());

    let asked = pending(&ana, &run).await;
    let found = json!({ "guardrail": "code-safety", "action": "c1-1", "reason": "it deletes everything (`rm -rf`)" });
    let mut warned = found.clone();
    warned["effect"] = json!("block");
    assert_eq!(asked["warnings"], json!([warned]));
    let approve = json!({ "type": "actions", "decisions": { "c1-1": { "type": "approve" } } });
    let approve = body(&asked, &approve, &json!({}));
    assert_eq!(
        ana.post(&path(&asked, "check"), &approve).await.expect(200),
        json!({ "vetoes": [found], "redactions": [] })
    );
    assert_eq!(nobody.post(&path(&asked, "check"), &approve).await.code(404), "not_found");
    assert_eq!(dev.post(&path(&asked, "check"), &approve).await.code(403), "forbidden");
    let mut behind = approve.clone();
    behind["revision"] = json!(9);
    assert_eq!(ana.post(&path(&asked, "check"), &behind).await.code(409), "revision_changed");

    let decided = ana.post(&path(&asked, "decisions"), &approve).await.expect(200);
    assert_eq!(decided["review"]["resolution"]["vetoes"], json!([found]), "it is decided, and does not happen");
    let asked = pending(&ana, &run).await;
    let edit = body(&asked, &json!({ "type": "choose", "option": "yes" }), &json!({ "draft": "the falcon" }));
    let checked = ana.post(&path(&asked, "check"), &edit).await.expect(200);
    assert_eq!(checked["vetoes"], json!([{ "guardrail": "names", "key": "draft", "reason": "Leave the name out." }]));
    let refused = ana.post(&path(&asked, "decisions"), &edit).await.expect(422);
    assert_eq!(
        (&refused["errors"][0]["path"], &refused["errors"][0]["code"]),
        (&json!("/edits/draft"), &json!("GUARDRAIL_BLOCKED"))
    );
    let edit =
        body(&asked, &json!({ "type": "choose", "option": "yes" }), &json!({ "draft": "Card 4111111111111111" }));
    ana.post(&path(&asked, "decisions"), &edit).await.expect(200);
    let ended = dev.get(&run).await.expect(200);
    assert_eq!((&ended["status"], &ended["output"]["draft"]), (&json!("completed"), &json!("Card [redacted]")));

    let admin = site.login("admin").await;
    let audit = admin.get("/api/v1/audit?kind=guardrail.fired").await.expect(200);
    let told: Vec<_> = audit["items"].as_array().unwrap().iter().map(|entry| entry["data"].clone()).collect();
    let said =
        |data: &Value| ["guardrail", "effect", "action", "key"].map(|key| data[key].as_str().unwrap_or("-").to_owned());
    let mut fired: Vec<_> = told.iter().map(|data| said(data).join(" ")).collect();
    fired.sort();
    assert_eq!(
        fired,
        ["code-safety block c1-1 -", "names block - draft", "pii-redaction redact - draft"],
        "a refused edit is told too"
    );
    let of_edits = audit["items"].as_array().unwrap().iter().filter(|entry| entry["data"]["key"] == "draft");
    assert!(of_edits.clone().all(|entry| entry["data"]["review"] == asked["id"] && entry["review_id"] == asked["id"]));
    let refused = of_edits.clone().find(|entry| entry["data"]["effect"] == "block").unwrap();
    assert_eq!((&refused["actor"], refused.to_string().contains("falcon")), (&json!("ana"), false));
    let review = asked["id"].as_str().unwrap();
    for filter in [format!("run={}", run.rsplit('/').next().unwrap()), format!("review={review}")] {
        let found = admin.get(&format!("/api/v1/audit?kind=guardrail.fired&{filter}")).await.expect(200);
        let mut found_by = found["items"].as_array().unwrap().iter().map(|entry| &entry["cursor"]);
        assert!(found_by.any(|cursor| *cursor == refused["cursor"]), "{filter}: {found}");
    }
}

/// A program that takes an hour to answer, by a manual clock.
struct Hour(Arc<ManualClock>);

#[async_trait]
impl GuardrailPrograms for Hour {
    async fn inquire(&self, _: &Inquiry) -> GuardrailAnswer {
        self.0.advance(Duration::from_hours(1));
        GuardrailAnswer::Allows
    }
}

#[tokio::test]
async fn a_decision_that_a_deadline_overtook_while_a_guardrail_asked_is_told_so() {
    let rules = "[{ name: house-rules, on: [actions], webhook: { url: 'https://rules.example.com/look' } }]";
    let flow = FLOW
        .replace("[pii-redaction, code-safety, { name: names, pattern: falcon, message: Leave the name out. }]", rules);
    let flow = flow.replace("severity: high", "timeout: 30m");
    for database in [Some(Database::sqlite().unwrap()), Database::postgres().await.unwrap()].into_iter().flatten() {
        let clock = ManualClock::now();
        let site = Site::with(database, clock.clone(), http_options()).await;
        site.store.ask_guardrails_by(Arc::new(Hour(clock)));
        let dev = site.join("dev", &["developer"]).await;
        let ana = site.join("ana", &["reviewer"]).await;
        // Saves the flow directly: over the API it is refused, because this server has no secret to sign requests with.
        let saved = NewFlow { flow: check(&flow).flow.unwrap(), digest: String::new(), source: flow.clone() };
        site.store.commit(Change::by_server(Operation::SaveFlow(Box::new(saved)))).await.unwrap();
        let run = dev.post("/api/v1/runs", &json!({ "flow": "guarded", "input": {} })).await.expect(201);
        let asked = pending(&ana, &format!("/api/v1/runs/{}", run["id"].as_str().unwrap())).await;
        let approve = json!({ "type": "actions", "decisions": { "c1-1": { "type": "approve" } } });
        let late = ana.post(&path(&asked, "decisions"), &body(&asked, &approve, &json!({}))).await.expect(409);
        assert_eq!((&late["code"], &late["resolution"]["status"]), (&json!("review_resolved"), &json!("expired")));
        let deadline = asked["expires_at"].as_str().unwrap();
        assert_eq!(
            late["detail"],
            format!(
                "this came before the deadline {deadline}, which passed while guardrails were checked: \
                 `house-rules` (rules.example.com)"
            )
        );
    }
}

/// Programs that never answer; counts how often they are asked.
#[derive(Default)]
struct Silent(AtomicUsize);

#[async_trait]
impl GuardrailPrograms for Silent {
    async fn inquire(&self, _: &Inquiry) -> GuardrailAnswer {
        self.0.fetch_add(1, Ordering::Relaxed);
        std::future::pending().await
    }
}

#[tokio::test]
async fn the_newest_check_of_somebody_ends_the_older_one_and_more_than_two_are_refused() {
    let rules = "[{ name: house-rules, webhook: { url: 'https://rules.example.com/look' } }]";
    let flow = FLOW
        .replace("[pii-redaction, code-safety, { name: names, pattern: falcon, message: Leave the name out. }]", rules);
    let site = Site::new().await;
    let programs = Arc::new(Silent::default());
    site.store.ask_guardrails_by(programs.clone());
    let dev = site.join("dev", &["developer"]).await;
    let ana = site.join("ana", &["reviewer"]).await;
    let saved = NewFlow { flow: check(&flow).flow.unwrap(), digest: String::new(), source: flow.clone() };
    site.store.commit(Change::by_server(Operation::SaveFlow(Box::new(saved)))).await.unwrap();
    let mut asked = Vec::new();
    for _ in 0..3 {
        let run = dev.post("/api/v1/runs", &json!({ "flow": "guarded", "input": {} })).await.expect(201);
        asked.push(pending(&ana, &format!("/api/v1/runs/{}", run["id"].as_str().unwrap())).await);
    }
    let approve = json!({ "type": "actions", "decisions": { "c1-1": { "type": "approve" } } });
    let check = |at: usize| {
        let (path, body) = (path(&asked[at], "check"), body(&asked[at], &approve, &json!({})));
        let ana = &ana;
        async move { ana.post(&path, &body).await }
    };
    let told = tokio::select! {
        told = check(0) => told,
        _ = check(1) => panic!("no program has answered"),
        _ = async {
            while programs.0.load(Ordering::Relaxed) < 2 {
                tokio::task::yield_now().await;
            }
            let refused = check(2).await.expect(429);
            assert_eq!(refused["detail"], "2 checks of yours are being made already");
            check(0).await
        } => panic!("no program has answered"),
    };
    assert!(told.headers.contains_key(axum::http::header::RETRY_AFTER));
    assert_eq!(told.expect(429)["detail"], "a newer check of this review took the place of this one");
}
