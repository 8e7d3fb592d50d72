//! The consequences of an answer to an agent's question: the result of its call, or the end of its step.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use shared::JsonMap;
use shared::definition::OnTimeout;
use shared::error::FlowCode;
use shared::id::Username;

use super::AskingCall;
use super::words::{ABORT, CONTENT, CONTINUE, DELEGATE, MODIFY, RESUME, TAKE_OVER};
use crate::engine::ask::guardrails::check::PutIn;
use crate::engine::ask_builtin::{APPROVE, Ask, REJECT};
use crate::engine::builder::Builder;
use crate::engine::next::{Reply, Takeover};
use crate::engine::question::Subject;

/// The key under which the changes to a draft are summarised.
const SUMMARY: &str = "summary";

impl Builder<'_> {
    /// Returns the reply to a call that asked, from the answer of people.
    pub(in crate::engine::ask) fn reply(
        &self,
        subject: &Subject,
        option: Option<&str>,
        comment: Option<&str>,
        put_in: &PutIn,
        metadata: &JsonMap,
        by: &[Username],
    ) -> Reply {
        let Some(AskingCall { ask, agent, .. }) = self.ask_of(subject) else { return gone() };
        let comment = comment.map(str::trim).filter(|comment| !comment.is_empty());
        let field = |name: &str| put_in.fields.get(name).cloned();
        let mut result = match &ask {
            Ask::Clarification(_) => {
                let text = put_in.text.as_deref().or(comment.filter(|_| option.is_some()));
                let chosen = field("options");
                json!({ "option": option.filter(|_| chosen.is_none()), "options": chosen, "text": text })
            }
            Ask::Edit(draft) => {
                let content = put_in.edits.get(CONTENT).and_then(Value::as_str).unwrap_or(&draft.content);
                edited(&draft.content, content, comment, metadata.get(SUMMARY).and_then(Value::as_str))
            }
            Ask::Approval(_) => match option {
                Some(REJECT) | None => json!({ "approved": false, "reason": comment }),
                Some(APPROVE) => json!({ "approved": true, "instructions": comment }),
                // What was asked for is not approved: whoever only reads `approved` must not do it.
                Some(alternative) => {
                    json!({ "approved": false, "alternative": alternative, "instructions": comment })
                }
            },
            // They have a decision each instead: see `rule_asked`.
            Ask::Calls(_) => json!({ "decisions": [] }),
            Ask::Checkpoint(_) => {
                let decision = option.filter(|option| *option != RESUME).unwrap_or(CONTINUE);
                let changes = (decision == MODIFY).then_some(&put_in.fields);
                let reason = field("reason");
                json!({ "decision": decision, "modifications": changes, "reason": reason, "instructions": comment })
            }
            Ask::Escalation(_) => {
                let mut said = put_in.fields.clone();
                said.insert("decision".to_owned(), json!(option));
                said.extend(comment.map(|comment| ("comment".to_owned(), comment.into())));
                Value::Object(said)
            }
            Ask::Handoff(_) => json!({ "taken": true, "comment": comment }),
        };
        without_nulls(&mut result);
        self.sign(&mut result, by);
        let takeover = match &ask {
            Ask::Escalation(_) | Ask::Checkpoint(_) => takeover(option, &put_in.fields, by, agent.is_some()),
            _ => None,
        };
        takeover.map_or(Reply::Returns(result.clone()), |then| Reply::TakesOver { result, then })
    }

    /// Adds to an answer who gave it, and when.
    pub(super) fn sign(&self, result: &mut Value, by: &[Username]) {
        result["by"] = json!(by.iter().map(Username::as_str).collect::<Vec<_>>().join(", "));
        result["at"] = json!(self.now);
    }

    /// Returns the reply to a call that asked, if nobody has answered in time.
    pub(in crate::engine::ask) fn reply_in_time(&self, subject: &Subject, on_timeout: &OnTimeout) -> Reply {
        let late = || Reply::Fails(FlowCode::FlowHumanTimeout, "nobody answered in time".to_owned());
        let Some(AskingCall { ask, .. }) = self.ask_of(subject) else { return gone() };
        match (ask, on_timeout) {
            (Ask::Edit(draft), OnTimeout::Follow | OnTimeout::Approve) => {
                Reply::Returns(edited(&draft.content, &draft.content, Some("nobody reviewed it in time"), None))
            }
            (Ask::Approval(_), OnTimeout::Approve) => Reply::Returns(json!({ "approved": true })),
            (Ask::Approval(_), OnTimeout::Reject) => {
                Reply::Returns(json!({ "approved": false, "reason": "nobody decided in time" }))
            }
            (Ask::Checkpoint(_), OnTimeout::Follow | OnTimeout::Approve) => {
                Reply::Returns(json!({ "decision": CONTINUE }))
            }
            (Ask::Checkpoint(_) | Ask::Escalation(_), OnTimeout::Reject) => {
                let reason = "nobody decided in time".to_owned();
                let result = json!({ "decision": ABORT, "reason": reason });
                Reply::TakesOver { result, then: Takeover::Stops { reason } }
            }
            _ => late(),
        }
    }
}

/// Returns what becomes of the step of whoever asked; `None` if it continues. Only an agent's step can be taken over:
/// otherwise, the answer is the result of the call.
fn takeover(option: Option<&str>, fields: &JsonMap, by: &[Username], by_agent: bool) -> Option<Takeover> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    match option? {
        ABORT => Some(Takeover::Stops { reason: text("reason").unwrap_or_else(|| "aborted".to_owned()) }),
        _ if !by_agent => None,
        TAKE_OVER => Some(match fields.get("answer") {
            Some(Value::String(answer)) => Takeover::Answers { answer: answer.clone() },
            Some(answer) => Takeover::Answers { answer: answer.to_string() },
            None => Takeover::Writes { by: by.to_vec() },
        }),
        DELEGATE => Some(Takeover::GivesTo {
            agent: text("agent").unwrap_or_default(),
            instructions: text("instructions").unwrap_or_default(),
        }),
        _ => None,
    }
}

/// Returns the reply to a call whose review was withdrawn.
pub(in crate::engine::ask) fn withdrawn(reason: &str) -> Reply {
    Reply::Fails(FlowCode::FlowHumanRejected, reason.to_owned())
}

fn gone() -> Reply {
    Reply::Fails(FlowCode::FlowInvalid, "the flow has no such tool any more".to_owned())
}

/// Returns the result of editing a draft. The decision's metadata may say what was changed.
fn edited(before: &str, after: &str, feedback: Option<&str>, said: Option<&str>) -> Value {
    let changed = before != after;
    let mut reply = json!({ "content": after, "changed": changed, "feedback": feedback });
    if changed {
        let said = said.filter(|said| !said.trim().is_empty());
        reply[SUMMARY] = said.map_or_else(|| summary(before, after), str::to_owned).into();
    }
    without_nulls(&mut reply);
    reply
}

/// Counts the words that were added and removed, wherever they stand: an exact diff of long texts would hold up the
/// transition.
fn summary(before: &str, after: &str) -> String {
    let mut words: BTreeMap<&str, i64> = BTreeMap::new();
    after.split_whitespace().for_each(|word| *words.entry(word).or_default() += 1);
    before.split_whitespace().for_each(|word| *words.entry(word).or_default() -= 1);
    let sum = |sign: i64| words.values().map(|count| (count * sign).max(0)).sum::<i64>();
    let added = sum(1);
    format!("{added} {} added, {} removed", if added == 1 { "word" } else { "words" }, sum(-1))
}

pub(super) fn without_nulls(reply: &mut Value) {
    if let Value::Object(members) = reply {
        members.retain(|_, value| !value.is_null());
    }
}
