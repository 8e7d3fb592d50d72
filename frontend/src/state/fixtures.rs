//! Reviews for tests.

use serde_json::{Value, json};
use shared::review::Review;

/// A pending review of a human node; `patch` replaces fields.
pub fn review(number: u8, version: u64, patch: Value) -> Review {
    let mut review = json!({
        "id": format!("018f0000-0000-7000-8000-0000000000{number:02x}"),
        "revision": 1, "digest": "sha256:aa", "version": version, "kind": "approval", "status": "pending",
        "run_id": "018f0000-0000-7000-8000-000000000001", "flow": "article", "flow_title": "Write an article",
        "node": "review", "visit": 1, "title": "Review the draft", "prompt": "Please review.",
        "items": [{"key": "draft", "content_type": "markdown", "value": "Hello", "editable": true}],
        "options": [
            {"id": "approve", "kind": "accept", "label": "Looks good"},
            {"id": "shorten", "kind": "correct", "label": "Needs revision", "message": "Shorter, please."},
            {"id": "longer", "kind": "correct", "label": "Say what"},
            {"id": "reject", "kind": "stop", "label": "Reject"},
        ],
        "free_text": true, "actions": [], "policy": "first", "reviewers": {},
        "requested_by": "mia", "created_at": "2026-11-20T10:00:00Z",
    });
    merge(&mut review, patch);
    serde_json::from_value(review).expect("the fixture is a review")
}

/// A pending review of two tool calls.
pub fn calls(number: u8, version: u64) -> Review {
    let action = |id: &str, name: &str| {
        json!({"id": id, "type": "tool", "name": name, "agent": "janitor", "arguments": {"path": "/a"},
            "allowed_decisions": ["approve", "edit", "reject", "respond"]})
    };
    let actions = json!([action("a1", "delete_file"), action("a2", "list_files")]);
    review(number, version, json!({"kind": "tool_calls", "items": [], "options": [], "actions": actions}))
}

/// The same review after `by` chose `approve`.
pub fn resolved(number: u8, version: u64, by: &str) -> Review {
    let decision = json!({"by": by, "at": "2026-11-20T10:05:00Z", "via": "human", "revision": 1, "digest": "sha256:aa",
        "verdict": {"type": "choose", "option": "approve"}});
    let resolution = json!({"status": "resolved", "outcome": "accepted", "by": [by], "at": "2026-11-20T10:05:00Z",
        "via": "human", "decision": decision});
    review(number, version, json!({"status": "resolved", "resolution": resolution, "decisions": [decision]}))
}

fn merge(into: &mut Value, patch: Value) {
    if let (Value::Object(into), Value::Object(patch)) = (into, patch) {
        into.extend(patch);
    }
}
