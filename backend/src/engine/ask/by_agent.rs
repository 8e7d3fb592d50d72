//! What an agent asks people by itself: what they are shown, and what their answer is as the result of its call.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use shared::definition::{ChoiceKind, ContentType, OnTimeout, Severity, Stakes, ToolKind};
use shared::error::FlowCode;
use shared::id::Username;
use shared::review::{Item, ReviewKind, ReviewOption};
use shared::run::Step;

use super::content::{Content, Rules};
use super::guardrail::PutIn;
use super::title;
use crate::engine::asks::{APPROVE, Alternative, Ask, Clarification, Draft, Proposal, REJECT, read};
use crate::engine::builder::Builder;
use crate::engine::question::Subject;

/// The one option of a draft.
const DONE: &str = "done";
/// The key of a draft among the items of its review.
const CONTENT: &str = "content";
/// An agent that is less sure than this of a draft has it looked at more urgently.
const UNSURE: f64 = 0.5;

/// What a call of an agent returns that asked: its result, or why there is none.
pub(in crate::engine) type Reply = Result<Value, (FlowCode, String)>;

impl Builder<'_> {
    /// What a call asks, and whose it is.
    fn asked_by(&self, subject: &Subject) -> Option<(Ask, Option<&str>, &shared::definition::Tool)> {
        let (agent, mut calls) = self.state.calls_of(subject);
        let call = calls.next()?;
        let tool = self.flow.of(&self.state.step_of(subject)?.node).flow.tools.get(&call.tool)?;
        let ToolKind::Builtin(builtin) = tool.kind else { return None };
        Some((read(builtin, &call.arguments).ok()?, agent, tool))
    }

    /// What people are asked.
    pub(super) fn content_of_ask(&self, step: &Step, subject: &Subject) -> Option<Content> {
        let (ask, agent, tool) = self.asked_by(subject)?;
        let who = match (agent, self.state.shown_id()) {
            (Some(agent), _) => format!("Agent `{agent}`"),
            (None, Some(_)) => format!("Step `{}`", step.node.place()),
            (None, None) => format!("`{}`", self.state.requested_by),
        };
        let shown = shown(&who, ask);
        let stakes = Stakes { severity: tool.severity.unwrap_or(shown.stakes.severity), ..shown.stakes };
        let default = self.flow.of(&step.node).flow.defaults.timeout;
        Some(Content {
            kind: shown.kind,
            title: title::of_prompt(&shown.subject, None),
            prompt: shown.prompt,
            stakes,
            reviewers: tool.reviewers.clone(),
            timeout: shown.timeout.or(tool.timeout).or(default),
            on_timeout: Some(tool.on_timeout.clone().unwrap_or(shown.on_timeout)),
            items: shown.items,
            options: shown.options,
            free_text: shown.free_text,
            source: None,
            actions: Vec::new(),
            rules: Rules { policy: tool.policy.clone(), ..Rules::default() },
            warnings: Vec::new(),
        })
    }

    /// What people have answered.
    pub(super) fn reply(
        &self,
        subject: &Subject,
        option: Option<&str>,
        comment: Option<&str>,
        put_in: &PutIn,
        by: &[Username],
    ) -> Reply {
        let (ask, ..) = self.asked_by(subject).ok_or_else(gone)?;
        let comment = comment.map(str::trim).filter(|comment| !comment.is_empty());
        let mut reply = match ask {
            Ask::Clarification(_) => {
                let text = put_in.text.as_deref();
                let text = text.or(comment.filter(|_| option.is_some()));
                json!({ "option": option, "text": text })
            }
            Ask::Edit(draft) => {
                let content = put_in.edits.get(CONTENT).and_then(Value::as_str).unwrap_or(&draft.content);
                edited(&draft.content, content, comment)
            }
            Ask::Approval(_) => match option {
                Some(REJECT) | None => json!({ "approved": false, "reason": comment }),
                Some(APPROVE) => json!({ "approved": true, "instructions": comment }),
                Some(alternative) => {
                    json!({ "approved": true, "alternative": alternative, "instructions": comment })
                }
            },
        };
        without_nulls(&mut reply);
        reply["by"] = json!(by.iter().map(Username::as_str).collect::<Vec<_>>().join(", "));
        reply["at"] = json!(self.now);
        Ok(reply)
    }

    /// Nobody has answered in time.
    pub(super) fn reply_in_time(&self, subject: &Subject, on_timeout: &OnTimeout) -> Reply {
        let late = || (FlowCode::FlowHumanTimeout, "nobody answered in time".to_owned());
        let (ask, ..) = self.asked_by(subject).ok_or_else(gone)?;
        match (ask, on_timeout) {
            (Ask::Edit(draft), OnTimeout::Follow | OnTimeout::Approve) => {
                Ok(edited(&draft.content, &draft.content, Some("nobody reviewed it in time")))
            }
            (Ask::Approval(_), OnTimeout::Approve) => Ok(json!({ "approved": true })),
            (Ask::Approval(_), OnTimeout::Reject) => {
                Ok(json!({ "approved": false, "reason": "nobody decided in time" }))
            }
            _ => Err(late()),
        }
    }
}

/// That nobody will answer.
pub(super) fn withdrawn(reason: &str) -> Reply {
    Err((FlowCode::FlowHumanRejected, reason.to_owned()))
}

fn gone() -> (FlowCode, String) {
    (FlowCode::FlowInvalid, "the flow has no such tool any more".to_owned())
}

/// What people see of a question.
struct Shown {
    kind: ReviewKind,
    /// What its headline is made of.
    subject: String,
    prompt: String,
    stakes: Stakes,
    items: Vec<Item>,
    options: Vec<ReviewOption>,
    free_text: bool,
    timeout: Option<shared::time::Span>,
    on_timeout: OnTimeout,
}

fn shown(who: &str, ask: Ask) -> Shown {
    match ask {
        Ask::Clarification(question) => clarification(question),
        Ask::Edit(draft) => edit(who, draft),
        Ask::Approval(proposal) => approval(who, *proposal),
    }
}

fn clarification(asked: Clarification) -> Shown {
    let Clarification { question, context, category, options, allow_free_text, timeout } = asked;
    let context = context.filter(|context| !context.trim().is_empty());
    Shown {
        kind: ReviewKind::Clarification,
        subject: question.clone(),
        prompt: question,
        stakes: Stakes { category, ..Stakes::default() },
        items: context.map(|text| item("context", "Context", ContentType::Markdown, text.into())).into_iter().collect(),
        options: options.into_iter().map(|one| option(one.id, one.label, one.description)).collect(),
        free_text: allow_free_text,
        timeout,
        on_timeout: OnTimeout::Error,
    }
}

fn edit(who: &str, draft: Draft) -> Shown {
    let Draft { content, content_type, purpose, focus, confidence, timeout } = draft;
    let sure = confidence.map(|sure| format!(" It is {:.0} % sure of it.", sure * 100.0)).unwrap_or_default();
    let focus: Vec<_> = focus.iter().map(|point| format!("- {point}")).collect();
    let focus = if focus.is_empty() { String::new() } else { format!("\n\nPlease look at:\n\n{}", focus.join("\n")) };
    let schema = json!({ "type": "string", "minLength": 1 });
    let draft = item(CONTENT, "Draft", content_type.into(), content.into());
    Shown {
        kind: ReviewKind::Edit,
        subject: purpose.clone(),
        prompt: format!("{who} asks you to edit a draft: {}.{sure}{focus}", purpose.trim_end_matches('.')),
        stakes: Stakes {
            severity: if confidence.is_some_and(|sure| sure < UNSURE) { Severity::High } else { Severity::default() },
            ..Stakes::default()
        },
        items: vec![Item { editable: true, schema: Some(schema), ..draft }],
        options: vec![option(DONE.to_owned(), "Use this text".to_owned(), None)],
        free_text: false,
        timeout,
        on_timeout: OnTimeout::Follow,
    }
}

fn approval(who: &str, proposal: Proposal) -> Shown {
    let Proposal { description, action, severity, category, reversible, consequences, estimated_cost, .. } = proposal;
    let alternative = |one: &Alternative| {
        let more = one.tradeoffs.as_ref().map_or_else(String::new, |tradeoffs| format!(" ({tradeoffs})"));
        format!("{}{more}", one.description)
    };
    let stakes = Stakes {
        severity,
        category,
        reversible,
        consequences,
        estimated_cost,
        alternatives: proposal.alternatives.iter().map(alternative).collect(),
    };
    let reject = ReviewOption { kind: ChoiceKind::Stop, ..option(REJECT.to_owned(), "Reject".to_owned(), None) };
    let instead = proposal.alternatives.into_iter().map(|one| option(one.id, one.description, one.tradeoffs));
    let arguments = Value::Object(action.arguments);
    Shown {
        kind: ReviewKind::Approval,
        subject: description.clone(),
        prompt: format!("{who} asks for leave to `{}`: {description}", action.name),
        stakes,
        items: vec![item("arguments", &action.name, ContentType::Json, arguments)],
        options: std::iter::once(option(APPROVE.to_owned(), "Approve".to_owned(), None))
            .chain(instead)
            .chain([reject])
            .collect(),
        free_text: false,
        timeout: proposal.timeout,
        on_timeout: OnTimeout::Reject,
    }
}

fn item(key: &str, label: &str, content_type: ContentType, value: Value) -> Item {
    let (key, label) = (key.to_owned(), Some(label.to_owned()));
    Item { key, label, content_type, value, editable: false, schema: None }
}

fn option(id: String, label: String, description: Option<String>) -> ReviewOption {
    ReviewOption { id, kind: ChoiceKind::Accept, label, message: None, description, fields: None }
}

/// What became of a draft.
fn edited(before: &str, after: &str, feedback: Option<&str>) -> Value {
    let changed = before != after;
    let mut reply = json!({ "content": after, "changed": changed, "feedback": feedback });
    if changed {
        reply["summary"] = summary(before, after).into();
    }
    without_nulls(&mut reply);
    reply
}

/// How many words came and went, wherever they stand: exact differences of long texts would hold up the transition.
fn summary(before: &str, after: &str) -> String {
    let mut words: BTreeMap<&str, i64> = BTreeMap::new();
    after.split_whitespace().for_each(|word| *words.entry(word).or_default() += 1);
    before.split_whitespace().for_each(|word| *words.entry(word).or_default() -= 1);
    let sum = |sign: i64| words.values().map(|count| (count * sign).max(0)).sum::<i64>();
    format!("{} words added, {} removed", sum(1), sum(-1))
}

fn without_nulls(reply: &mut Value) {
    if let Value::Object(members) = reply {
        members.retain(|_, value| !value.is_null());
    }
}
