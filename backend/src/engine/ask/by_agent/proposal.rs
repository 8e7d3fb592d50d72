//! Guardrails on the actions that an agent asks people to approve. Nothing here sends an action, since its agent carries
//! it out: what guardrails would redact is blocked.

use shared::JsonMap;
use shared::definition::{Effect, GuardrailScope};
use shared::error::FlowCode;
use shared::review::{ActionType, Warning};

use super::AskingCall;
use crate::engine::ask::guardrails::apply::apply_guardrails;
use crate::engine::ask_builtin::{APPROVE, Ask, ProposedAction};
use crate::engine::builder::Builder;
use crate::engine::conversation::CallSite;
use crate::engine::next::{QuestionAnswer, Reply};
use crate::engine::question::Subject;
use crate::engine::ruling::{Blocked, Findings, words};
use crate::engine::transition::Refusal;
use crate::flow::guardrail::{Finding, action};

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
        self.findings_about(subject, Some(APPROVE)).warnings()
    }

    /// Returns what guardrails find in the action that an option approves; nothing if it approves none. Questions without
    /// a flow are not checked, since nobody could turn their guardrails off.
    pub(in crate::engine::ask) fn findings_about(&self, subject: &Subject, option: Option<&str>) -> Findings {
        let (Subject::Ask { call, .. }, Some(APPROVE)) = (subject, option) else { return Findings::default() };
        let Some(AskingCall { ask: Ask::Approval(proposal), .. }) = self.ask_of(subject) else {
            return Findings::default();
        };
        let ProposedAction { name, arguments } = proposal.action;
        let (_, findings) = self.check_proposed(subject, call, &name, arguments);
        Findings::of(call, findings)
    }

    /// Lets guardrails check an action that people have approved and that whoever asked carries out itself; `id` tells
    /// the actions of a step apart.
    pub(super) fn check_proposed(
        &self,
        subject: &Subject,
        id: &str,
        name: &str,
        arguments: JsonMap,
    ) -> (Result<JsonMap, Blocked>, Vec<Finding>) {
        let Some(CallSite { step, agent, .. }) = self.guarded(subject) else { return (Ok(arguments), Vec::new()) };
        let what = action(ActionType::Tool.into(), name, agent.map(|agent| agent.name));
        let about = format!("{}.{id}", step.id);
        let check = |arguments: &JsonMap| {
            self.check_matter(&about, &step.node, GuardrailScope::Actions, what.clone(), arguments.clone(), None)
        };
        let cannot = |_| Err("something in it would have to be redacted, which only its agent can do".to_owned());
        apply_guardrails(arguments, check, cannot)
    }

    /// Returns the place of the call that asks if guardrails check what it asks about. `None` for questions without a
    /// flow, since nobody could turn their guardrails off.
    pub(super) fn guarded<'s>(&'s self, subject: &'s Subject) -> Option<CallSite<'s>> {
        self.state.shown_id()?;
        let step = self.state.step_of(subject)?;
        let (agent, mut calls) = self.state.calls_of(subject);
        let at = CallSite::new(step, agent);
        calls.next().filter(|call| self.is_guarded(at, call)).map(|_| at)
    }
}
