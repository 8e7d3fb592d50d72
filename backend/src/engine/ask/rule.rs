//! The outcome for the subject of a decided question: the only way from approval to effect. Calls and other actions
//! each have their own (`guardrails/check.rs`, `action.rs`).

use std::collections::BTreeMap;

use serde_json::Value;
use shared::decision::{ActionDecision, DecisionRequest, Verdict};
use shared::definition::{Builtin, Effect, ToolKind};
use shared::review::{Checked, Review};
use shared::run::Step;

use super::action::AGENT;
use crate::engine::builder::Builder;
use crate::engine::conversation::ToolCall;
use crate::engine::next::QuestionAnswer;
use crate::engine::question::Subject;
use crate::engine::ruling::{Findings, inquiries, veto, warning};
use crate::engine::transition::Refusal;
use crate::flow::guardrail::Finding;

/// The argument that has the instructions of an agent that begins, or of a specialist.
const INSTRUCTIONS: &str = "instructions";

impl Builder<'_> {
    /// Returns the rulings on what a question is about, from the decisions on its review.
    pub(super) fn rule(
        &self,
        review: &Review,
        subject: &Subject,
        decisions: &BTreeMap<String, ActionDecision>,
        instructions: Option<&str>,
    ) -> QuestionAnswer {
        let instructed = instructions.and_then(|more| self.instructed(subject, decisions, more));
        let decisions = instructed.as_ref().unwrap_or(decisions);
        match subject {
            Subject::Agent { .. } | Subject::Output { .. } => self.rule_action(subject, decisions),
            Subject::Ask { .. } => self.rule_asked(review, subject, decisions, instructions),
            _ => {
                let (rulings, findings) = self.rule_calls(review, subject, decisions);
                let instructions = instructions.filter(|_| instructed.is_none()).map(str::to_owned);
                QuestionAnswer::Calls { rulings, findings, instructions }
            }
        }
    }

    /// Adds the instructions of a reviewer to the decisions: they become part of the own instructions of an agent that
    /// begins, or of a specialist, so that guardrails check them like any edit. `None` if there is no such agent or it
    /// is not approved.
    fn instructed(
        &self,
        subject: &Subject,
        decisions: &BTreeMap<String, ActionDecision>,
        more: &str,
    ) -> Option<BTreeMap<String, ActionDecision>> {
        let specialist = || {
            let step = self.state.step_of(subject)?;
            let call = self.state.calls_of(subject).1.find(|call| self.makes_specialist(step, call))?;
            Some((call.id.clone(), call.arguments.clone()))
        };
        let (id, asked) =
            self.proposed_agent(subject).map(|opening| (AGENT.to_owned(), opening)).or_else(specialist)?;
        let mut arguments = match decisions.get(&id)? {
            ActionDecision::Approve { .. } => asked,
            ActionDecision::Edit { arguments } => arguments.clone(),
            ActionDecision::Reject { .. } | ActionDecision::Respond { .. } | ActionDecision::Choose { .. } => {
                return None;
            }
        };
        let own = arguments.get(INSTRUCTIONS).and_then(Value::as_str).filter(|own| !own.is_empty());
        let whole = own.map_or_else(|| more.to_owned(), |own| format!("{own}\n\n{more}"));
        arguments.insert(INSTRUCTIONS.to_owned(), whole.into());
        let mut decisions = decisions.clone();
        decisions.insert(id, ActionDecision::Edit { arguments });
        Some(decisions)
    }

    fn makes_specialist(&self, step: &Step, call: &ToolCall) -> bool {
        let tool = self.flow.of(&step.node).tool(&call.tool);
        tool.is_some_and(|tool| tool.kind == ToolKind::Builtin(Builtin::SpawnSpecialist))
    }

    /// Refuses decisions that guardrails must ask programs about before they can count.
    pub(super) fn refuse_unasked(
        &self,
        review: &Review,
        subject: &Subject,
        decisions: &BTreeMap<String, ActionDecision>,
        instructions: Option<&str>,
    ) -> Result<(), Refusal> {
        let asks = self.state.step_of(subject).is_some_and(|step| self.flow.of(&step.node).asks_programs());
        let answer = asks.then(|| self.rule(review, subject, decisions, instructions));
        let unasked = answer.as_ref().and_then(QuestionAnswer::findings).map(Findings::inquiries).unwrap_or_default();
        if unasked.is_empty() { Ok(()) } else { Err(Refusal::unasked(unasked)) }
    }

    /// Returns what guardrails would do with a decision, without making it. Parts that are missing or do not fit are
    /// reported only when the decision is made.
    pub(in crate::engine) fn check_decision(
        &self,
        review: &Review,
        request: &DecisionRequest,
    ) -> Result<Checked, Refusal> {
        let mut findings: Vec<(Option<String>, Finding)> = Vec::new();
        if let Verdict::Actions { decisions, instructions } = &request.verdict {
            let question = self.state.question(review.id);
            let said = instructions.as_deref().filter(|said| !said.trim().is_empty());
            let answer = question.map(|question| self.rule(review, &question.subject, decisions, said));
            findings.extend(
                answer.iter().filter_map(QuestionAnswer::findings).flat_map(|findings| findings.0.iter().cloned()),
            );
        }
        if let (Verdict::Choose { option, .. }, Some(question)) = (&request.verdict, self.state.question(review.id)) {
            findings.extend(self.findings_about(&question.subject, Some(option)).0);
        }
        findings.extend(self.check_put_in(review, request).into_findings().map(|finding| (None, finding)));
        let unasked = inquiries(findings.iter().map(|(_, finding)| finding));
        if !unasked.is_empty() {
            return Err(Refusal::unasked(unasked));
        }
        let (vetoes, others): (Vec<_>, Vec<_>) =
            findings.iter().partition(|(_, finding)| finding.effect == Effect::Block);
        Ok(Checked {
            vetoes: vetoes.into_iter().map(veto).collect(),
            redactions: others.into_iter().map(warning).collect(),
        })
    }
}
