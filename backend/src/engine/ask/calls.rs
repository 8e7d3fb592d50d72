//! What is asked about calls: of those that gates hold back, and of one that was lost in flight.

use std::collections::BTreeMap;

use indexmap::IndexSet;
use shared::decision::ActionDecision;
use shared::definition::{ActionKind, Cost, Gate, OnTimeout, Severity, Stakes};
use shared::review::{Action, ActionType, ReviewKind};
use shared::run::Step;

use super::content::{Content, Rules};
use super::title;
use crate::engine::builder::Builder;
use crate::engine::conversation::{Message, ToolCall};
use crate::engine::phase::Phase;
use crate::engine::question::Subject;
use crate::engine::scope::Visit;

impl<'f> Builder<'f> {
    /// What is asked about calls that gates hold back.
    pub(super) fn content_of_calls(&self, step: &Step, subject: &Subject) -> Content {
        let (agent, calls) = self.state.calls_of(subject);
        let flow = self.flow.of(&step.node);
        let group: Vec<(&ToolCall, &'f Gate)> =
            calls.filter_map(|call| Some((call, flow.tool_gate(agent, &call.tool)?))).collect();
        self.content_of_group(step, agent, self.said_beside(subject), &group)
    }

    /// What the agent said beside its calls.
    fn said_beside(&self, subject: &Subject) -> &str {
        match self.state.branches.get(&subject.branch()).map(|branch| &branch.phase) {
            Some(Phase::Agent { conversation, .. }) => match conversation.messages.last() {
                Some(Message::Assistant { text, .. }) => text,
                _ => "",
            },
            _ => "",
        }
    }

    fn content_of_group(
        &self,
        step: &Step,
        agent: Option<&str>,
        said: &str,
        group: &[(&ToolCall, &'f Gate)],
    ) -> Content {
        let defaults = &self.flow.of(&step.node).flow.defaults;
        let gates = || group.iter().map(|(_, gate)| *gate);
        let actions: Vec<_> =
            group.iter().map(|(call, gate)| self.gated_action(step, call, agent, gate, group.len() > 1)).collect();
        let on_timeout = gates().map(|gate| self.gate_timeout(step, gate).unwrap_or(OnTimeout::Reject));
        let tools: IndexSet<_> = actions.iter().map(|action| format!("`{}`", action.name)).collect();
        let tools = tools.into_iter().collect::<Vec<_>>().join(", ");
        let request = match agent {
            Some(agent) => format!("Agent `{agent}` wants to call {tools}."),
            None => format!("Step `{}` is about to call {tools}.", step.node.place()),
        };
        let given = match group {
            [(call, gate)] => self.given_title(step, gate, Visit { agent, ..call.seen(step) }),
            _ => None,
        };
        Content {
            kind: ReviewKind::ToolCalls,
            title: given.unwrap_or_else(|| title::of_calls(&actions)),
            prompt: with_reason(request, said),
            stakes: merge_stakes(gates()),
            reviewers: gates().next().map(|gate| gate.reviewers.clone()).unwrap_or_default(),
            timeout: gates().filter_map(|gate| gate.timeout.or(defaults.timeout)).min(),
            on_timeout: on_timeout.max_by_key(caution),
            items: Vec::new(),
            options: Vec::new(),
            free_text: true,
            source: None,
            actions,
            rules: Rules::default(),
            warnings: self.warnings(step, agent, group.iter().map(|(call, _)| *call)),
        }
    }

    /// What became of a call that was lost. It waits for a person, however long: nothing else can know.
    pub(super) fn content_of_lost(&self, step: &Step, subject: &Subject, why: Option<&str>) -> Option<Content> {
        let (agent, mut calls) = self.state.calls_of(subject);
        let call = calls.next()?;
        let gate = self.flow.of(&step.node).tool_gate(agent, &call.tool);
        let allowed = vec![ActionKind::Approve, ActionKind::Reject, ActionKind::Respond];
        let action = self.action(step, call, agent, allowed);
        let mut stakes = gate.map(Gate::stakes).unwrap_or_default();
        stakes.severity = stakes.severity.max(Severity::High);
        let what = match why {
            None => "This call was under way when its worker was lost".to_owned(),
            Some(why) => format!("This call was sent, and got no certain answer ({why})"),
        };
        let prompt = format!(
            "{what}; nobody knows whether it took effect. Approve: it is run again, with the same idempotency key. \
             Reject: it counts as not done. Respond: say what its result was."
        );
        Some(Content {
            kind: ReviewKind::ToolCalls,
            title: format!("{} (lost in flight)", title::of_calls(std::slice::from_ref(&action))),
            prompt,
            stakes,
            reviewers: gate.map(|gate| gate.reviewers.clone()).unwrap_or_default(),
            timeout: None,
            on_timeout: None,
            items: Vec::new(),
            options: Vec::new(),
            free_text: true,
            source: None,
            actions: vec![action],
            rules: Rules::default(),
            warnings: self.warnings(step, agent, [call]),
        })
    }

    /// A call that a gate holds back; with what is at stake with it where there are several.
    fn gated_action(&self, step: &Step, call: &ToolCall, agent: Option<&str>, gate: &Gate, several: bool) -> Action {
        let action = self.action(step, call, agent, gate.allowed_decisions());
        Action { stakes: several.then(|| Box::new(gate.stakes())), ..action }
    }

    fn action(&self, step: &Step, call: &ToolCall, agent: Option<&str>, allowed_decisions: Vec<ActionKind>) -> Action {
        let tool = self.flow.of(&step.node).flow.tools.get(&call.tool);
        Action {
            id: call.id.clone(),
            action_type: ActionType::Tool,
            name: call.tool.clone(),
            agent: agent.map(str::to_owned),
            arguments: call.arguments.clone(),
            request: call.request.clone(),
            description: tool.and_then(|tool| tool.description.clone()),
            schema: tool.and_then(|tool| crate::engine::invoke::parameters(tool).map(std::borrow::Cow::into_owned)),
            stakes: None,
            allowed_decisions,
            redacted: false,
        }
    }
}

/// What the agent said beside its calls tells why it asks.
fn with_reason(request: String, said: &str) -> String {
    let said = said.trim();
    if said.is_empty() { request } else { format!("{request}\n\n{said}") }
}

/// The most cautious of several: an error before a rejection, a rejection before an approval.
fn caution(on_timeout: &OnTimeout) -> u8 {
    match on_timeout {
        OnTimeout::Approve => 0,
        OnTimeout::Error => 2,
        _ => 1,
    }
}

/// What is at stake with several calls: the highest severity, reversible only where all are, everything that follows.
fn merge_stakes<'g>(gates: impl Iterator<Item = &'g Gate>) -> Stakes {
    gates.map(Gate::stakes).reduce(merge).unwrap_or_default()
}

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

/// The same answer to all actions, where people give none: they are approved where that is wanted and allowed, or else
/// rejected.
pub(super) fn answer_all(actions: &[Action], approves: bool, reason: Option<&str>) -> BTreeMap<String, ActionDecision> {
    let answer = |action: &Action| {
        let approve = approves && action.allowed_decisions.contains(&ActionKind::Approve);
        let message = reason.filter(|_| !approves).map(str::to_owned);
        let reject = ActionDecision::Reject { message };
        (action.id.clone(), if approve { ActionDecision::APPROVE } else { reject })
    };
    actions.iter().map(answer).collect()
}
