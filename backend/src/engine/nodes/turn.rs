//! Turns of a conversation: opens a turn, and calls its model.

use shared::definition::Agent;
use shared::error::{FlowCode, FlowError};
use shared::id::NodeId;
use shared::run::Step;

use crate::engine::ask::action::Proposed;
use crate::engine::builder::{Builder, failure};
use crate::engine::conversation::{Conversation, Message};
use crate::engine::phase::Phase;
use crate::engine::question::Subject;
use crate::engine::scope::Visit;
use crate::engine::team::TeamWork;

impl Builder<'_> {
    /// Creates a conversation of an agent of the flow, with its rendered instructions.
    pub(super) fn converse(
        &mut self,
        step: &Step,
        name: &str,
        messages: Vec<Message>,
    ) -> Result<Conversation, FlowError> {
        let flow = self.flow.of(&step.node);
        let Some(agent) = flow.flow.agents.get(name) else {
            return Err(failure(FlowCode::FlowInvalid, &step.node, format!("the flow has no agent `{name}`")));
        };
        let instructions = agent.instructions.as_ref();
        let instructions = instructions.map(|template| self.render(step, template, Visit::default())).transpose()?;
        let instructions = self.with_feedback(&step.node, name, instructions);
        Ok(Conversation::new(name, instructions, messages))
    }

    /// Creates a conversation of a member of a team, which may be a specialist.
    pub(super) fn conversation_of(
        &mut self,
        step: &Step,
        name: &str,
        team: &TeamWork,
        messages: Vec<Message>,
    ) -> Result<Conversation, FlowError> {
        match team.specialists.get(name) {
            Some(specialist) => {
                let conversation = Conversation::new(name, specialist.agent.instructions.clone(), messages);
                Ok(Conversation { specialist: Some(Box::new(specialist.clone())), ..conversation })
            }
            None => self.converse(step, name, messages),
        }
    }

    /// Returns the maximum number of model calls of an agent in a step.
    pub(super) fn max_turns(&self, node: &NodeId, conversation: &Conversation) -> u32 {
        conversation.agent_in(self.flow, node).map_or(Agent::DEFAULT_MAX_TURNS, Agent::max_turns)
    }

    /// Starts the first turn of a conversation, unless a gate holds the agent back.
    pub(super) fn begin(&mut self, branch: u32, step: Step, conversation: Conversation) {
        let gate = self.flow.of(&step.node).agent_gate(&conversation.agent, conversation.calling_agent().gates_of);
        let closes = |gate| {
            let proposed = Proposed::of_agent(&conversation);
            self.closes(gate, &step.node, Visit { number: step.visit, ..proposed.seen() })
        };
        if gate.is_some_and(closes) {
            self.settle(branch, Phase::Agent { step, conversation });
            self.ask(Subject::Agent { branch });
        } else {
            self.start_turn(branch, step, conversation);
        }
    }

    /// Calls the model for the current turn of a conversation.
    pub(super) fn start_turn(&mut self, branch: u32, step: Step, mut conversation: Conversation) {
        self.call_model(&step, &mut conversation);
        self.settle(branch, Phase::Agent { step, conversation });
    }
}
