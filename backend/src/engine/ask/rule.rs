//! What becomes of what a question is about, once it was decided: the one way from leave to effect. Calls and other actions
//! each have their own (`guardrail.rs`, `action.rs`).

use std::collections::BTreeMap;

use shared::decision::{ActionDecision, DecisionRequest, Verdict as Said};
use shared::definition::Effect;
use shared::review::{Checked, Review};

use crate::engine::builder::Builder;
use crate::engine::next::Answer;
use crate::engine::question::Subject;
use crate::engine::ruling::{Findings, inquiries, veto, warning};
use crate::engine::transition::Refusal;
use crate::flow::guardrail::Finding;

impl Builder<'_> {
    /// What becomes of what a question is about, once it was decided as the review shows it.
    pub(super) fn rule(
        &self,
        review: &Review,
        subject: &Subject,
        decisions: &BTreeMap<String, ActionDecision>,
        instructions: Option<String>,
    ) -> Answer {
        match subject {
            Subject::Agent { .. } | Subject::Output { .. } => self.rule_action(subject, decisions, instructions),
            _ => {
                let (rulings, findings) = self.rule_calls(review, subject, decisions);
                Answer::Calls { rulings, findings, instructions }
            }
        }
    }

    /// Refuses what guardrails ask programs about before it can count.
    pub(super) fn refuse_unasked(
        &self,
        review: &Review,
        subject: &Subject,
        decisions: &BTreeMap<String, ActionDecision>,
    ) -> Result<(), Refusal> {
        let asks = self.state.step_of(subject).is_some_and(|step| self.flow.of(&step.node).asks_programs());
        let answer = asks.then(|| self.rule(review, subject, decisions, None));
        let unasked = answer.as_ref().and_then(Answer::findings).map(Findings::inquiries).unwrap_or_default();
        if unasked.is_empty() { Ok(()) } else { Err(Refusal::unasked(unasked)) }
    }

    /// What guardrails would do with a decision, without making it. What is still missing in it, or does not fit, is for the
    /// decision itself to say.
    pub(in crate::engine) fn check_decision(
        &self,
        review: &Review,
        request: &DecisionRequest,
    ) -> Result<Checked, Refusal> {
        let mut findings: Vec<(Option<String>, Finding)> = Vec::new();
        if let Said::Actions { decisions, .. } = &request.verdict {
            let question = self.state.question(review.id);
            let answer = question.map(|question| self.rule(review, &question.subject, decisions, None));
            findings.extend(answer.iter().filter_map(Answer::findings).flat_map(|findings| findings.0.iter().cloned()));
        }
        findings.extend(self.look_at_put_in(review, request).into_findings().map(|finding| (None, finding)));
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
