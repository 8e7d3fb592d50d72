//! Agents: a conversation as a state machine. One model task a turn; its answer is either final, or a list of calls
//! that are run (`call.rs`) before the next turn.

use serde_json::Value;
use shared::JsonMap;
use shared::definition::{Agent, NodeKind};
use shared::error::{FlowCode, Mistake, RunError};
use shared::id::{NodeId, TaskId};
use shared::run::{AgentCall, Step};

use super::builder::{Builder, failure, unevaluated};
use super::conversation::{Conversation, Message, Purpose};
use super::input::{ModelAnswer, TaskFailure};
use super::map;
use super::scope::{self, Visit};
use super::state::{Branch, Phase, RunState};
use super::transition::{Refusal, TaskKind};
use crate::limits;

impl Builder<'_> {
    /// A branch enters an agent node. With a correction, the agent hears its prompt, its last answer and the message.
    pub(super) fn enter_agent(
        &mut self,
        branch: u32,
        step: Step,
        agent: &str,
        prompt: Option<&str>,
        correction: Option<String>,
    ) {
        let scope = scope::of(self.flow, &self.state, &step.node, Visit { number: step.visit, ..Visit::default() });
        let opened = match prompt {
            Some(template) => {
                self.flow.of(&step.node).render(template, &scope).map_err(|error| unevaluated(&step.node, &error))
            }
            None => Ok(match map::item(self.flow, &self.state, &step.node, step.visit) {
                Some((_, item)) => format!("{item:#}"),
                None => self.readable_keys(&step.node),
            }),
        };
        let opened = opened.and_then(|prompt| {
            let mut messages = vec![Message::User { text: prompt }];
            if let Some(correction) = correction {
                let last = self.state.answers.get(&step.node).cloned();
                messages.extend(last.map(|text| Message::Assistant { text, calls: Vec::new() }));
                messages.push(Message::User { text: correction });
            }
            self.converse(&step, agent, messages)
        });
        match opened {
            Ok(conversation) => self.start_turn(branch, step, conversation),
            Err(error) => self.fail_step(branch, step, error),
        }
    }

    /// A new conversation of an agent.
    pub(super) fn converse(&self, step: &Step, name: &str, messages: Vec<Message>) -> Result<Conversation, RunError> {
        let flow = self.flow.of(&step.node);
        let Some(agent) = flow.flow.agents.get(name) else {
            return Err(failure(FlowCode::FlowInvalid, &step.node, format!("the flow has no agent `{name}`")));
        };
        let scope = scope::of(self.flow, &self.state, &step.node, Visit { number: step.visit, ..Visit::default() });
        let instructions = agent.instructions.as_ref().map(|template| flow.render(template, &scope)).transpose();
        let instructions = instructions.map_err(|error| unevaluated(&step.node, &error))?;
        Ok(Conversation::new(name, instructions, messages))
    }

    /// What a node may see, as JSON: for an agent that has no prompt.
    pub(super) fn readable_keys(&self, id: &NodeId) -> String {
        let node = self.flow.node(id);
        let readable = |key: &&String| node.is_none_or(|node| scope::may_read(node, key));
        let keys = self.state.keys_of(id).iter().filter(|(key, _)| readable(key));
        let keys: JsonMap = keys.map(|(key, value)| (key.clone(), value.clone())).collect();
        format!("{:#}", Value::Object(keys))
    }

    /// How many model calls a step of an agent may take.
    pub(super) fn max_turns(&self, node: &NodeId, agent: &str) -> u32 {
        self.flow.of(node).flow.agents.get(agent).map_or(Agent::DEFAULT_MAX_TURNS, Agent::max_turns)
    }

    /// The model is called for the turn that the conversation has come to.
    pub(super) fn start_turn(&mut self, branch: u32, step: Step, mut conversation: Conversation) {
        let task = self.add_task(&step, TaskKind::Model { turn: conversation.turn }, self.now, true);
        conversation.model_task = Some(task);
        conversation.tries = 1;
        let node = step.node.clone();
        self.settle(branch, &node, Phase::Agent { step, conversation });
    }

    /// A model has answered.
    pub(super) fn model_answered(&mut self, task: TaskId, answer: ModelAnswer) -> Result<(), Refusal> {
        let (branch, step, mut conversation) = self.take_conversation(task).ok_or(Refusal::TaskOver)?;
        self.end_task(task);
        conversation.model_task = None;
        let model = conversation.model_in(self.flow, &step.node).unwrap_or_default();
        let usage = usage(&conversation.agent, model, &answer);
        self.emit_answered(&step, conversation.turn, &answer, &usage);
        count(&mut self.state, &mut conversation, usage);

        if let Some(over) = over_budget(conversation.agent_in(self.flow, &step.node), &conversation) {
            let error = failure(FlowCode::BudgetExceeded, &step.node, over);
            self.fail_step(branch, step, error);
            return Ok(());
        }
        let ModelAnswer { text, mut calls, .. } = answer;
        if conversation.purpose != Purpose::Answer {
            // Who chooses or judges is offered no tools; calls that it makes up are left out.
            calls.clear();
        }
        conversation.messages.push(Message::Assistant { text: text.clone(), calls: calls.clone() });
        if calls.is_empty() {
            match conversation.purpose.clone() {
                Purpose::Answer => self.answered(branch, step, conversation, text),
                Purpose::Choice(choices) => self.chose(branch, step, conversation, &choices, &text),
                Purpose::Verdict(judging) => self.judged(branch, step, conversation, judging, &text),
            }
        } else if conversation.turn >= self.max_turns(&step.node, &conversation.agent) {
            // Its calls are not run: nobody would hear their results.
            let message = format!("agent `{}` had no answer after {} turns", conversation.agent, conversation.turn);
            let error = failure(FlowCode::ModelFailed, &step.node, message);
            self.fail_step(branch, step, error);
        } else {
            self.calls_made(branch, step, conversation, &text, calls);
        }
        Ok(())
    }

    /// A call failed. That of a model is tried again, or the step fails; for that of a tool see `call.rs`.
    pub(super) fn task_failed(&mut self, task: TaskId, why: &TaskFailure) -> Result<(), Refusal> {
        let Some((branch, mut step, mut conversation)) = self.take_conversation(task) else {
            return self.tool_failed(task, why);
        };
        let error = failure(why.code, &step.node, &why.message);
        if let Some(due_at) = self.next_try(&step.node, conversation.tries, why) {
            conversation.tries += 1;
            let kind = TaskKind::Model { turn: conversation.turn };
            self.retry(task, &mut step, kind, true, due_at, &error);
            let node = step.node.clone();
            self.settle(branch, &node, Phase::Agent { step, conversation });
        } else {
            self.end_task(task);
            match conversation.purpose {
                Purpose::Verdict(judging) => self.not_judged(branch, step, judging, &error.message),
                Purpose::Answer | Purpose::Choice(_) => self.fail_step(branch, step, error),
            }
        }
        Ok(())
    }

    /// The model is told what is wrong with its answer, and answers once more.
    pub(super) fn say_again(&mut self, branch: u32, step: Step, mut conversation: Conversation, mistakes: &str) {
        let text = format!("Your answer does not fit: {mistakes}. Answer with JSON that fits the schema only.");
        conversation.messages.push(Message::User { text });
        conversation.turn += 1;
        self.start_turn(branch, step, conversation);
    }

    fn take_conversation(&mut self, task: TaskId) -> Option<(u32, Step, Conversation)> {
        let calls =
            |phase: &Phase| matches!(phase, Phase::Agent { conversation, .. } if conversation.model_task == Some(task));
        match self.take_branch(calls)? {
            (number, Branch { phase: Phase::Agent { step, conversation }, .. }) => Some((number, step, conversation)),
            _ => None,
        }
    }

    /// The final answer: checked against the agent's `output_schema` where it has one; a mismatch is told to the model
    /// while turns are left.
    fn answered(&mut self, branch: u32, mut step: Step, conversation: Conversation, text: String) {
        let agent = conversation.agent_in(self.flow, &step.node);
        let (flow, schema) = (self.flow.of(&step.node), agent.and_then(|agent| agent.output_schema.as_ref()));
        let value = match schema.map(|schema| parse(|value| flow.check(schema, value, ""), &text)).transpose() {
            Ok(value) => value,
            Err(mistakes) if conversation.turn < self.max_turns(&step.node, &conversation.agent) => {
                return self.say_again(branch, step, conversation, &mistakes);
            }
            Err(mistakes) => {
                let message = format!("the answer of agent `{}` does not fit: {mistakes}", conversation.agent);
                let error = failure(FlowCode::ModelFailed, &step.node, message);
                return self.fail_step(branch, step, error);
            }
        };
        if self.is_correctable(&step.node) {
            self.state.answers.insert(step.node.clone(), text.clone());
        }
        let mut writes: JsonMap = conversation
            .wrote
            .iter()
            .filter_map(|key| Some((key.clone(), self.state.keys_of(&step.node).get(key)?.clone())))
            .collect();
        writes.extend(self.answer_keys(&step.node, text, value));
        step.note = Some(spent(&conversation));
        self.finish_step(branch, step, &writes);
    }

    /// Where the answer goes: with an `output_schema`, each of its keys that the node may write (the whole object to
    /// the one write key, where it names none of them); else the text to the one write key.
    fn answer_keys(&self, id: &NodeId, text: String, value: Option<Value>) -> JsonMap {
        let Some(node) = self.flow.node(id) else { return JsonMap::new() };
        let allowed = scope::write_keys(self.flow, id, node);
        let whole = |value| scope::result_key(self.flow, id, node).map(|key| (key, value)).into_iter().collect();
        match value {
            None => whole(Value::String(text)),
            Some(Value::Object(object)) if object.keys().any(|key| allowed.contains(key)) => {
                object.into_iter().filter(|(key, _)| allowed.contains(key)).collect()
            }
            Some(value) => whole(value),
        }
    }

    /// Whether a person may correct what a node made.
    fn is_correctable(&self, id: &NodeId) -> bool {
        let flow = self.flow.of(id);
        let mut humans = flow.flow.nodes.iter().filter(|(_, node)| matches!(node.kind, NodeKind::Human(_)));
        humans.any(|(human, _)| flow.source_of(human).is_some_and(|source| &*source == id.own()))
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

fn over_budget(agent: Option<&Agent>, conversation: &Conversation) -> Option<String> {
    let budget = agent?.budget.as_ref()?;
    let name = &conversation.agent;
    if let Some(limit) = budget.tokens.filter(|limit| conversation.tokens > *limit) {
        return Some(format!("agent `{name}` used {} tokens of {limit}", conversation.tokens));
    }
    let limit = budget.cost_usd.filter(|limit| conversation.cost_usd > *limit)?;
    Some(format!("agent `{name}` used {} US dollars of {limit}", rounded(conversation.cost_usd)))
}

/// What a step used, in a few words.
fn spent(conversation: &Conversation) -> String {
    let cost = rounded(conversation.cost_usd);
    let cost = if cost > 0.0 { format!(", {cost} US dollars") } else { String::new() };
    format!("{} tokens{cost}", conversation.tokens)
}

/// To a millionth, for people: sums of binary fractions have long tails.
fn rounded(cost_usd: f64) -> f64 {
    (cost_usd * 1e6).round() / 1e6
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
