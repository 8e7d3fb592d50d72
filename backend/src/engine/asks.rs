//! Builtins with which an agent asks people by itself: their parameters, and what a call of one asks.

use serde::Deserialize;
use serde_json::{Value, json};
use shared::JsonMap;
use shared::definition::{Builtin, ContentType, Cost, Policy, Severity};
use shared::time::Span;

/// The fewest and the most options of a question: with one there is nothing to choose.
const OPTIONS: std::ops::RangeInclusive<usize> = 2..=10;
/// The most alternatives of an action.
const MAX_ALTERNATIVES: usize = 10;

/// What an agent asks.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ask {
    /// To be told something.
    Clarification(Clarification),
    /// To have a draft edited.
    Edit(Draft),
    /// For leave to do something that is no call of a tool.
    Approval(Box<Proposal>),
}

/// A question.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Clarification {
    pub question: String,
    pub context: Option<String>,
    /// What kind of question: the category of its review.
    #[serde(rename = "type")]
    pub category: Option<String>,
    #[serde(default)]
    pub options: Vec<Choice>,
    #[serde(default = "yes")]
    pub allow_free_text: bool,
    pub timeout: Option<Span>,
}

/// One answer that is offered.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Choice {
    pub id: String,
    pub label: String,
    pub description: Option<String>,
}

/// A draft.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Draft {
    pub content: String,
    #[serde(default = "markdown")]
    pub content_type: DraftType,
    pub purpose: String,
    #[serde(default)]
    pub focus: Vec<String>,
    pub confidence: Option<f64>,
    pub timeout: Option<Span>,
}

/// How a draft is shown. HTML is shown as code: nothing of it is ever rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DraftType {
    Text,
    Markdown,
    Code,
    Json,
    Html,
}

impl From<DraftType> for ContentType {
    fn from(draft: DraftType) -> Self {
        match draft {
            DraftType::Text => Self::Text,
            DraftType::Markdown => Self::Markdown,
            DraftType::Code | DraftType::Json | DraftType::Html => Self::Code,
        }
    }
}

/// Something that an agent is about to do.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Proposal {
    pub description: String,
    pub action: Named,
    #[serde(default)]
    pub severity: Severity,
    pub category: Option<String>,
    pub reversible: Option<bool>,
    #[serde(default)]
    pub consequences: Vec<String>,
    pub estimated_cost: Option<Cost>,
    #[serde(default)]
    pub alternatives: Vec<Alternative>,
    pub timeout: Option<Span>,
}

/// What it would do.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Named {
    pub name: String,
    #[serde(default)]
    pub arguments: JsonMap,
}

/// What it could do instead.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Alternative {
    pub id: String,
    pub description: String,
    pub tradeoffs: Option<String>,
}

fn yes() -> bool {
    true
}

fn markdown() -> DraftType {
    DraftType::Markdown
}

/// What a call asks; or what is wrong with its arguments beyond their schema.
pub(super) fn read(builtin: Builtin, arguments: &JsonMap) -> Result<Ask, String> {
    let arguments = Value::Object(arguments.clone());
    let ask = match builtin {
        Builtin::AskHuman => serde_json::from_value(arguments).map(Ask::Clarification),
        Builtin::RequestEdit => serde_json::from_value(arguments).map(Ask::Edit),
        Builtin::RequestApproval => serde_json::from_value(arguments).map(Ask::Approval),
        _ => return Err("it asks nobody".to_owned()),
    };
    let ask = ask.map_err(|error| error.to_string())?;
    match &ask {
        Ask::Clarification(Clarification { options, allow_free_text, .. }) => {
            if options.is_empty() && !allow_free_text {
                return Err(
                    "without options, free text is the only answer: `allow_free_text` cannot be false".to_owned()
                );
            }
            unique("option", options.iter().map(|option| option.id.as_str()))?;
        }
        Ask::Edit(Draft { content, content_type: DraftType::Json, .. }) => {
            serde_json::from_str::<Value>(content).map_err(|error| format!("`content` is no JSON: {error}"))?;
        }
        Ask::Edit(_) => {}
        Ask::Approval(proposal) => {
            let own = [APPROVE, REJECT];
            unique("alternative", proposal.alternatives.iter().map(|one| one.id.as_str()).chain(own))?;
        }
    }
    Ok(ask)
}

/// Whether several people can decide what is asked by votes; where not, what would have to be different.
pub(super) fn votable(ask: &Ask, policy: &Policy) -> Result<(), String> {
    let in_words = matches!(ask, Ask::Clarification(Clarification { allow_free_text: true, .. }));
    if in_words && !policy.is_first() {
        return Err(
            "several answers in words cannot become one by votes: give `options`, and `allow_free_text: false`"
                .to_owned(),
        );
    }
    Ok(())
}

/// The option with which people approve what an agent would do.
pub(super) const APPROVE: &str = "approve";
/// The option with which they do not.
pub(super) const REJECT: &str = "reject";

fn unique<'a>(what: &str, ids: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut known = Vec::new();
    for id in ids {
        if id.trim().is_empty() {
            return Err(format!("an {what} has no id"));
        }
        if known.contains(&id) {
            return Err(format!("there are two of the {what} `{id}`, or the name is taken"));
        }
        known.push(id);
    }
    Ok(())
}

/// JSON Schema of the arguments of a builtin that asks.
pub(super) fn parameters(builtin: Builtin) -> Option<Value> {
    let text = json!({ "type": "string", "minLength": 1 });
    let texts = json!({ "type": "array", "items": text, "maxItems": 20 });
    let timeout = json!({ "type": "string", "description": "How long to wait, such as 30m or 2h; default: no limit" });
    let (required, mut properties) = match builtin {
        Builtin::AskHuman => (
            json!(["question"]),
            json!({
                "question": { "type": "string", "minLength": 1, "description": "What you need to know" },
                "context": { "type": "string", "description": "What the person should know to answer" },
                "type": { "enum": ["ambiguity", "missing_info", "preference", "verification", "guidance"] },
                "options": {
                    "type": "array", "minItems": OPTIONS.start(), "maxItems": OPTIONS.end(),
                    "description": "Answers to choose from",
                    "items": {
                        "type": "object", "required": ["id", "label"], "additionalProperties": false,
                        "properties": { "id": text, "label": text, "description": text },
                    },
                },
                "allow_free_text": { "type": "boolean", "description": "Whether words of their own are an answer; default: true" },
            }),
        ),
        Builtin::RequestEdit => (
            json!(["content", "purpose"]),
            json!({
                "content": { "type": "string", "minLength": 1, "description": "The draft" },
                "content_type": { "enum": ["text", "markdown", "code", "json", "html"] },
                "purpose": { "type": "string", "minLength": 1, "description": "What it is for" },
                "focus": { "type": "array", "items": text, "maxItems": 20, "description": "What to look at" },
                "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
            }),
        ),
        Builtin::RequestApproval => (
            json!(["description", "action"]),
            json!({
                "description": { "type": "string", "minLength": 1, "description": "What you are about to do, and why" },
                "action": {
                    "type": "object", "required": ["name"], "additionalProperties": false,
                    "properties": { "name": text, "arguments": { "type": "object" } },
                },
                "severity": { "enum": ["low", "medium", "high", "critical"] },
                "category": text,
                "reversible": { "type": "boolean" },
                "consequences": texts,
                "estimated_cost": {
                    "type": "object", "required": ["amount", "currency"],
                    "properties": { "amount": { "type": "number" }, "currency": text },
                },
                "alternatives": {
                    "type": "array", "maxItems": MAX_ALTERNATIVES,
                    "items": {
                        "type": "object", "required": ["id", "description"], "additionalProperties": false,
                        "properties": { "id": text, "description": text, "tradeoffs": text },
                    },
                },
            }),
        ),
        _ => return None,
    };
    properties["timeout"] = timeout;
    Some(json!({
        "type": "object", "required": required, "properties": properties, "additionalProperties": false,
    }))
}
