//! The deadlines of those who are asked, and the warnings before them.

use std::time::Duration;

use shared::definition::{Gate, Handler, Human, OnTimeout};
use shared::id::ReviewId;
use shared::run::Step;
use shared::time::{Span, Timestamp};

use super::content::{handlers, human};
use crate::engine::builder::Builder;
use crate::engine::conversation::CallSite;
use crate::engine::question::{Asked, Question, Subject};

/// The shortest time limit with a warning.
const SHORT: Duration = Duration::from_mins(5);

/// Returns when people are warned of a deadline: a tenth of the time before it, but at least a minute and at most an
/// hour. `None` if the time is so short that people have only just been told.
pub(super) fn warning(from: Timestamp, deadline: Timestamp) -> Option<Timestamp> {
    let time = deadline.since(from);
    if time < SHORT {
        return None;
    }
    let before = (time / 10).clamp(Duration::from_mins(1), Duration::from_hours(1));
    Some(from.after(time.saturating_sub(before)))
}

/// Ranks what happens after a timeout by caution: an error above a rejection, a rejection above an approval.
fn caution(on_timeout: &OnTimeout) -> u8 {
    match on_timeout {
        OnTimeout::Approve => 0,
        OnTimeout::Error => 2,
        _ => 1,
    }
}

impl Builder<'_> {
    /// Returns how long people have for a question that handlers were asked first, and what happens after that.
    pub(super) fn time_for_people(&self, subject: &Subject) -> (Option<Span>, Option<OnTimeout>) {
        let Some(step) = self.state.step_of(subject) else { return (None, None) };
        match subject {
            Subject::Node { .. } => {
                human(self.flow, &step.node).map(|human| self.time_at_node(step, human)).unwrap_or_default()
            }
            Subject::Calls { .. } | Subject::Specialist { .. } => {
                let (agent, calls) = self.state.calls_of(subject);
                let plain = self.flow.of(&step.node).plain_gate();
                let at = CallSite::new(step, agent);
                let gates: Vec<_> = calls.map(|call| self.tool_gate(at, call).unwrap_or(plain)).collect();
                self.time_at_gates(step, &gates)
            }
            Subject::Agent { .. } | Subject::Output { .. } => {
                self.gate_of(subject).map(|gate| self.time_at_gates(step, &[gate])).unwrap_or_default()
            }
            // People are asked about these at once.
            Subject::Ask { .. } | Subject::Takeover { .. } | Subject::Handoff { .. } | Subject::Lost { .. } => {
                (None, None)
            }
        }
    }

    /// Returns how long people have at a human node, and what happens after that.
    pub(super) fn time_at_node(&self, step: &Step, human: &Human) -> (Option<Span>, Option<OnTimeout>) {
        let defaults = &self.flow.of(&step.node).flow.defaults;
        let on_timeout = human.on_timeout.clone().or_else(|| defaults.on_timeout.clone());
        (human.timeout.or(defaults.timeout), on_timeout)
    }

    /// Returns how long people have for what gates hold back, and what happens after that: of several gates, the
    /// shortest time and the most cautious end.
    pub(super) fn time_at_gates(&self, step: &Step, gates: &[&Gate]) -> (Option<Span>, Option<OnTimeout>) {
        let default = self.flow.of(&step.node).flow.defaults.timeout;
        let timeout = gates.iter().filter_map(|gate| gate.timeout.or(default)).min();
        let on_timeout = gates.iter().map(|gate| self.gate_timeout(step, gate).unwrap_or(OnTimeout::Reject));
        (timeout, on_timeout.max_by_key(caution))
    }

    /// Returns the deadline of people who have this time from now on, and what happens then; by default, a rejection.
    pub(super) fn deadline_from_now(
        &self,
        (timeout, on_timeout): (Option<Span>, Option<OnTimeout>),
    ) -> (Option<Timestamp>, Option<OnTimeout>) {
        let expires_at = timeout.map(|timeout| self.now.after(timeout.0));
        (expires_at, expires_at.map(|_| on_timeout.unwrap_or(OnTimeout::Reject)))
    }

    /// Returns the deadline of whoever is asked now; `None` while guardrails ask about an approval.
    pub(super) fn until(&self, question: &Question) -> Option<Timestamp> {
        let of_people = || self.reviews.get(&question.review)?.expires_at;
        let is_over = matches!(question.asked, Asked::Guardrails { .. });
        if is_over { None } else { question.until().or_else(of_people) }
    }

    /// Returns the time from which on people cannot decide any more. `None` if they still can after the deadline,
    /// because the review escalates, or because the next handler does not decide at once.
    pub(super) fn closes_at(&self, id: ReviewId) -> Option<Timestamp> {
        let question = self.state.question(id)?;
        let closes = if question.asked == Asked::People {
            let happens = self.reviews.get(&id).and_then(|review| review.on_timeout.as_ref());
            !matches!(happens, Some(OnTimeout::Escalate(_)))
        } else {
            let next = handlers(self.flow, &self.state, &question.subject).get(question.handler + 1);
            matches!(next, Some(Handler::Auto(_)))
        };
        self.until(question).filter(|_| closes)
    }
}
