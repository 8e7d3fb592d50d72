//! What happens to tool calls: their results, failures and reviews, and what those do to an agent's turn. Calls that
//! are not gated wait for the gated ones of their turn, and are started together with those that were approved. A
//! result that is no result reaches the agent as `<CODE>: <message>`.

use serde_json::{Value, json};
use shared::JsonMap;
use shared::definition::{Agent, Gate};
use shared::error::{FlowCode, RunError};
use shared::id::TaskId;
use shared::run::Step;

use crate::engine::ask::by_agent::Reply;
use crate::engine::builder::{Builder, failure};
use crate::engine::conversation::{Conversation, Message, ToolCall, ToolCallState};
use crate::engine::input::{ModelToolCall, TaskFailure};
use crate::engine::invoke::{Started, is_sleep};
use crate::engine::phase::{Branch, Phase, is_due};
use crate::engine::question::Subject;
use crate::engine::ruling::{CallRulings, Ruling};
use crate::engine::transition::{Refusal, TaskKind};

impl Builder<'_> {
    // --- the calls of an agent's turn ---

    /// A model made calls: those that do not fit are answered at once, gated ones are asked about, the rest is held
    /// until that is decided.
    pub(in crate::engine) fn calls_made(
        &mut self,
        branch: u32,
        step: Step,
        mut conversation: Conversation,
        made: Vec<ModelToolCall>,
    ) {
        let own = self.flow.of(&step.node).flow.agents.get(&conversation.agent).map(|agent| agent.tools.as_slice());
        let own = own.unwrap_or_default();
        let mut gated: Vec<(String, &Gate)> = Vec::new();
        for (index, made) in made.into_iter().enumerate() {
            let id = format!("c{}-{}", conversation.turn, index + 1);
            let checked = if own.contains(&made.tool) {
                self.new_call(&step, None, id.clone(), &made.tool, &made.arguments)
            } else {
                Err(format!("there is no tool `{}`", made.tool))
            };
            let mut call = checked.unwrap_or_else(|why| {
                let result = error_text(FlowCode::ToolFailed, &why);
                let arguments = made.arguments.as_object().cloned().unwrap_or_default();
                ToolCall { state: ToolCallState::Done { result }, ..ToolCall::new(id, &made.tool, arguments) }
            });
            call.provider_id = made.provider_id;
            let held = call.state == ToolCallState::Held;
            let gate = if held { self.closed_gate(&step, None, Some(&conversation.agent), &call) } else { None };
            if let Some(gate) = gate {
                call.state = ToolCallState::Gated;
                gated.push((call.id.clone(), gate));
            } else {
                call.reads.clear();
            }
            conversation.calls.push(call);
        }
        if gated.is_empty() {
            return self.go_on_with_calls(branch, step, conversation);
        }
        let node = step.node.clone();
        self.settle(branch, &node, Phase::Agent { step, conversation });
        self.ask_about(branch, &gated);
    }

    /// Starts what is held once nothing is gated any more, and goes to the next turn once every call has a result.
    pub(in crate::engine) fn go_on_with_calls(&mut self, branch: u32, step: Step, mut conversation: Conversation) {
        let mut calls = std::mem::take(&mut conversation.calls);
        let mut asks = Vec::new();
        if calls.iter().all(|call| call.state != ToolCallState::Gated) {
            for call in calls.iter_mut().filter(|call| call.state == ToolCallState::Held) {
                self.start_agent_call(&step, &mut conversation, call);
                asks.extend((call.state == ToolCallState::Asks).then(|| call.id.clone()));
            }
        }
        let results: Vec<_> = calls.iter().filter_map(result_message).collect();
        if results.len() < calls.len() {
            conversation.calls = calls;
            let node = step.node.clone();
            self.settle(branch, &node, Phase::Agent { step, conversation });
            for call in asks {
                self.ask(Subject::Ask { branch, call });
            }
            return;
        }
        conversation.messages.extend(results);
        let instructed = std::mem::take(&mut conversation.instructed);
        conversation.messages.extend(instructed.into_iter().map(|text| Message::User { text }));
        conversation.turn += 1;
        self.start_turn(branch, step, conversation);
    }

    fn start_agent_call(&mut self, step: &Step, conversation: &mut Conversation, call: &mut ToolCall) {
        match self.start_call(step, call) {
            Ok(Started::Due) => {}
            Ok(Started::Asks) => {
                let most =
                    conversation.agent_in(self.flow, &step.node).map_or(Agent::DEFAULT_MAX_ASKS, Agent::max_asks);
                conversation.asks += 1;
                if conversation.asks > most {
                    let why = format!("you have asked people {most} times in this step, and may not ask again");
                    call.state = ToolCallState::Done { result: error_text(FlowCode::ToolFailed, &why) };
                }
            }
            Ok(Started::Done { result, writes }) => {
                self.emit_executed(step, call, Ok(&result));
                conversation.wrote.extend(writes.keys().cloned());
                self.write(step, &writes);
                call.state = ToolCallState::Done { result };
            }
            Err(why) => call.state = ToolCallState::Done { result: error_text(FlowCode::ToolFailed, &why) },
        }
    }

    // --- what happens to calls ---

    /// A tool has returned.
    pub(in crate::engine) fn tool_returned(&mut self, task: TaskId, result: Value) -> Result<(), Refusal> {
        match self.take_call(task).ok_or(Refusal::TaskOver)? {
            (branch, Phase::Agent { step, mut conversation }) => {
                self.end_task(task);
                if let Some(call) = conversation.calls.iter_mut().find(|call| is_due(call, task)) {
                    self.emit_executed(&step, call, Ok(&result));
                    call.state = ToolCallState::Done { result };
                }
                self.go_on_with_calls(branch, step, conversation);
            }
            (branch, phase) => {
                self.end_task(task);
                if let Phase::Tool { step, call, .. } = phase {
                    self.emit_executed(&step, &call, Ok(&result));
                    self.tool_done(branch, step, result);
                }
            }
        }
        Ok(())
    }

    /// A sleep is over.
    pub(in crate::engine) fn sleep_is_over(&mut self, task: TaskId) -> Result<(), Refusal> {
        let slept = self.state.branches.values().find_map(|branch| {
            let call = branch.phase.calls().iter().find(|call| is_due(call, task))?;
            let tool = self.flow.of(&branch.node).flow.tools.get(&call.tool)?;
            is_sleep(tool).then(|| call.arguments.get("duration").cloned())
        });
        let result = json!({ "slept": slept.ok_or(Refusal::TaskOver)? });
        self.tool_returned(task, result)
    }

    /// A tool call failed: it is tried again; else an agent is told, and a tool node fails. One that may have taken
    /// effect, and may not be repeated, counts as lost, whatever its failure policy says.
    pub(in crate::engine) fn tool_failed(&mut self, task: TaskId, why: &TaskFailure) -> Result<(), Refusal> {
        if why.uncertain && !self.is_repeatable(task) {
            return self.tool_lost(task, Some(&why.message));
        }
        let (branch, mut phase) = self.take_call(task).ok_or(Refusal::TaskOver)?;
        let tries = phase.tasks().iter().find(|(due, _)| *due == task).map_or(1, |(_, tries)| *tries);
        let Some((mut step, call)) = phase.step().cloned().zip(phase.call_mut(task)) else {
            return Err(Refusal::TaskOver);
        };
        let error = failure(why.code, &step.node, &why.message);
        let node = step.node.clone();
        if let Some(due_at) = self.next_try(&node, tries, why) {
            call.state = ToolCallState::Due { task, tries: tries + 1 };
            let repeatable = self.flow.of(&node).flow.tools.get(&call.tool).is_some_and(|tool| tool.idempotent);
            let kind = TaskKind::Tool { call: call.id.clone() };
            self.retry(task, &mut step, kind, repeatable, due_at, &error);
            if let Some(own) = phase.step_mut() {
                *own = step;
            }
            self.settle(branch, &node, phase);
            return Ok(());
        }
        self.end_task(task);
        self.emit_executed(&step, call, Err(&error));
        call.state = ToolCallState::Done { result: error_text(error.code, &error.message) };
        match phase {
            Phase::Agent { step, conversation } => self.go_on_with_calls(branch, step, conversation),
            _ => self.fail_step(branch, step, error),
        }
        Ok(())
    }

    fn is_repeatable(&self, task: TaskId) -> bool {
        let due = |branch: &Branch| {
            let call = branch.phase.calls().iter().find(|call| is_due(call, task))?;
            self.flow.of(&branch.node).flow.tools.get(&call.tool).map(|tool| tool.idempotent)
        };
        self.state.branches.values().find_map(due).unwrap_or(false)
    }

    /// A call that may not be repeated was lost in flight, with its worker or for another reason: a person is asked what
    /// became of it.
    pub(in crate::engine) fn tool_lost(&mut self, task: TaskId, why: Option<&str>) -> Result<(), Refusal> {
        let (branch, mut phase) = self.take_call(task).ok_or(Refusal::TaskOver)?;
        self.end_task(task);
        let (Some(step), Some(call)) = (phase.step().cloned(), phase.call_mut(task)) else {
            return Err(Refusal::TaskOver);
        };
        call.state = ToolCallState::Lost;
        let call = call.id.clone();
        self.settle(branch, &step.node, phase);
        self.ask(Subject::Lost { branch, call, why: why.map(str::to_owned) });
        Ok(())
    }

    /// Calls of an agent's turn have their answers, and guardrails have looked at them.
    pub(in crate::engine) fn agent_calls_decided(
        &mut self,
        branch: u32,
        step: Step,
        mut conversation: Conversation,
        mut rulings: CallRulings,
        instructions: Option<String>,
    ) {
        conversation.instructed.extend(instructions);
        let mut calls = std::mem::take(&mut conversation.calls);
        for call in &mut calls {
            if let Some(ruling) = rulings.remove(&call.id) {
                self.agent_call_decided(&step, &mut conversation, call, ruling);
            }
        }
        conversation.calls = calls;
        self.go_on_with_calls(branch, step, conversation);
    }

    fn agent_call_decided(
        &mut self,
        step: &Step,
        conversation: &mut Conversation,
        call: &mut ToolCall,
        ruling: Ruling<ToolCall>,
    ) {
        call.reads.clear();
        match ruling {
            Ruling::Proceeds(as_it_runs) => {
                *call = ToolCall { reads: JsonMap::new(), ..as_it_runs };
                // A lost call is run again at once: the others of its turn were started before.
                if call.state == ToolCallState::Lost {
                    self.start_agent_call(step, conversation, call);
                } else {
                    call.state = ToolCallState::Held;
                }
            }
            Ruling::Answered(text) => call.state = ToolCallState::Done { result: text.into() },
            Ruling::Refused(code, why) => call.state = ToolCallState::Done { result: error_text(code, &why) },
        }
    }

    /// People have answered what a call asked by itself, or nobody will.
    pub(in crate::engine) fn call_replied(&mut self, branch: u32, mut phase: Phase, call: &str, reply: Reply) {
        let Some(step) = phase.step().cloned() else { return };
        let reply = reply.map_err(|(code, why)| failure(code, &step.node, why));
        let own = phase.calls_mut().iter_mut().find(|own| own.id == *call);
        if let Some(own) = own {
            self.emit_executed(&step, own, reply.as_ref());
            let told = |error: &RunError| error_text(error.code, &error.message);
            own.state = ToolCallState::Done { result: reply.clone().unwrap_or_else(|error| told(&error)) };
        }
        match (phase, reply) {
            (Phase::Agent { step, conversation }, _) => self.go_on_with_calls(branch, step, conversation),
            (_, Ok(result)) => self.tool_done(branch, step, result),
            (_, Err(error)) => self.fail_step(branch, step, error),
        }
    }

    fn take_call(&mut self, task: TaskId) -> Option<(u32, Phase)> {
        let (number, Branch { phase, .. }) =
            self.take_branch(|phase| phase.calls().iter().any(|call| is_due(call, task)))?;
        Some((number, phase))
    }
}

impl Phase {
    fn call_mut(&mut self, task: TaskId) -> Option<&mut ToolCall> {
        self.calls_mut().iter_mut().find(|call| is_due(call, task))
    }
}

/// How an agent is told that a call has no result.
fn error_text(code: FlowCode, message: &str) -> Value {
    format!("{code}: {message}").into()
}

fn result_message(call: &ToolCall) -> Option<Message> {
    match &call.state {
        ToolCallState::Done { result } => Some(Message::Tool {
            provider_id: call.provider_id.clone(),
            tool: call.tool.clone(),
            content: result.clone(),
        }),
        _ => None,
    }
}
