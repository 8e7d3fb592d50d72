//! Agents' steps that do not continue, because people said so in an escalation: a person answers or writes instead,
//! another agent takes the step over, or it fails.

use serde_json::Value;
use shared::JsonMap;
use shared::definition::Reviewers;
use shared::error::FlowCode;
use shared::id::Username;
use shared::run::Step;

use crate::engine::builder::{Builder, failure};
use crate::engine::conversation::{Conversation, Message, ToolCallState};
use crate::engine::next::Takeover;
use crate::engine::phase::Phase;
use crate::engine::question::Subject;
use crate::engine::ruling::Ruling;
use crate::engine::scope;

impl Builder<'_> {
    /// Ends the work of an agent in its step, with everything else that it has begun in this turn; `then` says how the
    /// step continues.
    pub(in crate::engine) fn taken_over(
        &mut self,
        branch: u32,
        step: Step,
        mut conversation: Conversation,
        call: &str,
        result: &Value,
        then: Takeover,
    ) {
        if let Some(own) = conversation.calls.iter_mut().find(|own| own.id == call) {
            self.emit_executed(&step, own, Ok(result));
            own.state = ToolCallState::returned(result.clone());
        }
        let tool = conversation.calls.iter().find(|own| own.id == call).map(|own| own.tool.clone());
        // Whoever works for the agent is gone after that work has ended.
        let handover = match &then {
            Takeover::GivesTo { instructions, .. } => self.successor_prompt(branch, &conversation, instructions),
            Takeover::Answers { .. } | Takeover::Writes { .. } | Takeover::Stops { .. } => String::new(),
        };
        let agent = conversation.agent.clone();
        self.settle(branch, Phase::Agent { step, conversation });
        self.end_work(branch, None, &format!("agent `{agent}` does not continue its step"));
        let Some(Phase::Agent { step, mut conversation }) = self.state.branches.remove(&branch).map(|own| own.phase)
        else {
            return;
        };
        conversation.calls.clear();
        match then {
            Takeover::Answers { answer } => {
                self.agent_decided(branch, step, conversation, Ruling::Answered(answer.into()));
            }
            Takeover::Writes { by } => self.written_by(branch, step, conversation, tool.as_deref(), by),
            Takeover::GivesTo { agent, .. } => self.given_to(branch, step, &conversation, &agent, handover),
            Takeover::Stops { reason } => {
                let error = failure(FlowCode::FlowHumanRejected, &step.node, reason);
                self.fail_conversation(branch, step, &conversation, error);
            }
        }
    }

    /// Asks those who took over to write the output of the node. Whoever the tool excluded from the first question is
    /// excluded from this one too, even if it is delegated to them.
    fn written_by(
        &mut self,
        branch: u32,
        step: Step,
        conversation: Conversation,
        tool: Option<&str>,
        by: Vec<Username>,
    ) {
        let node = self.flow.node(&step.node);
        if node.is_none_or(|node| scope::write_keys(self.flow, &step.node, node).is_empty()) {
            return self.finish_step(branch, step, JsonMap::new());
        }
        let flow = self.flow.of(&step.node);
        let own = tool.and_then(|tool| flow.tool(tool)).map(|tool| tool.reviewers.clone());
        let asked = flow.flow.reviewers_at(step.node.own(), &own.unwrap_or_default());
        let Reviewers { not_requester, not_same_as, .. } = asked;
        self.settle(branch, Phase::Agent { step, conversation });
        self.ask(Subject::Takeover { branch, by, not_requester, not_same_as });
    }

    /// Ends a step whose output somebody has written in place of its agent. If a person may correct it, what stands
    /// there now is the answer that is corrected.
    pub(in crate::engine) fn finish_taken_over(&mut self, branch: u32, step: Step, writes: JsonMap) {
        if self.is_correctable(&step.node)
            && let Some(answer) = self.answer_of(&step.node, &writes)
        {
            self.state.answers.insert(step.node.clone(), answer);
        }
        self.finish_step(branch, step, writes);
    }

    /// Starts another agent on the step, with this prompt.
    fn given_to(&mut self, branch: u32, step: Step, before: &Conversation, agent: &str, prompt: String) {
        match self.converse(&step, agent, vec![Message::User { text: prompt }]) {
            Ok(conversation) => {
                let id_prefix = format!("{}{agent}.", before.id_prefix);
                // The purpose stays the same, and so do the members that it may call.
                let (purpose, delegates) = (before.purpose.taken_over(&before.agent), before.delegates.clone());
                let (handed_over, wrote) = (before.spent(), before.wrote.clone());
                let delegated = before.delegated.clone();
                let kept =
                    Conversation { handed_over, delegated, wrote, delegates, id_prefix, purpose, ..conversation };
                self.begin(branch, step, kept);
            }
            Err(error) => self.fail_conversation(branch, step, before, error),
        }
    }
}
