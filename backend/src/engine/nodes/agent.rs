//! Agents: a conversation as a state machine. Each turn is one model task; its answer is either final, or a list of
//! calls that are executed (`call.rs`) before the next turn.

use shared::JsonMap;
use shared::error::{FlowCode, FlowError};
use shared::id::{NodeId, TaskId};
use shared::run::Step;

use crate::engine::answer::{ParsedAnswer, read_answer};
use crate::engine::builder::{Builder, failure};
use crate::engine::conversation::{Conversation, Message, Purpose};
use crate::engine::input::{ModelAnswer, TaskFailure};
use crate::engine::phase::{Branch, Phase};
use crate::engine::ruling::Ruling;
use crate::engine::transition::{Refusal, TaskKind};
use crate::engine::usage::Spent;

impl Builder<'_> {
    /// Enters an agent node. With a correction, the conversation opens with the prompt, the agent's last answer and the
    /// correction. `Err` if the step fails.
    pub(in crate::engine) fn enter_agent(
        &mut self,
        branch: u32,
        step: Step,
        agent: &str,
        prompt: Option<&str>,
        correction: Option<String>,
    ) -> Result<(), FlowError> {
        let mut messages = vec![Message::User { text: self.prompt(&step, prompt)? }];
        if let Some(correction) = correction {
            let last = self.state.answers.get(&step.node).cloned();
            messages.extend(last.map(|text| Message::Assistant { text, calls: Vec::new() }));
            messages.push(Message::User { text: correction });
        }
        let conversation = self.converse(&step, agent, messages)?;
        self.begin(branch, step, conversation);
        Ok(())
    }

    /// Applies the answer of an agent's model: it is final, or its calls are made. Fails the conversation if its budget
    /// is exceeded, or if calls are left but no turns.
    pub(in crate::engine) fn model_answered(&mut self, task: TaskId, answer: ModelAnswer) -> Result<(), Refusal> {
        let (branch, step, mut conversation) = self.take_conversation(task).ok_or(Refusal::TaskOver)?;
        let model = conversation.model_in(self.flow, &step.node).unwrap_or_default().to_owned();
        self.count_answer(&step, &mut conversation, &model, &answer);

        if let Some(over) = self.over_budget(&step.node, &conversation) {
            let error = failure(FlowCode::BudgetExceeded, &step.node, over);
            self.fail_conversation(branch, step, &conversation, error);
            return Ok(());
        }
        let ModelAnswer { text, mut calls, .. } = answer;
        if matches!(conversation.purpose, Purpose::Choice(_)) {
            // A router's agent is offered no tools: calls that it makes up are left out.
            calls.clear();
        }
        conversation.leave_out_surplus(&mut calls);
        conversation.messages.push(Message::Assistant { text: text.clone(), calls: calls.clone() });
        if calls.is_empty() {
            self.answered(branch, step, conversation, text);
        } else if !self.has_turns_left(&step.node, &conversation) {
            // Its calls are not executed: no turn is left in which it would get their results.
            let turns = self.state.used_by_agent_of(&conversation).turns;
            let message = format!("agent `{}` had no answer after {turns} turns", conversation.agent);
            let error = failure(FlowCode::ModelFailed, &step.node, message);
            self.fail_conversation(branch, step, &conversation, error);
        } else {
            self.calls_made(branch, step, conversation, calls);
        }
        Ok(())
    }

    /// Handles a failed model call of an agent: counts its usage, and retries it or fails the conversation. An agent
    /// whose budget is exceeded is not retried.
    pub(in crate::engine) fn model_failed(&mut self, task: TaskId, why: &TaskFailure) -> Result<(), Refusal> {
        let (branch, mut step, mut conversation) = self.take_conversation(task).ok_or(Refusal::TaskOver)?;
        let model = conversation.model_in(self.flow, &step.node).unwrap_or_default().to_owned();
        self.count_failure(&step, &mut conversation, &model, why);
        let error = failure(why.code, &step.node, &why.message);
        let next_try = self.next_try(&step.node, conversation.tries, why);
        let over = next_try.and_then(|_| self.over_budget(&step.node, &conversation));
        match (next_try, over) {
            (Some(due_at), None) => {
                conversation.tries += 1;
                let kind = TaskKind::Model { turn: conversation.turn };
                self.retry(task, &mut step, kind, true, due_at, &error);
                self.settle(branch, Phase::Agent { step, conversation });
            }
            (_, over) => {
                self.end_task(task);
                let over = over.map(|over| format!("{over}; its last call failed: {}", why.message));
                let error = over.map_or(error, |over| failure(FlowCode::BudgetExceeded, &step.node, over));
                self.fail_conversation(branch, step, &conversation, error);
            }
        }
        Ok(())
    }

    /// Whether a task is an agent's turn.
    pub(in crate::engine) fn is_model_task(&self, task: TaskId) -> bool {
        self.state.branches.values().any(|branch| branch.phase.calls_model(task))
    }

    fn take_conversation(&mut self, task: TaskId) -> Option<(u32, Step, Conversation)> {
        match self.take_branch(|phase| phase.calls_model(task))? {
            (number, Branch { phase: Phase::Agent { step, conversation }, .. }) => Some((number, step, conversation)),
            _ => None,
        }
    }

    /// Takes a final answer. If it is not valid, the model is told so while turns are left.
    fn answered(&mut self, branch: u32, mut step: Step, mut conversation: Conversation, text: String) {
        match read_answer(self.flow, &step.node, &conversation, &text) {
            Ok(ParsedAnswer::Made(value)) => {
                step.note = Some(spent(&conversation));
                self.made(branch, step, &conversation, text, value);
            }
            Ok(ParsedAnswer::Chose(target)) => self.chose(branch, step, target),
            Err(mistakes) if self.has_turns_left(&step.node, &conversation) => {
                conversation.say_again(&mistakes);
                self.start_turn(branch, step, conversation);
            }
            Err(mistakes) => {
                let code = match conversation.purpose {
                    Purpose::Choice(_) => FlowCode::FlowNoMatchingEdge,
                    Purpose::Answer | Purpose::Turn { .. } | Purpose::Task { .. } => FlowCode::ModelFailed,
                };
                self.does_not_fit(branch, step, &conversation, code, &mistakes);
            }
        }
    }

    fn has_turns_left(&self, node: &NodeId, conversation: &Conversation) -> bool {
        self.state.used_by_agent_of(conversation).turns < self.max_turns(node, conversation)
    }

    /// Says by how much the agent of a conversation exceeds its budget; `None` if it does not.
    fn over_budget(&self, node: &NodeId, conversation: &Conversation) -> Option<String> {
        let budget = conversation.agent_in(self.flow, node)?.budget.as_ref()?;
        let (name, used) = (&conversation.agent, self.state.used_by_agent_of(conversation));
        if let Some(limit) = budget.tokens.filter(|limit| used.tokens > *limit) {
            return Some(format!("agent `{name}` used {} tokens of {limit}", used.tokens));
        }
        let limit = budget.cost_usd.filter(|limit| used.cost_usd > *limit)?;
        Some(format!("agent `{name}` used {} US dollars of {limit}", rounded(used.cost_usd)))
    }

    fn does_not_fit(&mut self, branch: u32, step: Step, conversation: &Conversation, code: FlowCode, mistakes: &str) {
        let message = format!("the answer of agent `{}` is not valid: {mistakes}", conversation.agent);
        let error = failure(code, &step.node, message);
        self.fail_conversation(branch, step, conversation, error);
    }

    /// Applies the ruling on an agent that was about to begin: it begins, somebody has answered in its place, or its
    /// step fails.
    pub(in crate::engine) fn agent_decided(
        &mut self,
        branch: u32,
        mut step: Step,
        mut conversation: Conversation,
        ruling: Ruling<JsonMap>,
    ) {
        match ruling {
            Ruling::Proceeds(opening) => {
                conversation.reopen(&opening);
                self.start_turn(branch, step, conversation);
            }
            Ruling::Answered(answer) => {
                let text = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
                match read_answer(self.flow, &step.node, &conversation, &text) {
                    Ok(ParsedAnswer::Made(value)) => {
                        step.note = Some("answered by a person".to_owned());
                        self.made(branch, step, &conversation, text, value);
                    }
                    Ok(ParsedAnswer::Chose(target)) => self.chose(branch, step, target),
                    // The answer was checked when it was given; only a redaction by a guardrail can have made it
                    // invalid.
                    Err(mistakes) => {
                        self.does_not_fit(branch, step, &conversation, FlowCode::GuardrailBlocked, &mistakes);
                    }
                }
            }
            Ruling::Refused(code, why) => {
                let error = failure(code, &step.node, why);
                self.refuse_conversation(branch, step, &conversation, error);
            }
        }
    }
}

/// Describes the usage of a conversation by all of its agents and those that worked for them, for the list of steps.
fn spent(conversation: &Conversation) -> String {
    let mut all = Spent::default();
    conversation.spent().values().chain(conversation.delegated.values()).for_each(|spent| all += spent);
    let cost = rounded(all.cost_usd);
    let cost = if cost > 0.0 { format!(", {cost} US dollars") } else { String::new() };
    format!("{} tokens{cost}", all.tokens)
}

/// Rounds to a millionth, for people: sums of binary fractions have long tails.
fn rounded(cost_usd: f64) -> f64 {
    (cost_usd * 1e6).round() / 1e6
}
