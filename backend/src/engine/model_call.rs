//! Model calls of all kinds: their tasks, their usage, and their answers.

use serde_json::Value;
use shared::error::Mistake;
use shared::run::{AgentCall, AgentToolCall, Step, Usage};

use super::builder::{Builder, failure};
use super::call_limits::MAX_CALLS;
use super::conversation::{Conversation, Message, Purpose, ToolCall, ToolCallState};
use super::input::{ModelAnswer, ModelToolCall, TaskFailure};
use super::state::RunState;
use super::transition::TaskKind;
use super::usage::ModelUsage;
use crate::limits;

/// The maximum length of a text or value that is kept, in bytes.
const MAX_WORDS: usize = 4096;
/// The maximum length of what is kept of all calls together, in bytes.
const MAX_ALL_WORDS: usize = 64 * 1024;

impl Builder<'_> {
    /// Creates the task that calls the model for the current turn of a conversation.
    pub(super) fn call_model(&mut self, step: &Step, conversation: &mut Conversation) {
        let task = self.add_task(step, TaskKind::Model { turn: conversation.turn }, self.now, true);
        conversation.model_task = Some(task);
        conversation.tries = 1;
    }

    /// Ends the task of a model call that was answered, and counts its usage.
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
        let usage = usage(&conversation.agent, model, answer.usage());
        self.emit_answered(step, conversation.turn, conversation.new_input(), answer, &usage);
        let usage = with_words(usage, step, conversation, answer);
        count(&mut self.state, conversation, usage);
    }

    /// Counts what a failed model call used. Its task goes on if the call is retried.
    pub(super) fn count_failure(
        &mut self,
        step: &Step,
        conversation: &mut Conversation,
        model: &str,
        why: &TaskFailure,
    ) {
        let Some(used) = why.usage else { return };
        let usage = usage(&conversation.agent, model, used);
        let error = failure(why.code, &step.node, &why.message);
        self.emit_unanswered(step, conversation.turn, error, Some(&usage));
        count(&mut self.state, conversation, usage);
    }

    /// Notes the results of tool calls beside the model call that made them.
    pub(super) fn note_results(&mut self, step: &Step, calls: &[ToolCall]) {
        for call in calls {
            let ToolCallState::Done { result, failed } = &call.state else { continue };
            let is_its = |noted: &&mut AgentToolCall| {
                noted.id == call.id
                    && noted.step.is_none_or(|noted| noted == step.id)
                    && noted.result.is_none()
                    && noted.error.is_none()
            };
            let noted = self.state.agent_calls.iter_mut().rev().flat_map(|made| &mut made.tools).find(is_its);
            if let Some(noted) = noted {
                match (failed, result) {
                    (true, Value::String(why)) => noted.error = Some(cut(why)),
                    _ => noted.result = Some(cut_value(result)),
                }
            }
        }
        drop_old_words(&mut self.state);
    }
}

impl Conversation {
    /// Returns the id of a call of the current turn, by its index from 0.
    pub(super) fn call_id(&self, index: usize) -> String {
        format!("{}c{}-{}", self.id_prefix, self.turn, index + 1)
    }

    /// Returns what the model was told since its last answer in this conversation, apart from results of tools. After a
    /// correction, a conversation begins with the prompt, the answer from before and the correction.
    fn new_input(&self) -> Option<String> {
        let is_answer = |message: &Message| matches!(message, Message::Assistant { .. });
        let last = self.messages.iter().rposition(is_answer).filter(|_| self.turn > 1);
        let since = last.map_or(0, |last| last + 1);
        let texts = self.messages.iter().skip(since).filter_map(|message| match message {
            Message::User { text } => Some(text.as_str()),
            Message::Assistant { .. } | Message::Tool { .. } => None,
        });
        let texts: Vec<&str> = texts.collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    /// Tells the model what is wrong with its answer, and moves on to the next turn.
    pub(super) fn say_again(&mut self, mistakes: &str) {
        let text = match &self.purpose {
            Purpose::Answer | Purpose::Turn { .. } | Purpose::Task { .. } => {
                format!("Your answer does not fit: {mistakes}. Answer with JSON that fits the schema only.")
            }
            Purpose::Choice(_) => format!("Your answer does not fit: {mistakes}. Answer with one of these only."),
        };
        self.messages.push(Message::User { text });
        self.turn += 1;
    }
}

/// Returns the usage of a call, without any texts.
pub(super) fn usage(agent: &str, model: &str, used: ModelUsage) -> AgentCall {
    AgentCall {
        agent: agent.to_owned(),
        model: model.to_owned(),
        tokens: used.tokens,
        // JSON has no NaN: a cost that is no number would make the state unreadable.
        cost_usd: if used.cost_usd.is_finite() { used.cost_usd.max(0.0) } else { 0.0 },
        duration_ms: used.duration_ms,
        input: String::new(),
        output: String::new(),
        tools: Vec::new(),
    }
}

/// Adds what people see of a model call: the beginning of the last message to the model and of its answer, and its tool
/// calls.
fn with_words(usage: AgentCall, step: &Step, conversation: &Conversation, answer: &ModelAnswer) -> AgentCall {
    let input = conversation.messages.iter().rev().find_map(|message| match message {
        Message::User { text } => Some(cut(text)),
        Message::Tool { tool, content, .. } => Some(cut(&format!("{tool}: {content}"))),
        Message::Assistant { .. } => None,
    });
    let tool = |(index, call): (usize, &ModelToolCall)| AgentToolCall {
        id: conversation.call_id(index),
        step: Some(step.id),
        name: call.tool.clone(),
        arguments: cut_value(&call.arguments),
        result: None,
        error: None,
    };
    let tools = answer.calls.iter().take(MAX_CALLS).enumerate().map(tool).collect();
    AgentCall { input: input.unwrap_or_default(), output: cut(&answer.text), tools, ..usage }
}

/// Shortens a text that is too long to be kept whole.
fn cut(text: &str) -> String {
    match text.char_indices().find(|(at, _)| *at >= MAX_WORDS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn cut_value(value: &Value) -> Value {
    let text = value.to_string();
    if text.len() > MAX_WORDS { cut(&text).into() } else { value.clone() }
}

/// Returns the length of what is kept of a model call, in bytes.
fn words(call: &AgentCall) -> usize {
    let tool = |tool: &AgentToolCall| {
        let result = tool.result.as_ref().map_or(0, |result| result.to_string().len());
        tool.arguments.to_string().len() + result + tool.error.as_ref().map_or(0, String::len)
    };
    call.input.len() + call.output.len() + call.tools.iter().map(tool).sum::<usize>()
}

/// Removes the texts of older calls, so that all together stay below the limit: they are written with every step.
fn drop_old_words(state: &mut RunState) {
    let mut left = MAX_ALL_WORDS;
    for call in state.agent_calls.iter_mut().rev() {
        if let Some(less) = left.checked_sub(words(call)) {
            left = less;
        } else {
            left = 0;
            (call.input, call.output) = (String::new(), String::new());
            call.tools.clear();
        }
    }
}

fn count(state: &mut RunState, conversation: &mut Conversation, usage: AgentCall) {
    conversation.tokens = conversation.tokens.saturating_add(usage.tokens);
    // Nor does it have infinity.
    conversation.cost_usd = (conversation.cost_usd + usage.cost_usd).min(f64::MAX);
    state.total_tokens = state.total_tokens.saturating_add(usage.tokens);
    state.total_cost_usd = (state.total_cost_usd + usage.cost_usd).min(f64::MAX);
    state.agent_calls.push(usage);
    let surplus = state.agent_calls.len().saturating_sub(Usage::MAX_CALLS);
    state.agent_calls.drain(..surplus);
    drop_old_words(state);
}

/// Reads an answer as JSON and checks it.
pub(crate) fn parse(check: impl FnOnce(&Value) -> Vec<Mistake>, text: &str) -> Result<Value, String> {
    let text = without_fence(text);
    if limits::long_integer(text.as_bytes()).is_some() {
        return Err(limits::LONG_INTEGER.to_owned());
    }
    let value: Value = serde_json::from_str(text).map_err(|error| format!("it is not JSON ({error})"))?;
    limits::check(&value).map_err(|exceeded| format!("it is {exceeded}"))?;
    let mistakes = check(&value);
    if mistakes.is_empty() { Ok(value) } else { Err(super::invoke::listed(&mistakes)) }
}

/// Returns the text inside a fenced block, if the answer is one, or else the whole answer.
pub(super) fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let inside = inside.map(|inside| inside.strip_prefix("json").or(inside.strip_prefix("JSON")).unwrap_or(inside));
    inside.unwrap_or(text).trim()
}
