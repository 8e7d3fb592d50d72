//! What is done to a review beside deciding it: working on it, talking about it, handing it to somebody else; and what
//! was said of it before people were asked.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::JsonMap;
use crate::decision::{ProgramAnswer, Via};
use crate::id::Username;
use crate::time::Timestamp;

/// Who works on a review, and until when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Claim {
    /// The reviewer who claimed it. Until the lease runs out others cannot claim the review, but may decide it.
    pub by: Username,
    /// When the lease runs out.
    pub until: Timestamp,
}

/// Somebody handed a review to somebody else, who decides it from then on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Delegation {
    /// The person who hands it over.
    pub from: Username,
    /// The person who decides from now on.
    pub to: Username,
    /// Whose vote it is, where it had been handed to `from` before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<Username>,
    /// The time, on the server's clock.
    pub at: Timestamp,
}

/// What somebody said beside a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comment {
    /// The author, who could decide the review when they wrote it.
    pub by: Username,
    /// The time, on the server's clock.
    pub at: Timestamp,
    /// The comment: plain text, shown as it was typed.
    pub text: String,
}

/// What a handler said that left the decision to those after it, or that decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// Who: of a judge its `provider/model`, of a webhook the host of its URL, of a function its name.
    pub by: String,
    /// What kind of handler.
    pub via: Via,
    /// The time, on the server's clock.
    pub at: Timestamp,
    /// What it would decide; none where it could not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Judgement>,
    /// Why, in its words; or why it could not say. A model or a program outside wrote it: hostile like every such text.
    pub reason: String,
    /// What it would change of what is asked; none where nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
    /// What a program answered, as it was sent; none where it could not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Box<ProgramAnswer>>,
}

/// A handler that is asked while people may decide already: it has said that it answers later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AskedHandler {
    /// Who, as in [`Advice::by`].
    pub by: String,
    /// What kind of handler.
    pub via: Via,
    /// Until when it is waited for; then the next is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Whether reactions to a message there decide.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reactions: bool,
}

impl AskedHandler {
    /// One that is waited for until then.
    pub fn program(by: String, via: Via, until: Timestamp) -> Self {
        Self { by, via, until: Some(until), reactions: false }
    }
}

/// What a handler would change of what is asked before it happens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Changes {
    /// Whole arguments, by the id of the action.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, JsonMap>,
    /// Values of editable items, by key.
    #[serde(skip_serializing_if = "JsonMap::is_empty")]
    pub edits: JsonMap,
    /// What the agent is told beside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// How much of a changed value is told in a sentence, in characters; all of it is in the record.
const SHORT: usize = 200;

/// As people read it: `With changes: c1-1 = {"amount":5}; the agent is told: Mind this.`
impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |name: &str, value: String| match value.char_indices().nth(SHORT) {
            Some((end, _)) => format!("{name} = {}…", &value[..end]),
            None => format!("{name} = {value}"),
        };
        let json = |value: &JsonMap| serde_json::to_string(value).unwrap_or_default();
        let arguments = self.arguments.iter().map(|(id, arguments)| value(id, json(arguments)));
        let edits = self.edits.iter().map(|(key, edit)| value(key, edit.to_string()));
        let told = self.instructions.iter().map(|text| format!("the agent is told: {text}"));
        write!(f, "With changes: {}", arguments.chain(edits).chain(told).collect::<Vec<_>>().join("; "))
    }
}

impl Changes {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// As people read it: `demo/judge would approve, but is 55% sure and decides from 70%: It is long.`
impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.judgement(f)?;
        match &self.changes {
            Some(changes) => write!(f, " {changes}"),
            None => Ok(()),
        }
    }
}

impl Advice {
    fn judgement(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { by, verdict, reason, .. } = self;
        if self.via != Via::Judge {
            return self.program_said(f);
        }
        let Some(Judgement { approved, confidence, threshold }) = *verdict else {
            return write!(f, "{by} could not judge: {reason}");
        };
        let (sure, from) = (confidence * 100.0, threshold * 100.0);
        if confidence < threshold {
            let would = if approved { "approve" } else { "reject" };
            return write!(f, "{by} would {would}, but is {sure:.0}% sure and decides from {from:.0}%: {reason}");
        }
        let did = if approved { "approved" } else { "rejected" };
        write!(f, "{by} {did}, {sure:.0}% sure: {reason}")
    }

    fn program_said(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let did = match self.answer.as_deref().map(|answer| answer.approved) {
            None => "did not decide",
            Some(None) => "decided",
            Some(Some(true)) => "approved",
            Some(Some(false)) => "rejected",
        };
        let colon = if self.reason.is_empty() { "" } else { ": " };
        write!(f, "{} {did}{colon}{}", self.by, self.reason)
    }
}

/// What a judge would decide, and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Judgement {
    /// Whether it accepts.
    pub approved: bool,
    /// How sure it is, from 0 to 1.
    pub confidence: f64,
    /// From which confidence on it decides.
    pub threshold: f64,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn people_read_what_a_judge_said_in_a_sentence() {
        let said = |verdict| {
            let advice = json!({ "by": "m/j", "via": "judge", "at": "2026-01-01T00:00:00Z", "verdict": verdict, "reason": "Hm." });
            serde_json::from_value::<Advice>(advice).expect("an advice").to_string()
        };
        let verdict =
            |approved, confidence| json!({ "approved": approved, "confidence": confidence, "threshold": 0.7 });
        assert_eq!(said(verdict(true, 0.7)), "m/j approved, 70% sure: Hm.");
        assert_eq!(said(verdict(false, 0.55)), "m/j would reject, but is 55% sure and decides from 70%: Hm.");
        let changes: Changes = serde_json::from_value(json!({
            "arguments": { "c1-1": { "amount": 5 } }, "edits": { "title": "x".repeat(300) }, "instructions": "Mind this.",
        }))
        .expect("changes");
        let title = format!("title = \"{}…", "x".repeat(199));
        let expected = format!("With changes: c1-1 = {{\"amount\":5}}; {title}; the agent is told: Mind this.");
        assert_eq!(changes.to_string(), expected);
        assert_eq!(said(json!(null)), "m/j could not judge: Hm.");
    }

    #[test]
    fn people_read_what_a_program_said_in_a_sentence() {
        let said = |answer, reason| {
            let advice = json!({ "by": "ok.test", "via": "webhook", "at": "2026-01-01T00:00:00Z", "reason": reason, "answer": answer });
            serde_json::from_value::<Advice>(advice).expect("an advice").to_string()
        };
        assert_eq!(said(json!({ "approved": true }), ""), "ok.test approved");
        assert_eq!(said(json!({ "approved": false }), "Too much."), "ok.test rejected: Too much.");
        assert_eq!(said(json!({ "verdict": { "type": "text", "text": "Go" } }), "Fine."), "ok.test decided: Fine.");
        assert_eq!(said(json!(null), "Webhook returned 503."), "ok.test did not decide: Webhook returned 503.");
    }
}
