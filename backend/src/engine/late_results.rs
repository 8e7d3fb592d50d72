//! Results that come after the end of the run, or of the map that they belong to: recorded once, without any effect.
//!
//! When a run ends, nothing can be said about the calls that are under way: a message may have been sent, a model may
//! have been paid. So whoever has one may still say what came of it, and the record has it.

use serde::{Deserialize, Serialize};
use shared::error::FlowCode;
use shared::id::TaskId;
use shared::run::Step;

use super::agent;
use super::builder::{Builder, failure};
use super::call::is_due;
use super::conversation::ToolCall;
use super::input::Input;
use super::invoke::is_sleep;
use super::state::Phase;
use super::transition::Refusal;

/// A call that was under way when the run, or its map, ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub enum Unanswered {
    /// A model's turn.
    Model {
        /// The visit.
        step: Step,
        /// The agent.
        agent: String,
        /// `provider/model`.
        model: String,
        /// The turn, from 1.
        turn: u32,
    },
    /// A tool call.
    Tool {
        /// The visit.
        step: Step,
        /// The call.
        tool_call: Box<ToolCall>,
    },
}

impl Builder<'_> {
    /// The run or a map ends while a phase waits: its timers are over, and what comes of its calls is only recorded.
    pub(super) fn abandon(&mut self, phase: &Phase) {
        for (task, _) in phase.tasks() {
            match self.unanswered(phase, task) {
                Some(unanswered) if self.abandon_task(task) => {
                    self.state.unanswered.insert(task, unanswered);
                }
                Some(_) => {}
                None => self.end_task(task),
            }
        }
    }

    /// The call of a task; none where the task is a sleep.
    fn unanswered(&self, phase: &Phase, task: TaskId) -> Option<Unanswered> {
        let step = phase.step()?.clone();
        match phase {
            Phase::Agent { conversation, .. } if conversation.model_task == Some(task) => {
                let model = conversation.model_in(self.flow, &step.node).unwrap_or_default().to_owned();
                Some(Unanswered::Model { step, agent: conversation.agent.clone(), model, turn: conversation.turn })
            }
            _ => {
                let call = phase.calls().iter().find(|call| is_due(call, task))?;
                let sleeps = self.flow.of(&step.node).flow.tools.get(&call.tool).is_some_and(is_sleep);
                (!sleeps).then(|| Unanswered::Tool { step, tool_call: Box::new(call.clone()) })
            }
        }
    }

    /// It is over, and a worker says what came of a call.
    pub(super) fn late(&mut self, task: TaskId, input: &Input) -> Result<(), Refusal> {
        let unanswered = self.state.unanswered.get(&task).cloned().ok_or(Refusal::TaskOver)?;
        self.late = true;
        match (unanswered, input) {
            (Unanswered::Model { step, agent, model, turn }, Input::ModelAnswered { answer, .. }) => {
                let usage = agent::usage(&agent, &model, answer);
                self.emit_answered(&step, turn, answer, &usage);
            }
            (Unanswered::Model { step, turn, .. }, Input::TaskFailed { failure: why, .. }) => {
                let error = failure(why.code, &step.node, &why.message);
                self.emit_unanswered(&step, turn, error);
            }
            (Unanswered::Tool { step, tool_call }, Input::ToolReturned { result, .. }) => {
                self.emit_executed(&step, &tool_call, Ok(result));
            }
            (Unanswered::Tool { step, tool_call }, Input::TaskFailed { failure: why, .. }) => {
                let error = failure(why.code, &step.node, &why.message);
                self.emit_executed(&step, &tool_call, Err(&error));
            }
            (Unanswered::Tool { step, tool_call }, Input::TaskLost { .. }) => {
                let message = "its worker was lost; nobody knows whether it took effect";
                let error = failure(FlowCode::ToolFailed, &step.node, message);
                self.emit_executed(&step, &tool_call, Err(&error));
            }
            _ => return Err(Refusal::TaskOver),
        }
        self.state.unanswered.remove(&task);
        self.end_task(task);
        Ok(())
    }
}
