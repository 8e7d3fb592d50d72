//! The contract of browser and server: every message says the same after it was written and read, nothing that was sent
//! is lost on the way, and what only a newer server knows is told apart from what is broken.

#![recursion_limit = "256"]

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use shared::protocol::ServerMessage;

const ID: &str = "01a1fe15-02bf-70db-ac07-93a1800b6c6a";
const AT: &str = "2026-01-01T00:00:00.000000Z";

/// Reads a sample, writes it, and reads it again; what is written holds all that was sent.
fn travels<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(sample: &Value) {
    let read: T = serde_json::from_value(sample.clone()).unwrap_or_else(|error| panic!("{error}: {sample}"));
    let written = serde_json::to_string(&read).expect("it can be written");
    let again: T = serde_json::from_str(&written).unwrap_or_else(|error| panic!("{error}: {written}"));
    assert_eq!(again, read);
    holds(&serde_json::from_str(&written).expect("it can be read again"), sample);
}

fn holds(written: &Value, sent: &Value) {
    match (written, sent) {
        (Value::Object(written), Value::Object(sent)) => {
            for (key, value) in sent {
                holds(written.get(key).unwrap_or_else(|| panic!("`{key}` is lost")), value);
            }
        }
        (Value::Array(written), Value::Array(sent)) => {
            assert_eq!(written.len(), sent.len());
            written.iter().zip(sent).for_each(|(written, sent)| holds(written, sent));
        }
        (Value::Number(written), Value::Number(sent)) => assert_eq!(written.as_f64(), sent.as_f64()),
        _ => assert_eq!(written, sent),
    }
}

fn decision(verdict: &Value) -> Value {
    json!({
        "by": "ana", "on_behalf_of": "tom", "at": AT, "via": "human", "revision": 1, "digest": "sha256:0",
        "sent": "sha256:1", "verdict": verdict, "edits": {"draft": "b"}, "comment": "good", "metadata": {"k": 1},
        "grant": ID, "requests": {"1": {"type": "function"}},
    })
}

fn review() -> Value {
    let mut review = json!({
        "id": ID, "revision": 2, "digest": "sha256:0", "version": 7, "kind": "tool_calls", "status": "resolved",
        "run_id": ID, "flow": "article", "flow_title": "An article", "node": "check:2/review", "visit": 2,
        "part": {"number": 2, "of": 5, "inside": true}, "asked_by": "agent",
        "source": {"node": "draft", "visits": 2, "max_visits": 5}, "title": "Review: Draft", "prompt": "Publish?",
        "severity": "high", "category": "public", "reversible": false, "consequences": ["All see it"],
        "estimated_cost": {"amount": 2.5, "currency": "EUR"}, "alternatives": ["Wait"],
        "items": [{"key": "draft", "label": "Draft", "content_type": "markdown", "value": "# Hi", "editable": true,
            "schema": {"type": "string"}}, {"key": "none", "content_type": "json", "value": null, "editable": false}],
        "options": [{"id": "ok", "kind": "accept", "label": "Approve", "message": "m", "description": "d",
            "fields": {"type": "object"}}],
        "free_text": true, "policy": {"quorum": 2}, "deny": 1, "blind": true,
        "actions": [{"id": "1", "type": "tool", "name": "publish", "agent": "writer",
            "arguments": {"z": 18_446_744_073_709_551_615_u64, "a": -9_007_199_254_740_993_i64, "f": 0.1},
            "request": {"type": "http", "method": "POST", "url": "https://x/", "headers": {"a": "b"}, "body": null,
                "secrets": [{"at": "/headers/a", "start": 0, "end": 1, "name": "K", "encoded": true}]},
            "description": "d", "schema": {"type": "object"}, "allowed_decisions": ["approve", "edit"]}],
        "reviewers": {"roles": ["reviewer"], "users": ["ana"], "tags": ["eu"], "not_requester": true,
            "not_same_as": "draft"},
    });
    let more = json!({
        "barred": ["tom"], "problem": "p", "unreadable": true,
        "voting": {"voters": ["ana"], "votes": 1, "standing": "s", "groups": [{"role": "legal", "voters": ["ana"]}],
            "voided": ["ana"], "edited": [{"key": "draft", "replaces": "sha256:0"}]},
        "claimed_by": {"by": "ana", "until": AT}, "comments": [{"by": "ana", "at": AT, "text": "hm"}],
        "delegations": [{"from": "ana", "to": "tom", "on_behalf_of": "eva", "at": AT}],
        "reassignments": [{"by": "boss", "at": AT, "from": [{"role": "legal"}], "to": {"user": "ana"}, "reason": "r"}],
        "advice": [{"by": "m/j", "via": "judge", "at": AT, "reason": "r",
            "verdict": {"approved": true, "confidence": 0.5, "threshold": 0.7}}],
        "decisions": [decision(&json!({"type": "text", "text": "no"}))],
        "resolution": {"status": "resolved", "outcome": "accepted", "by": ["ana"], "at": AT, "via": "human",
            "decision": decision(&json!({"type": "choose", "option": "ok", "fields": {"x": 1}})), "reason": "r"},
        "context": {"user": "u", "tenant": "t", "session": "s", "metadata": {"k": 1}},
        "usage": {"agent_calls": [{"agent": "a", "model": "m/m", "tokens": 3, "cost_usd": 0.1, "duration_ms": 4}],
            "total_tokens": 3, "total_cost_usd": 0.1, "elapsed_ms": 9},
        "requested_by": "dev", "created_at": AT, "expires_at": AT, "on_timeout": "reject", "escalated": ["lead"],
    });
    review.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    review
}

fn run() -> Value {
    json!({
        "id": ID, "flow": "article", "title": "An article", "topic": "Salt", "version": 3, "status": "waiting_for_human", "revision": 4,
        "requested_by": "dev", "created_at": AT, "updated_at": AT, "ended_at": AT, "pending_reviews": 1,
        "error": {"code": "MODEL_FAILED", "message": "m", "node": "draft"},
        "input": {"topic": "x"}, "state": {"draft": "y"}, "calls": {"check:2": {"a": 1}}, "output": {"draft": "y"},
        "context": {"metadata": {}}, "cancel_reason": "c",
        "positions": [{"node": "review", "visit": 1, "part": {"number": 1, "of": 2}, "activity": "waiting", "review": ID}],
    })
}

fn problem() -> Value {
    json!({
        "code": "revision_changed", "status": 409, "title": "t", "detail": "d", "retry_after": 3, "review": review(),
        "errors": [{"path": "/a", "line": 1, "column": 2, "code": "value", "message": "m"}],
        "resolution": review()["resolution"],
    })
}

fn entry() -> Value {
    json!({"type": "entry", "cursor": "7", "sealed": 3, "kind": "review.updated", "at": AT, "run_id": ID,
        "review_id": ID, "actor": "ana", "data": {"review": review(), "change": "claim"}})
}

#[test]
fn every_message_of_the_socket_travels() {
    for message in [
        json!({"type": "welcome", "user": "ana", "cursor": "1", "server_time": AT}),
        json!({"type": "snapshot", "cursor": "1", "pending": 2, "reviews": [review()]}),
        entry(),
        json!({"type": "review.gone", "cursor": "1", "review_id": ID}),
        json!({"type": "reply", "ref": "k", "ok": {"outcome": "recorded", "review": review()}}),
        json!({"type": "reply", "ref": "k", "problem": problem()}),
        json!({"type": "stream", "run": ID, "node": "a", "visit": 1, "agent": "b", "task": ID,
            "attempt": 1, "offset": 0, "text": "x"}),
        json!({"type": "resync"}),
        json!({"type": "pong", "cursor": "1", "server_time": AT}),
    ] {
        travels::<ServerMessage>(&message);
    }
}

#[test]
fn every_body_travels() {
    use shared::{
        account, api, decision::DecisionRequest, deputy, feedback, grant, notification, run, seal, statistics,
    };

    let page = |item: Value| json!({"items": [item], "next_cursor": "n"});
    let user = json!({"username": "ana", "display_name": "Ana", "email": "a@b", "roles": ["reviewer"], "active": false,
        "created_at": AT, "single_sign_on": true, "stands_for": [{"username": "tom", "roles": ["legal"]}]});
    travels::<api::Page<api::User>>(&page(user));
    travels::<api::Page<api::Token>>(&page(json!({"id": ID, "name": "ci", "owner": "ana", "roles": ["developer"],
        "created_at": AT, "expires_at": AT, "last_used_at": AT, "secret": "s"})));
    travels::<run::Run>(&run());
    travels::<run::Report>(&json!({"run_id": ID, "flow": "f", "version": 2, "status": "failed", "output": {"a": 1},
        "error": {"code": "TOOL_FAILED", "message": "m"}, "duration_ms": 5, "reviews": [review()],
        "steps": [{"id": ID, "node": "a", "visit": 1, "part": {"number": 1, "of": 2}, "kind": "agent", "status": "failed",
            "started_at": AT, "duration_ms": 3, "tries": 2, "error": {"code": "TOOL_FAILED", "message": "m"}, "note": "n"}]}));
    travels::<feedback::Feedback>(&json!({"id": ID, "run_id": ID, "flow": "f", "agent": "a", "type": "praise",
        "aspect": "style", "content": "c", "importance": 5, "context": "x", "by": "ana", "at": AT}));
    travels::<statistics::Statistics>(&json!({"from": AT, "to": AT, "requests": 3, "approval_rate": 0.5,
        "response_ms": {"avg": 1, "p50": 1, "p95": null}, "escalations_by_reason": {"out_of_scope": 1},
        "vetoes": {"g": 2}, "judge": {"asked": 1}, "groups": [{"key": "k", "requests": 1}], "groups_left_out": 4}));
    let graph = json!({
        "width": 10.0, "height": 5.5, "nodes": [{"id": "a", "kind": "human", "x": 1, "y": 2, "width": 3, "height": 4}],
        "edges": [{"from": "a", "to": "end", "kind": "next", "label": "if", "points": [[1.0, 2.0], [3.0, 4.0]]}],
    });
    travels::<api::FlowVersion<Value>>(&json!({"id": "f", "version": 1, "title": "F", "description": "d", "input": {},
        "definition": {"tags": ["x"]}, "source": "id: f", "digest": "sha256:0", "graph": graph, "saved_by": "ana",
        "saved_at": AT, "warnings": [{"path": "", "code": "c", "message": "m"}]}));
    travels::<api::Validation>(&json!({"valid": false, "errors": [], "warnings": [], "graph": graph}));
    travels::<shared::error::Problem>(&problem());
    for verdict in [
        json!({"type": "text", "text": "no"}),
        json!({"type": "choose", "option": "a", "fields": {"x": 1}}),
        json!({"type": "actions", "instructions": "i", "decisions": {"1": {"type": "reject", "message": "no"},
            "2": {"type": "approve", "remember": {"scope": "run", "for_ms": 5, "arguments": ["to"]}},
            "3": {"type": "edit", "arguments": {}}, "4": {"type": "respond", "message": "x"}}}),
    ] {
        travels::<DecisionRequest>(&json!({"revision": 1, "digest": "sha256:0", "verdict": verdict,
            "edits": {"draft": null}, "comment": "c", "metadata": {"k": [1]}}));
    }
    travels::<grant::Grant>(&json!({"id": ID, "tool": "check/deploy", "arguments": {"to": "x"}, "reads": "sha256:0",
        "scope": "flow", "flow": "f", "version": 1, "run_id": ID, "review_id": ID, "given_by": "ana", "given_at": AT,
        "expires_at": AT}));
    travels::<deputy::Deputyship>(&json!({"id": ID, "person": "ana", "deputy": "tom", "from": AT, "until": AT,
        "note": "n", "made_by": "ana", "created_at": AT}));
    let rule = json!({"channel": "slack", "events": ["review.requested"], "after": "10m", "severities": ["high"]});
    travels::<notification::Notifications>(&json!({"rules": [rule], "slack_user_id": "U024BE7LH", "email": "a@b",
        "available": ["slack", "email"], "default_rules": [rule]}));
    travels::<shared::saved_view::Views>(&json!({"revision": 1, "views": [
        {"name": "n", "filter": {"severity": "high", "due": "30m", "q": "x"}, "default": true}]}));
    travels::<notification::Delivery>(
        &json!({"id": ID, "channel": "email", "target": "ana", "event": "review.requested",
        "review_id": ID, "run_id": ID, "attempts": 9, "error": "e", "status": "given_up", "created_at": AT, "at": AT}),
    );
    travels::<shared::single_sign_on::LoginWays>(&json!({"single_sign_on": "Okta"}));
    travels::<account::SessionInfo>(&json!({"id": ID, "current": true, "created_at": AT, "last_used_at": AT,
        "expires_at": AT, "address": "127.0.0.1", "agent": "Firefox"}));
    travels::<account::SecondFactorState>(&json!({"enabled": true, "required": false, "recovery_codes_left": 3}));
    travels::<seal::SealHead>(&json!({"head": "1:ab", "sealed": 4, "sealed_at": AT}));
    travels::<seal::SealCheck>(&json!({"valid": false, "entries": 3, "sealed": 2, "head": "1:ab", "first_bad": {
        "what": "removed", "message": "m", "entry": 3, "seal": 1, "cursor": "7", "kind": "run.started", "run_id": ID}}));
}

#[test]
fn what_has_several_shapes_travels() {
    use shared::definition::{OnTimeout, Policy};

    for policy in [json!("first"), json!("unanimous"), json!({"quorum": 2}), json!({"groups": {"b": 1, "a": 2}})] {
        travels::<Policy>(&policy);
    }
    let chain =
        json!({"escalate": "lead", "extend": "2h", "then": {"escalate": "cto", "extend": "30m", "then": "follow"}});
    for on_timeout in [json!("reject"), json!("error"), json!({"goto": "draft"}), chain] {
        travels::<OnTimeout>(&on_timeout);
    }
    for request in [
        json!({"type": "http", "method": "GET", "url": "https://x/"}),
        json!({"type": "mcp", "server": "files", "tool": "read"}),
        json!({"type": "builtin", "builtin": "set_state"}),
        json!({"type": "function"}),
    ] {
        travels::<shared::request::Request>(&request);
    }
}

#[test]
fn a_console_reads_the_messages_of_a_newer_server_or_says_that_it_cannot() {
    let mut newer = entry();
    newer["data"]["review"]["added_later"] = json!({"x": 1});
    newer["added_later"] = json!(true);
    travels::<ServerMessage>(&entry());
    serde_json::from_value::<ServerMessage>(newer.clone()).expect("members that are not known are passed over");
    newer["kind"] = json!("review.invented_later");
    let error = serde_json::from_value::<ServerMessage>(newer).expect_err("a kind that is not known").to_string();
    assert!(error.contains("review.invented_later"), "{error}");
    let other = serde_json::from_value::<ServerMessage>(json!({"type": "invented_later"}));
    assert!(other.expect_err("a message that is not known").to_string().contains("invented_later"));
}
