//! Guardrails on the action that an agent asks people to approve. Nothing here sends the action, since its agent carries
//! it out: what guardrails would redact is blocked.

use shared::JsonMap;
use shared::definition::{Effect, GuardrailScope};
use shared::error::FlowCode;
use shared::review::{ActionType, Warning};

use super::AskingCall;
use crate::engine::ask::guard::guard;
use crate::engine::ask_builtin::{APPROVE, Ask, ProposedAction};
use crate::engine::builder::Builder;
use crate::engine::next::{QuestionAnswer, Reply};
use crate::engine::question::Subject;
use crate::engine::ruling::{Findings, warning, words};
use crate::engine::transition::Refusal;
use crate::flow::guardrail::action;

impl Builder<'_> {
    /// Returns the answer to a question: the reply, unless guardrails block the action that the option approves.
    pub(in crate::engine::ask) fn guarded_reply(
        &self,
        subject: &Subject,
        option: Option<&str>,
        reply: Reply,
    ) -> QuestionAnswer {
        let findings = self.findings_about(subject, option);
        let block = findings.0.iter().find(|(_, finding)| finding.effect == Effect::Block);
        let reply = match block {
            Some((_, finding)) => Reply::Fails(FlowCode::GuardrailBlocked, words(finding)),
            None => reply,
        };
        QuestionAnswer::Reply(reply, findings)
    }

    /// Refuses an approval that guardrails must ask programs about before it can count.
    pub(in crate::engine::ask) fn refuse_unasked_reply(
        &self,
        subject: &Subject,
        option: Option<&str>,
    ) -> Result<(), Refusal> {
        let unasked = self.findings_about(subject, option).inquiries();
        if unasked.is_empty() { Ok(()) } else { Err(Refusal::unasked(unasked)) }
    }

    /// Returns what guardrails would find in the action that a question asks people to approve.
    pub(super) fn warnings_about(&self, subject: &Subject) -> Vec<Warning> {
        let findings = self.findings_about(subject, Some(APPROVE));
        // Programs are asked only after approval.
        findings.0.iter().filter(|(_, finding)| finding.inquiry.is_none()).map(warning).collect()
    }

    /// Returns what guardrails find in the action that an option approves; nothing if it approves none. Questions without
    /// a flow are not checked, since nobody could turn their guardrails off.
    pub(in crate::engine::ask) fn findings_about(&self, subject: &Subject, option: Option<&str>) -> Findings {
        let (Subject::Ask { call, .. }, Some(APPROVE), Some(_)) = (subject, option, self.state.shown_id()) else {
            return Findings::default();
        };
        let (Some(AskingCall { ask: Ask::Approval(proposal), agent, .. }), Some(step)) =
            (self.ask_of(subject), self.state.step_of(subject))
        else {
            return Findings::default();
        };
        let (calling, mut calls) = self.state.calls_of(subject);
        if !calls.next().is_some_and(|asking| self.is_guarded(step, calling, asking)) {
            return Findings::default();
        }
        let ProposedAction { name, arguments } = proposal.action;
        let what = action(ActionType::Tool.into(), &name, agent);
        let about = format!("{}.{call}", step.id);
        let check = |arguments: &JsonMap| {
            self.check_matter(&about, &step.node, GuardrailScope::Actions, what.clone(), arguments.clone(), None)
        };
        let cannot = |_| Err("something in it would have to be redacted, which only its agent can do".to_owned());
        let (_, findings) = guard(arguments, check, cannot);
        Findings::of(call, findings)
    }
}
