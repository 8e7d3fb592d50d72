//! Calls of models, whoever makes them: their tasks, what they use, and reading what they say.

use serde_json::Value;
use shared::error::Mistake;
use shared::run::{AgentCall, Step};

use super::builder::Builder;
use super::conversation::{Conversation, Message, Purpose};
use super::input::ModelAnswer;
use super::state::RunState;
use super::transition::TaskKind;
use crate::limits;

impl Builder<'_> {
    /// The model is called for the turn that a conversation has come to.
    pub(super) fn call_model(&mut self, step: &Step, conversation: &mut Conversation) {
        let task = self.add_task(step, TaskKind::Model { turn: conversation.turn }, self.now, true);
        conversation.model_task = Some(task);
        conversation.tries = 1;
    }

    /// A model has answered: its task is over, and what it used counts.
    pub(super) fn count_answer(
        &mut self,
        step: &Step,
        conversation: &mut Conversation,
        model: &str,
        answer: &ModelAnswer,
    ) {
        if let Some(task) = conversation.model_task.take() {
            self.end_task(task);
        }
        let usage = usage(&conversation.agent, model, answer);
        self.emit_answered(step, conversation.turn, answer, &usage);
        count(&mut self.state, conversation, usage);
    }
}

impl Conversation {
    /// The model is told what is wrong with its answer, and is to answer once more.
    pub(super) fn say_again(&mut self, mistakes: &str) {
        let text = match &self.purpose {
            Purpose::Answer => {
                format!("Your answer does not fit: {mistakes}. Answer with JSON that fits the schema only.")
            }
            Purpose::Choice(_) => format!("Your answer does not fit: {mistakes}. Answer with one of these only."),
        };
        self.messages.push(Message::User { text });
        self.turn += 1;
    }
}

/// What an answer used.
pub(super) fn usage(agent: &str, model: &str, answer: &ModelAnswer) -> AgentCall {
    AgentCall {
        agent: agent.to_owned(),
        model: model.to_owned(),
        tokens: answer.tokens,
        // JSON has no NaN: a cost that is no number would make the state unreadable.
        cost_usd: if answer.cost_usd.is_finite() { answer.cost_usd.max(0.0) } else { 0.0 },
        duration_ms: answer.duration_ms,
    }
}

fn count(state: &mut RunState, conversation: &mut Conversation, usage: AgentCall) {
    conversation.tokens = conversation.tokens.saturating_add(usage.tokens);
    // Nor has it an infinite sum.
    conversation.cost_usd = (conversation.cost_usd + usage.cost_usd).min(f64::MAX);
    state.total_tokens = state.total_tokens.saturating_add(usage.tokens);
    state.total_cost_usd = (state.total_cost_usd + usage.cost_usd).min(f64::MAX);
    state.agent_calls.push(usage);
    let surplus = state.agent_calls.len().saturating_sub(RunState::MAX_CALLS);
    state.agent_calls.drain(..surplus);
}

/// Reads an answer as JSON and checks it.
pub(crate) fn parse(check: impl FnOnce(&Value) -> Vec<Mistake>, text: &str) -> Result<Value, String> {
    let value: Value =
        serde_json::from_str(without_fence(text)).map_err(|error| format!("it is not JSON ({error})"))?;
    limits::check(&value).map_err(|exceeded| format!("it is {exceeded}"))?;
    let mistakes = check(&value);
    if mistakes.is_empty() { Ok(value) } else { Err(super::invoke::listed(&mistakes)) }
}

/// The text inside a fenced block, where an answer is one.
pub(super) fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let inside = inside.map(|inside| inside.strip_prefix("json").or(inside.strip_prefix("JSON")).unwrap_or(inside));
    inside.unwrap_or(text).trim()
}
