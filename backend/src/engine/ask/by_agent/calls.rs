//! Calls that whoever asks makes itself, once people have decided each of them: what people see, and the answer. What
//! guardrails block is answered as rejected.

use std::collections::BTreeMap;

use indexmap::IndexSet;
use serde_json::{Value, json};
use shared::JsonMap;
use shared::decision::ActionDecision;
use shared::definition::{ActionKind, OnTimeout};
use shared::error::FlowCode;
use shared::id::Username;
use shared::review::{Action, ActionType, Review, ReviewKind, Warning};

use super::reply::without_nulls;
use crate::engine::ask::content::{Content, schema_of};
use crate::engine::ask_builtin::{ProposedCall, ProposedCalls};
use crate::engine::builder::Builder;
use crate::engine::conversation::CallSite;
use crate::engine::next::{QuestionAnswer, Reply};
use crate::engine::question::Subject;
use crate::engine::ruling::{Findings, Ruling};
use crate::flow::guardrail::{Finding, action};

/// Presents calls: each is approved, edited, answered or rejected.
pub(super) fn content(agent: Option<&str>, who: &str, asked: ProposedCalls) -> Content {
    let ProposedCalls { description, actions, stakes, timeout } = asked;
    let numbered = actions.into_iter().zip(1..);
    let actions: Vec<_> = numbered.map(|(call, number)| to_decide(agent, call, number)).collect();
    let names: IndexSet<_> = actions.iter().map(|action| format!("`{}`", action.name)).collect();
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    let subject = description.unwrap_or_default();
    let request = format!("{who} asks before calling {names}.");
    Content {
        kind: ReviewKind::ToolCalls,
        prompt: if subject.trim().is_empty() { request } else { format!("{request}\n\n{subject}") },
        title: subject,
        stakes,
        free_text: true,
        actions,
        timeout,
        on_timeout: Some(OnTimeout::Reject),
        ..Content::default()
    }
}

/// Returns a call as people decide it. Edited arguments keep the types of those that were asked about.
fn to_decide(agent: Option<&str>, call: ProposedCall, number: usize) -> Action {
    let ProposedCall { name, arguments, description, allowed_decisions } = call;
    let is_allowed = |kind: &ActionKind| {
        *kind == ActionKind::Reject || allowed_decisions.as_ref().is_none_or(|allowed| allowed.contains(kind))
    };
    let properties: JsonMap = arguments.iter().map(|(key, value)| (key.clone(), schema_of(value))).collect();
    Action {
        id: format!("call-{number}"),
        action_type: ActionType::Tool,
        name,
        agent: agent.map(str::to_owned),
        arguments,
        request: None,
        description,
        schema: Some(json!({ "type": "object", "properties": properties })),
        stakes: None,
        allowed_decisions: ActionKind::ALL.iter().copied().filter(is_allowed).collect(),
        redacted: false,
    }
}

/// Tells a call apart from all others that the step asks about.
fn about(subject: &Subject, call: &Action) -> String {
    format!("{}.{}", subject.calls().concat(), call.id)
}

impl Builder<'_> {
    /// Returns the answer to a question about calls: the decision on each, in the order in which they were asked about.
    pub(in crate::engine::ask) fn rule_asked(
        &self,
        review: &Review,
        subject: &Subject,
        decisions: &BTreeMap<String, ActionDecision>,
        instructions: Option<&str>,
    ) -> QuestionAnswer {
        let (mut ruled, mut findings) = (Vec::new(), Findings::default());
        for action in &review.actions {
            let Some(decision) = decisions.get(&action.id) else { continue };
            let (answer, found) = self.rule_asked_call(subject, action, decision);
            ruled.push(answer);
            findings.0.extend(Findings::of(&action.id, found).0);
        }
        let mut result = json!({ "decisions": ruled, "instructions": instructions });
        without_nulls(&mut result);
        QuestionAnswer::Reply(Reply::Returns(result), findings)
    }

    /// Adds to an answer about calls who gave it and when, and their comment if there are no instructions.
    pub(in crate::engine::ask) fn signed(
        &self,
        answer: QuestionAnswer,
        comment: Option<&str>,
        by: &[Username],
    ) -> QuestionAnswer {
        match answer {
            QuestionAnswer::Reply(Reply::Returns(mut result), findings) => {
                let comment = comment.map(str::trim).filter(|comment| !comment.is_empty());
                if let (Some(comment), None) = (comment, result.get("instructions")) {
                    result["instructions"] = comment.into();
                }
                self.sign(&mut result, by);
                QuestionAnswer::Reply(Reply::Returns(result), findings)
            }
            other => other,
        }
    }

    fn rule_asked_call(&self, subject: &Subject, call: &Action, decision: &ActionDecision) -> (Value, Vec<Finding>) {
        let (id, about) = (&call.id, about(subject, call));
        let rejected = |message: Option<&str>| {
            let mut answer = json!({ "id": id, "type": ActionKind::Reject, "message": message });
            without_nulls(&mut answer);
            answer
        };
        let blocked = |why: String| rejected(Some(&format!("{}: {why}", FlowCode::GuardrailBlocked.as_str())));
        let runs = |kind: ActionKind, arguments: &JsonMap| {
            let (passed, findings) = self.check_proposed(subject, &about, &call.name, arguments.clone());
            let answer = passed.map_or_else(
                |block| blocked(block.into_words()),
                |arguments| json!({ "id": id, "type": kind, "arguments": arguments }),
            );
            (answer, findings)
        };
        match decision {
            ActionDecision::Approve { .. } => runs(ActionKind::Approve, &call.arguments),
            ActionDecision::Edit { arguments } => runs(ActionKind::Edit, arguments),
            ActionDecision::Respond { message } => {
                let said = |text: Value| json!({ "id": id, "type": ActionKind::Respond, "message": text });
                let Some(CallSite { step, agent, .. }) = self.guarded(subject) else {
                    return (said(message.as_str().into()), Vec::new());
                };
                let what = action(ActionType::Tool.into(), &call.name, agent.map(|agent| agent.name));
                let about = format!("{}.{about}", step.id);
                let (ruling, findings) = self.rule_response::<()>(&about, &step.node, true, &what, message);
                let answer = match ruling {
                    Ruling::Answered(text) => said(text),
                    Ruling::Refused(_, why) => blocked(why),
                    Ruling::Proceeds(()) => rejected(None),
                };
                (answer, findings)
            }
            // No alternatives are offered.
            ActionDecision::Reject { message } | ActionDecision::Choose { message, .. } => {
                (rejected(message.as_deref()), Vec::new())
            }
        }
    }

    /// Returns what guardrails would find in calls if they were approved as they are.
    pub(super) fn warnings_about_calls(&self, subject: &Subject, calls: &[Action]) -> Vec<Warning> {
        let of = |call: &Action| {
            let about = about(subject, call);
            let (_, findings) = self.check_proposed(subject, &about, &call.name, call.arguments.clone());
            Findings::of(&call.id, findings).warnings()
        };
        calls.iter().flat_map(of).collect()
    }
}
