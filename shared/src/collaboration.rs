//! Claims, comments and delegations of reviews, and the advice of handlers that were asked before people.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::JsonMap;
use crate::decision::{ProgramAnswer, Via};
use crate::id::{TokenId, Username};
use crate::time::Timestamp;

/// The claim of a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Claim {
    /// The reviewer who claimed it. Until the claim expires, others cannot claim the review, but may decide it.
    pub by: Username,
    /// The token with which a program claimed it in the reviewer's name; `None` if they claimed it themselves, and in
    /// records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
    /// The time at which the claim expires.
    pub until: Timestamp,
}

/// The delegation of a review to another person, who decides it from then on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Delegation {
    /// The person who delegates it.
    pub from: Username,
    /// The person who decides from now on.
    pub to: Username,
    /// The owner of the vote, if it had been delegated to `from` before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<Username>,
    /// The token with which a program delegated it in the name of `from`; `None` if they did it themselves, and in
    /// records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
    /// The time, on the server's clock.
    pub at: Timestamp,
}

impl Delegation {
    /// Returns the owner of the vote, who had it before anyone delegated it.
    pub fn owner(&self) -> &Username {
        self.on_behalf_of.as_ref().unwrap_or(&self.from)
    }
}

/// A comment on a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comment {
    /// The author, who could decide the review when they wrote it.
    pub by: Username,
    /// The time, on the server's clock.
    pub at: Timestamp,
    /// The token with which a program wrote it in the author's name; `None` if they wrote it themselves, and in records
    /// of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
    /// The comment: plain text, shown as it was typed.
    pub text: String,
}

/// The advice of a handler that passed the review on, or that decided it.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// The handler: the `provider/model` of a judge, the host of a webhook's URL, or the name of a function.
    pub by: String,
    /// The kind of handler.
    pub via: Via,
    /// The time, on the server's clock.
    pub at: Timestamp,
    /// The verdict; none if it could not judge.
    pub verdict: Option<Judgement>,
    /// The reason in its own words, or why it could not judge. It was written by a model or an external program, so it
    /// may be hostile.
    pub reason: String,
    /// The changes that it would make, if any.
    pub changes: Option<Changes>,
    /// The answer of a program as it was sent; none if it could not judge.
    pub answer: Option<Box<ProgramAnswer>>,
}

/// A handler that answers later, while people may already decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AskedHandler {
    /// The handler, as in [`Advice::by`].
    pub by: String,
    /// The kind of handler.
    pub via: Via,
    /// The time until which it may answer; then the next handler is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Whether reactions to its message decide.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reactions: bool,
}

impl AskedHandler {
    /// Creates a handler that may answer until this time.
    pub fn program(by: String, via: Via, until: Timestamp) -> Self {
        Self { by, via, until: Some(until), reactions: false }
    }
}

/// The changes that a handler would make before the action takes effect.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Changes {
    /// All arguments, by the id of the action.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[serde(serialize_with = "crate::user_data::members")]
    pub arguments: BTreeMap<String, JsonMap>,
    /// Values of editable items, by key.
    #[serde(skip_serializing_if = "JsonMap::is_empty")]
    #[serde(serialize_with = "crate::user_data::members")]
    pub edits: JsonMap,
    /// Additional instructions for the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// How much of a changed value a sentence quotes, in characters; the audit log has all of it.
const SHORT: usize = 200;

/// Formats it for people: `With changes: c1-1 = {"amount":5}; the agent is told: Mind this.`
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

/// Formats it for people: `demo/judge would approve, but is 55% sure and decides from 70%: It is long.`
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

/// The verdict of a judge, and its confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Judgement {
    /// Whether it would accept.
    pub approved: bool,
    /// The confidence, from 0 to 1.
    pub confidence: f64,
    /// The lowest confidence with which it decides.
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
