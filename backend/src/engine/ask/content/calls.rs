//! Questions about calls: those that gates hold back, and one that was lost in flight.

use std::borrow::Cow;
use std::collections::BTreeMap;

use indexmap::IndexSet;
use serde_json::{Value, json};
use shared::decision::ActionDecision;
use shared::definition::{ActionKind, Cost, Gate, Severity, Stakes, Team, TeamStrategy};
use shared::error::FlowError;
use shared::review::{Action, ActionType, ReviewKind};
use shared::run::Step;

use super::Content;
use super::title;
use crate::engine::builder::Builder;
use crate::engine::conversation::{CallSite, Message, ToolCall};
use crate::engine::invoke::parameters;
use crate::engine::phase::Phase;
use crate::engine::question::Subject;

impl<'f> Builder<'f> {
    /// Builds the content of a review about calls that gates hold back.
    pub(in crate::engine::ask) fn content_of_calls(
        &self,
        step: &Step,
        subject: &Subject,
    ) -> Result<Content, FlowError> {
        let (agent, calls) = self.state.calls_of(subject);
        let (at, flow) = (CallSite::new(step, agent), self.flow.of(&step.node));
        let group: Vec<(&ToolCall, &'f Gate)> =
            calls.map(|call| (call, self.tool_gate(at, call).unwrap_or(flow.plain_gate()))).collect();
        let for_whom = subject.branch().and_then(|branch| self.state.parent_of(branch));
        let for_whom = for_whom.and_then(|parent| self.state.phase(parent)?.conversation());
        let for_whom = for_whom.map(|conversation| conversation.agent.as_str());
        self.content_of_group(at, for_whom, self.said_beside(subject), &group)
    }

    /// Returns the text that the agent wrote beside its calls.
    fn said_beside(&self, subject: &Subject) -> &str {
        let conversation = self.state.phase_of(subject).and_then(Phase::conversation);
        match conversation.and_then(|conversation| conversation.messages.last()) {
            Some(Message::Assistant { text, .. }) => text,
            _ => "",
        }
    }

    fn content_of_group(
        &self,
        at: CallSite<'_>,
        for_whom: Option<&str>,
        said: &str,
        group: &[(&ToolCall, &'f Gate)],
    ) -> Result<Content, FlowError> {
        let (step, agent) = (at.step, at.agent.map(|agent| agent.name));
        let gates: Vec<&'f Gate> = group.iter().map(|(_, gate)| *gate).collect();
        let of = |(call, gate): &(&ToolCall, &'f Gate)| self.stakes_of(step, gate.stakes(), at.seen(call));
        let stakes: Vec<Stakes> = group.iter().map(of).collect::<Result<_, _>>()?;
        let several = group.len() > 1;
        let action = |((call, gate), stakes): (&(&ToolCall, &'f Gate), &Stakes)| Action {
            stakes: several.then(|| Box::new(stakes.clone())),
            ..self.action(step, call, agent, gate.allowed_decisions())
        };
        let actions: Vec<_> = group.iter().zip(&stakes).map(action).collect();
        let grantable = |(call, gate): &&(&ToolCall, &'f Gate)| self.ungrantable(at, call, Some(gate)).is_none();
        let grantable = group.iter().filter(grantable).map(|(call, _)| call.id.clone()).collect();
        let (timeout, on_timeout) = self.time_at_gates(step, &gates);
        let (kind, own_title, wanted) = match actions.as_slice() {
            [Action { action_type: ActionType::Emergent, name, .. }] => {
                let title = format!("Create the specialist {name}");
                (ReviewKind::Emergent, Some(title), Some(format!("create the specialist `{name}`")))
            }
            [Action { action_type: ActionType::StrategyOverride, name, .. }] => {
                let title = format!("Change the strategy to {name}");
                (ReviewKind::StrategyOverride, Some(title), Some(format!("change the strategy of its team to {name}")))
            }
            _ => (ReviewKind::ToolCalls, None, None),
        };
        let tools: IndexSet<_> = actions.iter().map(|action| format!("`{}`", action.name)).collect();
        let tools = tools.into_iter().collect::<Vec<_>>().join(", ");
        let request = match agent {
            Some(agent) => {
                let wanted = wanted.unwrap_or_else(|| format!("call {tools}"));
                let whom = for_whom.map(|whom| format!(", for agent `{whom}`")).unwrap_or_default();
                format!("Agent `{agent}` wants to {wanted}{whom}.")
            }
            None => format!("Step `{}` wants to call {tools}.", step.node.place()),
        };
        let given = match group {
            [(call, gate)] => self.given_title(step, gate, at.seen(call)),
            _ => None,
        };
        let title = || {
            let title = own_title.unwrap_or_else(|| title::of_calls(&actions));
            for_whom.map(|whom| format!("{title} (for {whom})")).unwrap_or(title)
        };
        Ok(Content {
            kind,
            title: given.unwrap_or_else(title),
            prompt: with_reason(request, said),
            stakes: stakes.into_iter().reduce(merge).unwrap_or_default(),
            reviewers: gates.first().map(|gate| self.reviewers_at(&step.node, &gate.reviewers)).unwrap_or_default(),
            timeout,
            on_timeout,
            free_text: true,
            actions,
            grantable,
            warnings: self.warnings(at, group.iter().map(|(call, _)| *call)),
            ..Content::default()
        })
    }

    /// Builds the content of a review that asks what became of a lost call. It has no time limit: only a person can
    /// know. `why` is `None` if the worker of the call was lost.
    pub(in crate::engine::ask) fn content_of_lost(
        &self,
        step: &Step,
        subject: &Subject,
        why: Option<&str>,
    ) -> Result<Option<Content>, FlowError> {
        let (agent, mut calls) = self.state.calls_of(subject);
        let Some(call) = calls.next() else { return Ok(None) };
        let at = CallSite::new(step, agent);
        let gate = self.tool_gate(at, call);
        let allowed = vec![ActionKind::Approve, ActionKind::Reject, ActionKind::Respond];
        let action = self.action(step, call, agent.map(|agent| agent.name), allowed);
        let stakes = gate.map(|gate| self.stakes_of(step, gate.stakes(), at.seen(call)));
        let mut stakes = stakes.transpose()?.unwrap_or_default();
        stakes.severity = stakes.severity.max(Severity::High);
        // No alternative can replace a call that may have happened.
        stakes.alternatives.clear();
        let what = match why {
            None => "This call was under way when its worker was lost".to_owned(),
            Some(why) => format!("This call was sent, and got no certain answer ({why})"),
        };
        let prompt = format!(
            "{what}; it is not known whether it took effect. Approve: it is run again, with the same idempotency key. \
             Reject: it counts as not done. Respond: enter its result."
        );
        Ok(Some(Content {
            kind: ReviewKind::ToolCalls,
            title: format!("{} (lost in flight)", title::of_calls(std::slice::from_ref(&action))),
            prompt,
            stakes,
            reviewers: self.reviewers_at(&step.node, &gate.map(|gate| gate.reviewers.clone()).unwrap_or_default()),
            free_text: true,
            actions: vec![action],
            warnings: self.warnings(at, [call]),
            ..Content::default()
        }))
    }

    fn action(&self, step: &Step, call: &ToolCall, agent: Option<&str>, allowed_decisions: Vec<ActionKind>) -> Action {
        let tool = self.flow.of(&step.node).tool(&call.tool);
        let (action_type, name) = self.kind_of(step, call);
        let own_schema = match action_type {
            ActionType::Emergent => Some(specialist_schema(call)),
            ActionType::StrategyOverride => Some(strategy_schema(call)),
            _ => None,
        };
        Action {
            id: call.id.clone(),
            action_type,
            name,
            agent: agent.map(str::to_owned),
            arguments: call.arguments.clone(),
            // A change of a team sends nothing.
            request: call.request.clone().filter(|_| action_type == ActionType::Tool),
            description: tool.as_ref().and_then(|tool| tool.description.clone()),
            schema: own_schema.or_else(|| tool.and_then(|tool| parameters(&tool).map(Cow::into_owned))),
            stakes: None,
            allowed_decisions,
            redacted: false,
        }
    }
}

/// Returns the schema that an edit of a specialist must fit: its name cannot change.
fn specialist_schema(call: &ToolCall) -> Value {
    json!({
        "type": "object", "required": ["role", "instructions", "model", "tools"], "additionalProperties": false,
        "properties": {
            "role": { "const": call.arguments.get("role") },
            "instructions": { "type": "string", "format": "markdown", "minLength": 1 },
            "justification": { "type": "string" },
            "model": { "type": "string" },
            "tools": { "type": "array", "items": { "type": "string" } },
        },
    })
}

/// Returns the schema that an edit of a change of strategy must fit.
fn strategy_schema(call: &ToolCall) -> Value {
    json!({
        "type": "object", "required": ["from", "to", "reason"], "additionalProperties": false,
        "properties": {
            "from": { "const": call.arguments.get("from") },
            "to": { "enum": TeamStrategy::ALL },
            "rounds": { "type": "integer", "minimum": 1, "maximum": Team::MAX_ROUNDS },
            "reason": { "type": "string" },
        },
    })
}

/// Appends what the agent said beside its calls, as its reason.
fn with_reason(request: String, said: &str) -> String {
    let said = said.trim();
    if said.is_empty() { request } else { format!("{request}\n\n{said}") }
}

/// Merges the stakes of several calls: the highest severity, reversible only if all are, all consequences and
/// alternatives.
fn merge(mut all: Stakes, more: Stakes) -> Stakes {
    all.severity = all.severity.max(more.severity);
    all.category = all.category.or(more.category);
    all.reversible = match (all.reversible, more.reversible) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    };
    all.estimated_cost = match (all.estimated_cost, more.estimated_cost) {
        (Some(one), Some(other)) if one.currency == other.currency => {
            Some(Cost { amount: one.amount + other.amount, currency: one.currency })
        }
        // Sums in different currencies cannot be added; saying only one of them would be wrong.
        (Some(_), Some(_)) => None,
        (one, other) => one.or(other),
    };
    for consequence in more.consequences {
        if !all.consequences.contains(&consequence) {
            all.consequences.push(consequence);
        }
    }
    for alternative in more.alternatives {
        if !all.alternatives.contains(&alternative) {
            all.alternatives.push(alternative);
        }
    }
    all
}

/// Gives the same answer to all actions, without a person: approval if it is wanted and allowed, otherwise rejection.
pub(in crate::engine::ask) fn answer_all(
    actions: &[Action],
    approves: bool,
    reason: Option<&str>,
) -> BTreeMap<String, ActionDecision> {
    let answer = |action: &Action| {
        let approve = approves && action.allowed_decisions.contains(&ActionKind::Approve);
        let message = reason.filter(|_| !approves).map(str::to_owned);
        let reject = ActionDecision::Reject { message };
        (action.id.clone(), if approve { ActionDecision::APPROVE } else { reject })
    };
    actions.iter().map(answer).collect()
}
