//! The JSON Schemas of the builtins that ask people, against which calls are checked.

use serde_json::{Value, json};
use shared::definition::Builtin;
use shared::statistics::EscalationReason;

/// The fewest and the most options of a question: with one there is nothing to choose.
const OPTIONS: std::ops::RangeInclusive<usize> = 2..=10;
/// The longest id of an option or an alternative, in characters: it fits into what a button in Slack holds.
const MAX_ID: usize = 200;
/// The longest name of a proposed action, in characters.
const MAX_NAME: usize = 200;
/// The most calls of one question.
const MAX_CALLS: usize = 20;
/// The most alternatives of an action.
const MAX_ALTERNATIVES: usize = 10;
/// The most entries of a list of sentences.
const MAX_SENTENCES: usize = 20;

/// Returns the JSON Schema of the arguments of a builtin that asks people; `None` for other builtins.
pub fn parameters(builtin: Builtin) -> Option<Value> {
    let text = json!({ "type": "string", "minLength": 1 });
    let id = json!({ "type": "string", "minLength": 1, "maxLength": MAX_ID });
    let name = json!({ "type": "string", "minLength": 1, "maxLength": MAX_NAME });
    let texts = json!({ "type": "array", "items": text, "maxItems": MAX_SENTENCES });
    let timeout = json!({ "type": "string", "description": "How long to wait, such as 30m or 2h; default: no limit" });
    let severity = json!({ "enum": ["low", "medium", "high", "critical"] });
    let cost = json!({
        "type": "object", "required": ["amount", "currency"],
        "properties": { "amount": { "type": "number" }, "currency": text },
    });
    let (required, mut properties) = match builtin {
        Builtin::AskHuman => (
            json!(["question"]),
            json!({
                "question": { "type": "string", "minLength": 1, "description": "What you need to know" },
                "context": { "type": "string", "description": "What the person should know to answer" },
                "type": {
                    "enum": ["ambiguity", "missing_info", "preference", "verification", "guidance"],
                    "description": "Default: guidance",
                },
                "options": {
                    "type": "array", "minItems": OPTIONS.start(), "maxItems": OPTIONS.end(),
                    "description": "Answers to choose from",
                    "items": {
                        "type": "object", "required": ["id", "label"], "additionalProperties": false,
                        "properties": { "id": id, "label": text, "description": text },
                    },
                },
                "multiple": { "type": "boolean", "description": "Whether several options may be chosen; default: false" },
                "allow_free_text": { "type": "boolean", "description": "Whether the person may also answer in their own words; default: true" },
            }),
        ),
        Builtin::RequestEdit => (
            json!(["content", "purpose"]),
            json!({
                "content": { "type": "string", "minLength": 1, "description": "The draft" },
                "content_type": { "enum": ["text", "markdown", "code", "json", "html"] },
                "purpose": { "type": "string", "minLength": 1, "description": "What it is for" },
                "focus": { "type": "array", "items": text, "maxItems": MAX_SENTENCES, "description": "What to look at" },
                "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
            }),
        ),
        Builtin::RequestApproval => (
            json!(["description", "action"]),
            json!({
                "description": { "type": "string", "minLength": 1, "description": "What you are about to do, and why" },
                "action": {
                    "type": "object", "required": ["name"], "additionalProperties": false,
                    "properties": { "name": name, "arguments": { "type": "object" } },
                },
                "severity": severity,
                "category": text,
                "reversible": { "type": "boolean" },
                "consequences": texts,
                "estimated_cost": cost,
                "alternatives": {
                    "type": "array", "maxItems": MAX_ALTERNATIVES,
                    "description": "What people can choose instead: then the answer says approved: false and which alternative to do",
                    "items": {
                        "type": "object", "required": ["id", "description"], "additionalProperties": false,
                        "properties": { "id": id, "description": text, "tradeoffs": text },
                    },
                },
            }),
        ),
        Builtin::ReviewCalls => (
            json!(["actions"]),
            json!({
                "description": { "type": "string", "minLength": 1, "description": "What the calls are for" },
                "actions": {
                    "type": "array", "minItems": 1, "maxItems": MAX_CALLS,
                    "description": "The calls, which you make yourself once they are decided",
                    "items": {
                        "type": "object", "required": ["name"], "additionalProperties": false,
                        "properties": {
                            "name": name, "arguments": { "type": "object" }, "description": text,
                            "allowed_decisions": {
                                "type": "array", "minItems": 1,
                                "items": { "enum": ["approve", "edit", "reject", "respond"] },
                            },
                        },
                    },
                },
                "severity": severity,
                "category": text,
                "reversible": { "type": "boolean" },
                "consequences": texts,
                "estimated_cost": cost,
            }),
        ),
        Builtin::Escalate => (
            json!(["reason", "explanation"]),
            json!({
                "reason": { "enum": EscalationReason::ALL },
                "explanation": { "type": "string", "minLength": 1, "description": "What is wrong, and why you cannot go on" },
                "assessment": text,
                "attempted": { "type": "array", "items": text, "maxItems": MAX_SENTENCES, "description": "What you have tried" },
                "recommendations": texts,
                "state": { "type": "object", "description": "What somebody needs to know who takes over" },
                "urgency": { "enum": ["low", "medium", "high", "critical"] },
            }),
        ),
        Builtin::Checkpoint => (
            json!(["phase", "progress"]),
            json!({
                "phase": { "type": "string", "minLength": 1, "description": "What you are doing" },
                "progress": { "type": "number", "minimum": 0, "maximum": 1 },
                "done": texts,
                "next": texts,
                "issues": texts,
                "notes": text,
            }),
        ),
        Builtin::Handoff => (
            json!(["to", "reason"]),
            json!({
                "to": { "type": "string", "minLength": 1, "description": "A role, or a username" },
                "reason": { "type": "string", "minLength": 1, "description": "What they are to do, and why" },
                "summary": { "type": "string", "description": "What they need to know" },
            }),
        ),
        _ => return None,
    };
    properties["timeout"] = match builtin {
        // Models send one, but are not offered it: nobody waits for a handoff.
        Builtin::Handoff => json!({ "description": "Has no effect: nobody waits for a hand-off" }),
        _ => timeout,
    };
    Some(json!({
        "type": "object", "required": required, "properties": properties, "additionalProperties": false,
    }))
}
