//! Tool calls: their results, failures and reviews, and the effects of these on an agent's turn. Calls without a gate
//! wait for the gated ones of their turn, and are started together with those that were approved. A failure reaches the
//! agent as `<CODE>: <message>`.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use shared::definition::{Agent, Gate, ToolKind};
use shared::error::FlowCode;
use shared::id::TaskId;
use shared::run::Step;

use crate::engine::builder::{Builder, failure};
use crate::engine::conversation::{CallSite, Conversation, Message, ToolCall, ToolCallState};
use crate::engine::input::{ModelToolCall, TaskFailure};
use crate::engine::invoke::{Started, is_sleep};
use crate::engine::next::{Reply, Takeover};
use crate::engine::phase::{Branch, Phase, is_due};
use crate::engine::question::Subject;
use crate::engine::ruling::{CallRulings, Ruling};
use crate::engine::transition::{Refusal, TaskKind};

impl<'f> Builder<'f> {
    // --- the calls of an agent's turn ---

    /// Takes the calls of a model's answer: those that are not valid are answered at once, gated ones are asked about,
    /// and the rest is held until that is decided.
    pub(in crate::engine) fn calls_made(
        &mut self,
        branch: u32,
        step: Step,
        mut conversation: Conversation,
        made: Vec<ModelToolCall>,
    ) {
        let own = conversation.tools_in(self.flow, &step.node);
        let mut gated: Vec<(String, &'f Gate)> = Vec::new();
        for (index, made) in made.into_iter().enumerate() {
            let id = conversation.call_id(index);
            let checked = if own.contains(&made.tool) {
                self.new_call(&step, self.caller(&step, &conversation), None, id.clone(), &made.tool, &made.arguments)
            } else {
                Err(format!("there is no tool `{}`", made.tool))
            };
            let mut call = checked.unwrap_or_else(|why| {
                let arguments = made.arguments.as_object().cloned().unwrap_or_default();
                ToolCall {
                    state: ToolCallState::failed(FlowCode::ToolFailed, &why),
                    ..ToolCall::new(id, &made.tool, arguments)
                }
            });
            call.provider_id = made.provider_id;
            let held = call.state == ToolCallState::Held;
            let at = CallSite::new(&step, Some(conversation.calling_agent()));
            match held.then(|| self.hold_back(at, &mut call)).flatten() {
                Some(gate) => gated.push((call.id.clone(), gate)),
                None => call.reads.clear(),
            }
            conversation.calls.push(call);
        }
        if gated.is_empty() {
            return self.go_on_with_calls(branch, step, conversation);
        }
        self.settle(branch, Phase::Agent { step, conversation });
        self.ask_about(branch, &gated);
    }

    /// Starts held calls once no call is gated any more, and goes to the next turn once every call has a result.
    pub(in crate::engine) fn go_on_with_calls(&mut self, branch: u32, step: Step, mut conversation: Conversation) {
        let mut calls = std::mem::take(&mut conversation.calls);
        let (mut asks, mut tasks) = (Vec::new(), Vec::new());
        if calls.iter().all(|call| call.state != ToolCallState::Gated) {
            let starts = |call: &&mut ToolCall| matches!(call.state, ToolCallState::Held | ToolCallState::Vetted);
            for call in calls.iter_mut().filter(starts) {
                self.start_agent_call(&step, &mut conversation, call);
                let id = call.id.clone();
                match call.state {
                    ToolCallState::Asks => asks.push(Subject::Ask { branch, call: id, paused: false }),
                    ToolCallState::Vetting => asks.push(Subject::Specialist { branch, call: id }),
                    ToolCallState::Delegated => tasks.push(id),
                    _ => {}
                }
            }
        }
        conversation.leave_out_results(&mut calls);
        if !calls.iter().all(|call| matches!(call.state, ToolCallState::Done { .. })) {
            conversation.calls = calls;
            let own = step.clone();
            self.settle(branch, Phase::Agent { step, conversation });
            for subject in asks {
                self.ask(subject);
            }
            for call in tasks {
                self.begin_task(branch, &own, &call);
            }
            return;
        }
        conversation.messages.extend(calls.iter().filter_map(result_message));
        self.note_results(&step, &calls);
        let instructed = std::mem::take(&mut conversation.instructed);
        conversation.messages.extend(instructed.into_iter().map(|text| Message::User { text }));
        conversation.turn += 1;
        self.meet_specialists(&mut conversation);
        self.start_turn(branch, step, conversation);
    }

    fn start_agent_call(&mut self, step: &Step, conversation: &mut Conversation, call: &mut ToolCall) {
        let asks = self.asks_people(step, call);
        let most = conversation.agent_in(self.flow, &step.node).map_or(Agent::DEFAULT_MAX_ASKS, Agent::max_asks);
        if asks && self.state.used_by_agent_of(conversation).asks >= most {
            let why = format!("you have asked people {most} times in this step, and may not ask again");
            call.state = ToolCallState::failed(FlowCode::ToolFailed, &why);
            return;
        }
        conversation.asks += u32::from(asks);
        let caller = self.caller(step, conversation);
        let started = self.start_call(step, caller, call);
        match started {
            Ok(Started::Due | Started::Asks | Started::Delegated | Started::Vetting) => {}
            Ok(Started::HandsOver) => {
                let result = self.hand_over_to(step, Some(&conversation.agent), call);
                self.emit_executed(step, call, Ok(&result));
                call.state = ToolCallState::returned(result);
            }
            Ok(Started::Done { result, writes }) => {
                self.emit_executed(step, call, Ok(&result));
                conversation.wrote.extend(writes.keys().cloned());
                self.write(step, &writes);
                call.state = ToolCallState::returned(result);
            }
            Err(why) => call.state = ToolCallState::failed(FlowCode::ToolFailed, &why),
        }
    }

    fn asks_people(&self, step: &Step, call: &ToolCall) -> bool {
        let tool = self.flow.of(&step.node).tool(&call.tool);
        matches!(tool.as_ref().map(|tool| &tool.kind), Some(ToolKind::Builtin(builtin)) if builtin.asks_people())
    }

    // --- what happens to calls ---

    /// Applies the result of a tool call.
    pub(in crate::engine) fn tool_returned(&mut self, task: TaskId, result: Value) -> Result<(), Refusal> {
        match self.take_call(task).ok_or(Refusal::TaskOver)? {
            (branch, Phase::Agent { step, mut conversation }) => {
                self.end_task(task);
                if let Some(call) = conversation.calls.iter_mut().find(|call| is_due(call, task)) {
                    self.emit_executed(&step, call, Ok(&result));
                    call.state = ToolCallState::returned(result);
                }
                self.go_on_with_calls(branch, step, conversation);
            }
            (branch, phase) => {
                self.end_task(task);
                if let Phase::Tool { step, call, wrote, .. } = phase {
                    self.emit_executed(&step, &call, Ok(&result));
                    self.tool_done(branch, step, result, &wrote);
                }
            }
        }
        Ok(())
    }

    /// Ends a call of `sleep` whose time has come.
    pub(in crate::engine) fn sleep_is_over(&mut self, task: TaskId) -> Result<(), Refusal> {
        let slept = self.state.branches.values().find_map(|branch| {
            let call = branch.phase.calls().iter().find(|call| is_due(call, task))?;
            let tool = self.flow.of(&branch.node).tool(&call.tool)?;
            is_sleep(&tool).then(|| call.arguments.get("duration").cloned())
        });
        let result = json!({ "slept": slept.ok_or(Refusal::TaskOver)? });
        self.tool_returned(task, result)
    }

    /// Handles a failed tool call: retries it, or else tells an agent, or fails a tool node. A call that may have taken
    /// effect and must not be repeated counts as lost, whatever the failure policy says.
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
        if let Some(due_at) = self.next_try(&step.node, tries, why) {
            call.state = ToolCallState::Due { task, tries: tries + 1 };
            let repeatable = self.flow.of(&step.node).tool(&call.tool).is_some_and(|tool| tool.idempotent);
            let kind = TaskKind::Tool { call: call.id.clone() };
            self.retry(task, &mut step, kind, repeatable, due_at, &error);
            if let Some(own) = phase.step_mut() {
                *own = step;
            }
            self.settle(branch, phase);
            return Ok(());
        }
        self.end_task(task);
        self.emit_executed(&step, call, Err(&error));
        call.state = ToolCallState::failed(error.code, &error.message);
        match phase {
            Phase::Agent { step, conversation } => self.go_on_with_calls(branch, step, conversation),
            _ => self.fail_step(branch, step, error),
        }
        Ok(())
    }

    fn is_repeatable(&self, task: TaskId) -> bool {
        let due = |branch: &Branch| {
            let call = branch.phase.calls().iter().find(|call| is_due(call, task))?;
            self.flow.of(&branch.node).tool(&call.tool).map(|tool| tool.idempotent)
        };
        self.state.branches.values().find_map(due).unwrap_or(false)
    }

    /// Marks a call as lost in flight, and asks a person what became of it. `why` is `None` if its worker was lost.
    pub(in crate::engine) fn tool_lost(&mut self, task: TaskId, why: Option<&str>) -> Result<(), Refusal> {
        let (branch, mut phase) = self.take_call(task).ok_or(Refusal::TaskOver)?;
        self.end_task(task);
        let Some(call) = phase.call_mut(task) else { return Err(Refusal::TaskOver) };
        call.state = ToolCallState::Lost;
        let call = call.id.clone();
        self.settle(branch, phase);
        self.ask(Subject::Lost { branch, call, why: why.map(str::to_owned) });
        Ok(())
    }

    /// Applies the rulings on calls of an agent's turn.
    pub(in crate::engine) fn agent_calls_decided(
        &mut self,
        branch: u32,
        step: Step,
        mut conversation: Conversation,
        mut rulings: CallRulings,
        instructions: Option<String>,
    ) {
        let mut calls = std::mem::take(&mut conversation.calls);
        conversation.instructed.extend(instructions);
        let mut gated: Vec<(String, &'f Gate)> = Vec::new();
        for call in &mut calls {
            if let Some(ruling) = rulings.remove(&call.id) {
                let gate = self.agent_call_decided(&step, &mut conversation, call, ruling);
                gated.extend(gate.map(|gate| (call.id.clone(), gate)));
            }
        }
        conversation.calls = calls;
        self.go_on_with_calls(branch, step, conversation);
        self.ask_about(branch, &gated);
    }

    /// Applies a ruling to a call. Returns the gate that asks next, if another one closes.
    fn agent_call_decided(
        &mut self,
        step: &Step,
        conversation: &mut Conversation,
        call: &mut ToolCall,
        ruling: Ruling<ToolCall>,
    ) -> Option<&'f Gate> {
        match ruling {
            Ruling::Proceeds(as_it_runs) => {
                let at = CallSite::new(step, Some(conversation.calling_agent()));
                let (asked, changed) = (self.asking_gate(at, call), call.digest != as_it_runs.digest);
                *call = as_it_runs;
                if call.state == ToolCallState::Gated || changed {
                    match self.pass_gate(at, asked, call) {
                        Ok(Some(gate)) => return Some(gate),
                        Ok(None) => {}
                        Err(why) => call.state = ToolCallState::failed(FlowCode::ToolPermissionDenied, &why),
                    }
                }
                match call.state {
                    ToolCallState::Vetting => call.state = ToolCallState::Vetted,
                    ToolCallState::Gated => call.state = ToolCallState::Held,
                    // A lost call is run again at once: the others of its turn were started before.
                    ToolCallState::Lost => self.start_agent_call(step, conversation, call),
                    _ => {}
                }
            }
            Ruling::Answered(result) => call.state = ToolCallState::returned(result),
            Ruling::Refused(code, why) => call.state = ToolCallState::failed(code, &why),
        }
        call.reads.clear();
        None
    }

    /// Applies the reply to a call that has asked people or called an agent.
    pub(in crate::engine) fn call_replied(&mut self, branch: u32, mut phase: Phase, call: &str, reply: Reply) {
        let Some(step) = phase.step().cloned() else { return };
        let reply = match reply {
            Reply::Returns(result)
            | Reply::TakesOver {
                result,
                then: Takeover::Answers { .. } | Takeover::Writes { .. } | Takeover::GivesTo { .. },
            } => Ok(result),
            Reply::TakesOver { then: Takeover::Stops { reason }, .. } => {
                Err(failure(FlowCode::FlowHumanRejected, &step.node, reason))
            }
            Reply::Fails(code, why) => Err(failure(code, &step.node, why)),
        };
        let own = phase.calls_mut().iter_mut().find(|own| own.id == *call);
        if let Some(own) = own {
            self.emit_executed(&step, own, reply.as_ref());
            own.state = match &reply {
                Ok(result) => ToolCallState::returned(result.clone()),
                Err(error) => ToolCallState::failed(error.code, &error.message),
            };
        }
        match (phase, reply) {
            (Phase::Agent { step, conversation }, _) => self.go_on_with_calls(branch, step, conversation),
            (Phase::Tool { wrote, .. }, Ok(result)) => self.tool_done(branch, step, result, &wrote),
            (_, Ok(result)) => self.tool_done(branch, step, result, &BTreeSet::new()),
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

fn result_message(call: &ToolCall) -> Option<Message> {
    match &call.state {
        ToolCallState::Done { result, .. } => Some(Message::Tool {
            provider_id: call.provider_id.clone(),
            tool: call.tool.clone(),
            content: result.clone(),
        }),
        _ => None,
    }
}
