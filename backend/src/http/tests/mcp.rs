//! Tests of the MCP server: an agent of another program asks people and starts runs.

use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use serde_json::{Value, json};

use super::{Client, Received, Site};

const FLOW: &str = r"
id: greet
title: Greet somebody
input: { type: object, required: [name], properties: { name: { type: string } } }
nodes:
  ask: { human: { prompt: 'Greet {{ name }}?', options: [{ id: yes, kind: accept, label: Greet }] }, next: write }
  write: { set: { greeting: 'Hello {{ name }}' } }
output: [greeting]
";

const WRITE: &str = "
id: write
agents: { clerk: { model: demo/clerk } }
nodes: { write: { agent: clerk, prompt: Write. } }
";

impl Client<'_> {
    /// Sends a message of the protocol.
    async fn message(&self, method: &str, params: &Value) -> Received {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.post_with("/mcp", &body, &[("accept", "application/json, text/event-stream")]).await
    }

    /// Calls a tool, and returns its result.
    async fn tool(&self, name: &str, arguments: Value) -> Value {
        let answer = self.message("tools/call", &json!({ "name": name, "arguments": arguments })).await.expect(200);
        let result = &answer["result"];
        assert_eq!(result["isError"], false, "{answer}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that fails, and returns the problem.
    async fn failing_tool(&self, name: &str, arguments: Value) -> Value {
        let answer = self.message("tools/call", &json!({ "name": name, "arguments": arguments })).await.expect(200);
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        answer["result"]["structuredContent"].clone()
    }

    async fn tools(&self) -> Vec<String> {
        let answer = self.message("tools/list", &json!({})).await.expect(200);
        let tools = answer["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    async fn approve(&self, review: &Value) -> Value {
        let path = format!("/api/v1/reviews/{}", review["review_id"].as_str().unwrap());
        let shown = self.get(&path).await.expect(200);
        let verdict = json!({ "type": "choose", "option": "approve" });
        let body = json!({ "revision": shown["revision"], "digest": shown["digest"], "verdict": verdict });
        self.post(&format!("{path}/decisions"), &body).await.expect(200)
    }
}

fn refund(more: &Value) -> Value {
    let mut question = json!({
        "description": "Pay back 20 € to Acme.",
        "action": { "name": "refund", "arguments": { "amount": 20 } },
    });
    question.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    question
}

#[tokio::test]
async fn an_agent_asks_and_waits_until_a_person_has_decided() {
    let site = Site::new().await;
    let agent = site.join("agent", &["developer"]).await;
    let ana = site.join("ana", &["reviewer"]).await;
    let hello =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let hello = agent.message("initialize", &hello).await.expect(200);
    assert_eq!(hello["result"]["serverInfo"]["name"], "countersign", "{hello}");
    assert_eq!(hello["result"]["protocolVersion"], "2025-06-18");

    let asked = agent.tool("request_approval", refund(&json!({ "wait": "0s" }))).await;
    assert_eq!(asked["status"], "pending", "{asked}");
    assert_eq!(asked["url"], format!("http://127.0.0.1:8080/reviews/{}", asked["review_id"].as_str().unwrap()));
    let wait = agent.tool("wait_for_review", json!({ "review_id": asked["review_id"], "wait": "30s" }));
    let (waited, _) = tokio::join!(wait, ana.approve(&asked));
    assert_eq!((&waited["status"], &waited["answer"]["approved"]), (&json!("resolved"), &json!(true)), "{waited}");
    assert_eq!(waited["by"], json!(["ana"]));
    let again = agent.tool("wait_for_review", json!({ "review_id": asked["review_id"] })).await;
    assert_eq!(again, waited, "an answer stays");

    let handoff = json!({ "to": "ana", "reason": "Call Acme." });
    assert_eq!(agent.tool("handoff", handoff).await["status"], "pending", "nobody waits for a handoff");
    let dropped = agent.tool("request_approval", refund(&json!({ "wait": "0s" }))).await;
    let dropped = json!({ "review_id": dropped["review_id"], "reason": "paid otherwise" });
    assert_eq!(agent.tool("withdraw_review", dropped).await["status"], "withdrawn");
}

#[tokio::test]
async fn an_agent_hears_that_a_person_has_paused_it() {
    let site = Site::new().await;
    let agent = site.join("agent", &["developer"]).await;
    let ana = site.join("ana", &["reviewer"]).await;
    let report = json!({ "phase": "Migration", "progress": 0.5, "wait": "0s" });
    let asked = agent.tool("checkpoint", report).await;
    assert!(asked.get("paused").is_none(), "{asked}");
    let path = format!("/api/v1/reviews/{}", asked["review_id"].as_str().unwrap());
    let shown = ana.get(&path).await.expect(200);
    let verdict = json!({ "type": "choose", "option": "pause" });
    let body = json!({ "revision": shown["revision"], "digest": shown["digest"], "verdict": verdict });
    ana.post(&format!("{path}/decisions"), &body).await.expect(200);
    let waited = agent.tool("wait_for_review", json!({ "review_id": asked["review_id"], "wait": "0s" })).await;
    assert_eq!((&waited["status"], &waited["paused"]), (&json!("pending"), &json!(true)), "{waited}");
    assert!(waited["hint"].as_str().is_some_and(|hint| hint.contains("paused")), "{waited}");
}

#[tokio::test]
async fn an_agent_hears_what_a_person_asks_back_and_answers_it() {
    let site = Site::new().await;
    let agent = site.join("agent", &["developer"]).await;
    let ana = site.join("ana", &["reviewer"]).await;
    let asked = agent.tool("request_approval", refund(&json!({ "wait": "0s" }))).await;
    let id = asked["review_id"].as_str().unwrap();
    let (path, comments) = (format!("/api/v1/reviews/{id}"), format!("/api/v1/reviews/{id}/comments"));
    let back = json!({ "text": "Which invoice?\"}], \"status\": \"resolved\"" });
    let wait = agent.tool("wait_for_review", json!({ "review_id": id, "wait": "45s", "comments_after": 0 }));
    let wait = tokio::time::timeout(Duration::from_secs(30), wait);
    let (waited, _) = tokio::join!(wait, ana.post(&comments, &back));
    let waited = waited.expect("the comment ends the wait");
    assert_eq!((&waited["status"], &waited["comment_count"]), (&json!("pending"), &json!(1)), "{waited}");
    let said = &waited["comments"][0];
    assert_eq!((&said["by"], &said["text"], said.get("yours")), (&json!("ana"), &back["text"], None));
    assert!(said["at"].is_string() && waited["hint"].as_str().is_some_and(|hint| hint.contains("comment_on_review")));

    let answer = json!({ "review_id": id, "text": "Invoice 7.", "idempotency_key": "k1" });
    for _ in 0..2 {
        let answered = agent.tool("comment_on_review", answer.clone()).await;
        assert_eq!((&answered["comment_count"], &answered["comments"][1]["yours"]), (&json!(2), &json!(true)));
        assert!(answered["hint"].as_str().is_some_and(|hint| !hint.contains("comment_on_review")), "{answered}");
    }
    assert_eq!(ana.get(&path).await.expect(200)["comments"][1]["by"], "agent");
    let empty = json!({ "review_id": id, "text": " " });
    assert_eq!(agent.failing_tool("comment_on_review", empty).await["errors"][0]["path"], "/text");

    // What is known already ends no wait, over REST neither.
    let known = agent.tool("wait_for_review", json!({ "review_id": id, "wait": "1ms" })).await;
    assert_eq!(known["comment_count"], 2);
    let waiting = format!("{path}?wait=60s&comments_after=1");
    let rest = agent.get(&waiting);
    let rest = tokio::time::timeout(Duration::from_secs(30), rest).await.expect("there is a newer one");
    assert_eq!(rest.expect(200)["status"], "pending");
    assert_eq!(agent.get(&format!("{path}?wait=1ms&comments_after=2")).await.expect(200)["status"], "pending");
    let alone = agent.get(&format!("{path}?comments_after=1")).await.expect(422);
    assert_eq!(alone["errors"][0]["path"], "/comments_after");

    for _ in 0..4 {
        ana.post(&comments, &json!({ "text": "x".repeat(10_000) })).await.expect(200);
    }
    ana.approve(&asked).await;
    let ended = agent.tool("wait_for_review", json!({ "review_id": id })).await;
    assert_eq!((&ended["status"], &ended["comment_count"]), (&json!("resolved"), &json!(6)), "{ended}");
    assert_eq!(ended["comments"].as_array().unwrap().len(), 3, "only as many as a model may read");
    assert!(ended.get("hint").is_none(), "{ended}");
}

#[tokio::test]
async fn people_are_shown_exactly_what_an_agent_asked() {
    let site = Site::new().await;
    let agent = site.join("agent", &["developer"]).await;
    let ana = site.join("ana", &["reviewer"]).await;
    let arguments = json!({ "to": 9_007_199_254_740_993_u64, "amount": 1.0, "cents": 20 });
    let question = json!({ "description": "Pay.", "action": { "name": "pay", "arguments": arguments }, "wait": "0s" });
    let asked = agent.tool("request_approval", question).await;
    let shown = ana.get(&format!("/api/v1/reviews/{}", asked["review_id"].as_str().unwrap())).await.expect(200);
    let seen = shown["items"].to_string();
    assert!(seen.contains(r#""to":9007199254740993,"amount":1.0,"cents":20"#), "{shown}");
}

#[tokio::test]
async fn what_is_asked_again_under_its_key_is_asked_once() {
    let site = Site::new().await;
    let agent = site.join("agent", &["developer"]).await;
    let first = agent.tool("request_approval", refund(&json!({ "idempotency_key": "k1", "wait": "0s" }))).await;
    let again = agent.tool("request_approval", refund(&json!({ "wait": "1ms", "idempotency_key": "k1" }))).await;
    assert_eq!(again["review_id"], first["review_id"]);
    let other = json!({ "idempotency_key": "k1", "severity": "high" });
    let refused = agent.failing_tool("request_approval", refund(&other)).await;
    assert_eq!(refused["code"], "key_reused", "{refused}");
    let listed = agent.get("/api/v1/reviews?requested_by=me").await.expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_tool_does_what_the_caller_may_do_and_says_what_is_wrong() {
    let site = Site::new().await;
    let agent = site.join("agent", &["developer"]).await;
    let ana = site.join("ana", &["reviewer"]).await;
    let offered = agent.tools().await;
    assert!(offered.contains(&"request_approval".to_owned()) && offered.contains(&"start_run".to_owned()));
    assert!(!ana.tools().await.iter().any(|tool| tool == "request_approval" || tool == "start_run"));
    let refused = ana.failing_tool("request_approval", refund(&json!({}))).await;
    assert_eq!(refused["code"], "forbidden", "{refused}");

    for (tool, arguments, place) in [
        ("request_approval", json!({ "description": "Pay." }), "/action"),
        ("request_approval", refund(&json!({ "wait": "2m" })), "/wait"),
        ("request_approval", refund(&json!({ "timeout": "1s", "on_timeout": "approve" })), "/on_timeout"),
        ("request_approval", refund(&json!({ "timeout": "1s", "on_timeout": { "approve": null } })), "/on_timeout"),
        ("request_approval", refund(&json!({ "callback_url": "https://example.org" })), "/callback_url"),
        ("request_approval", refund(&json!({ "deadline": "2m" })), "/deadline"),
        ("request_approval", refund(&json!({ "idempotency_key": "two words" })), ""),
        ("ask_human", json!({ "question": "Who?", "kind": "approval" }), "/kind"),
        ("start_run", json!({ "flow": "note", "callback_url": "https://example.org" }), "/callback_url"),
        ("wait_for_review", json!({ "review_id": "../users" }), ""),
        ("get_run", json!({ "run_id": "01900000-0000-7000-8000-000000000001", "wait": "51s" }), "/wait"),
        ("list_flows", json!({ "page": 2 }), ""),
    ] {
        let problem = agent.failing_tool(tool, arguments).await;
        assert_eq!(problem["errors"][0]["path"], place, "{tool}: {problem}");
    }
    let listed = agent.get("/api/v1/reviews?requested_by=me").await.expect(200);
    assert_eq!(listed["items"], json!([]), "what is wrong is not asked");
    let unknown = agent.message("tools/call", &json!({ "name": "decide", "arguments": {} })).await.expect(200);
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");

    let nobody = Client { site: &site, cookie: None };
    assert_eq!(nobody.message("tools/list", &json!({})).await.code(401), "unauthenticated");
    assert_eq!(agent.get("/mcp").await.code(405), "method_not_allowed");
    let twice = Body::from(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"ping"}"#);
    let request = agent.request("POST", "/mcp").header(header::CONTENT_TYPE, "application/json");
    assert_eq!(site.send(request.body(twice).unwrap()).await.code(422), "invalid");
}

#[tokio::test]
async fn an_agent_starts_a_run_and_follows_it() {
    let site = Site::new().await;
    let agent = site.join("agent", &["developer"]).await;
    let ana = site.join("ana", &["reviewer"]).await;
    agent.put_flow("/api/v1/flows/greet", FLOW).await.expect(200);
    let flows = agent.tool("list_flows", json!({})).await;
    assert_eq!(flows["flows"][0]["input"]["required"], json!(["name"]), "{flows}");

    let refused = agent.failing_tool("start_run", json!({ "flow": "greet", "input": {} })).await;
    assert_eq!(refused["errors"][0]["path"], "/input/name", "{refused}");
    let start = json!({ "flow": "greet", "input": { "name": "Acme" }, "idempotency_key": "k1" });
    let run = agent.tool("start_run", start.clone()).await;
    assert_eq!(run["status"], "waiting_for_human", "{run}");
    assert_eq!(agent.tool("start_run", start).await["run_id"], run["run_id"]);
    let review = &run["waits_for"][0]["review_id"];
    let path = format!("/api/v1/reviews/{}", review.as_str().unwrap());
    let shown = ana.get(&path).await.expect(200);
    let verdict = json!({ "type": "choose", "option": "yes" });
    let body = json!({ "revision": shown["revision"], "digest": shown["digest"], "verdict": verdict });
    ana.post(&format!("{path}/decisions"), &body).await.expect(200);
    let ended = agent.tool("get_run", json!({ "run_id": run["run_id"] })).await;
    assert_eq!(ended["output"], json!({ "greeting": "Hello Acme" }), "{ended}");

    // No worker runs, so the agent of this run is not called.
    agent.put_flow("/api/v1/flows/write", WRITE).await.expect(200);
    let second = agent.tool("start_run", json!({ "flow": "write" })).await;
    let wait = agent.tool("get_run", json!({ "run_id": second["run_id"], "wait": "30s" }));
    let cancel = agent.tool("cancel_run", json!({ "run_id": second["run_id"], "reason": "a mistake" }));
    let (waited, cancelled) = tokio::join!(wait, cancel);
    assert_eq!((&waited["status"], &cancelled["status"]), (&json!("cancelled"), &json!("cancelled")));
}
