//! Gates: which calls are held back, and the review that asks about them.

use indexmap::IndexSet;
use shared::definition::{ActionKind, Cost, Gate, OnTimeout, Severity, Stakes};
use shared::review::{Action, ActionType, ReviewKind};
use shared::run::Step;
use shared::time::Span;

use super::builder::Builder;
use super::conversation::ToolCall;
use super::guardrail::Rulings;
use super::review::{Question, Rules};
use super::scope::{self, Visit};
use super::state::Asked;
use super::title;
use crate::flow::Scope;

impl<'f> Builder<'f> {
    /// The gate that holds a call back. One whose `when` meets a missing field, or cannot be evaluated, is closed.
    pub(super) fn closed_gate(&self, step: &Step, correction: Option<&str>, call: &ToolCall) -> Option<&'f Gate> {
        let flow = self.flow.of(&step.node);
        let gate = flow.tool_gate(&call.tool)?;
        let closed = gate.when.as_ref().is_none_or(|when| !flow.opens(when, &self.gate_scope(step, correction, call)));
        closed.then_some(gate)
    }

    /// What a gate's condition and title see.
    fn gate_scope(&self, step: &Step, correction: Option<&str>, call: &ToolCall) -> Scope {
        let visit = Visit { number: step.visit, correction, arguments: Some(&call.arguments), ..Visit::default() };
        scope::of(self.flow, &self.state, &step.node, visit)
    }

    /// The headline that the gate of a lone call gives it; one that cannot be rendered gives none.
    fn given_title(&self, step: &Step, group: &[(&ToolCall, &'f Gate)]) -> Option<String> {
        let [(call, gate)] = group else { return None };
        let scope = || self.gate_scope(step, None, call);
        let rendered = gate.title.as_ref().map(|title| self.flow.of(&step.node).render(title, &scope()));
        rendered?.ok().and_then(|title| title::of_template(&title))
    }

    /// Asks about gated calls of one turn: one review, or one for each set of reviewers where the gates name
    /// different ones, so that nobody decides what another gate reserves for others. What grants and `auto` handlers
    /// decide at once is told beside what was asked.
    pub(super) fn ask_about(
        &mut self,
        step: &Step,
        agent: Option<&str>,
        said: &str,
        gated: &[(&ToolCall, &'f Gate)],
    ) -> (Vec<Asked>, Rulings) {
        let mut groups: Vec<Vec<(&ToolCall, &'f Gate)>> = Vec::new();
        let (mut asked, mut decided) = (Vec::new(), Rulings::default());
        for (call, gate) in gated {
            if let Some(ruling) = self.granted(step, agent, said, call, gate) {
                decided.extend(ruling);
                continue;
            }
            match groups.iter_mut().find(|group| self.are_asked_together(step, group[0].1, gate)) {
                Some(group) => group.push((call, gate)),
                None => groups.push(vec![(call, gate)]),
            }
        }
        for group in groups {
            let question = self.question_about(step, agent, said, &group);
            match self.auto(step, group[0].1.handlers.as_deref()) {
                Some(auto) => decided.extend(self.calls_auto(step, agent, question, &group, auto)),
                None => asked.push(self.ask(step, question)),
            }
        }
        (asked, decided)
    }

    /// Whether two gates ask the same people, now and after an escalation.
    fn are_asked_together(&self, step: &Step, one: &'f Gate, other: &'f Gate) -> bool {
        let escalation = |gate| self.gate_timeout(step, gate).filter(|then| then.escalations().next().is_some());
        one.reviewers == other.reviewers
            && self.auto(step, one.handlers.as_deref()) == self.auto(step, other.handlers.as_deref())
            && escalation(one) == escalation(other)
    }

    /// What happens when nobody decides about a gate's calls in time. What the defaults say of branches is for nodes:
    /// a call runs, or it does not.
    fn gate_timeout(&self, step: &Step, gate: &Gate) -> Option<OnTimeout> {
        let default = || self.flow.of(&step.node).flow.defaults.on_timeout.as_ref().map(OnTimeout::for_calls);
        gate.on_timeout.clone().or_else(default)
    }

    pub(super) fn question_about(
        &self,
        step: &Step,
        agent: Option<&str>,
        said: &str,
        group: &[(&ToolCall, &'f Gate)],
    ) -> Question {
        let defaults = &self.flow.of(&step.node).flow.defaults;
        let gates = || group.iter().map(|(_, gate)| *gate);
        let actions: Vec<_> =
            group.iter().map(|(call, gate)| self.action(step, call, agent, gate.allowed_decisions())).collect();
        let on_timeout = gates().map(|gate| self.gate_timeout(step, gate).unwrap_or(OnTimeout::Reject));
        let tools: IndexSet<_> = actions.iter().map(|action| format!("`{}`", action.name)).collect();
        let tools = tools.into_iter().collect::<Vec<_>>().join(", ");
        let request = match agent {
            Some(agent) => format!("Agent `{agent}` wants to call {tools}."),
            None => format!("Step `{}` is about to call {tools}.", step.node.place()),
        };
        Question {
            kind: ReviewKind::ToolCalls,
            title: self.given_title(step, group).unwrap_or_else(|| title::of_calls(&actions)),
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
            advice: Vec::new(),
            warnings: self.warnings(step, agent, group.iter().map(|(call, _)| *call)),
        }
    }

    /// Asks what became of a call that was lost. It waits for a person, however long: nothing else can know.
    pub(super) fn ask_about_lost(
        &mut self,
        step: &Step,
        agent: Option<&str>,
        call: &ToolCall,
        why: Option<&str>,
    ) -> Asked {
        let gate = self.flow.of(&step.node).tool_gate(&call.tool);
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
        let question = Question {
            kind: ReviewKind::ToolCalls,
            title: format!("{} (lost in flight)", title::of_calls(std::slice::from_ref(&action))),
            prompt,
            stakes,
            reviewers: gate.map(|gate| gate.reviewers.clone()).unwrap_or_default(),
            timeout: None::<Span>,
            on_timeout: None,
            items: Vec::new(),
            options: Vec::new(),
            free_text: true,
            source: None,
            actions: vec![action],
            rules: Rules::default(),
            advice: Vec::new(),
            warnings: self.warnings(step, agent, [call]),
        };
        self.ask(step, question)
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
            schema: tool.and_then(|tool| super::invoke::parameters(tool).map(std::borrow::Cow::into_owned)),
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
