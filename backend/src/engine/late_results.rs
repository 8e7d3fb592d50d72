//! Results of calls that nothing waits for any more, such as after the end of the run or of a map: recorded once,
//! without any effect.
//!
//! When a run ends, the outcome of calls in progress is unknown: a message may have been sent, a model may have been
//! paid. So their workers may still report the results, which are recorded in the log. The store says afterwards which
//! calls no worker had claimed: no result of these can come.

use shared::error::FlowCode;
use shared::id::TaskId;

use super::ask::content::judge_of;
use super::builder::{Builder, failure};
use super::conversation::Conversation;
use super::input::Input;
use super::invoke::is_sleep;
use super::model_call::usage;
use super::phase::{Phase, is_due};
use super::question::Asked;
use super::state::{RunState, Unanswered};
use super::transition::Refusal;

impl Builder<'_> {
    /// Abandons the calls of a branch that ends: their results are only recorded.
    pub(super) fn abandon(&mut self, branch: u32) {
        let own = self.state.phase(branch).map(Phase::tasks).unwrap_or_default();
        for (task, _) in own {
            self.abandon_call(branch, task);
        }
    }

    /// Abandons a call of a branch, or of a handler that is asked in its place. The task ends at once if no worker can
    /// hold it, or if its result need not be recorded.
    pub(super) fn abandon_call(&mut self, branch: u32, task: TaskId) {
        match self.unanswered(branch, task) {
            Some(unanswered) if self.abandon_task(task) => {
                self.state.unanswered.insert(task, unanswered);
            }
            Some(_) => {}
            None => self.end_task(task),
        }
    }

    /// Returns the call of a task. `None` if its result need not be recorded: a sleep, or a program that was only
    /// asked.
    fn unanswered(&self, branch: u32, task: TaskId) -> Option<Unanswered> {
        let phase = self.state.phase(branch)?;
        let step = phase.step()?.clone();
        let model = |conversation: &Conversation, model: Option<&str>| Unanswered::Model {
            step: step.clone(),
            agent: conversation.agent.clone(),
            model: model.unwrap_or_default().to_owned(),
            turn: conversation.turn,
        };
        if let Some(conversation) = phase.conversation().filter(|_| phase.calls_model(task)) {
            return Some(model(conversation, conversation.model_in(self.flow, &step.node)));
        }
        let mut questions = self.state.questions_of(branch);
        if let Some((question, Asked::Judge { conversation, .. })) = questions
            .find(|question| question.task().is_some_and(|(its, _)| its == task))
            .map(|question| (question, &question.asked))
        {
            return Some(model(
                conversation,
                judge_of(self.flow, &self.state, question).map(|judge| judge.model.as_str()),
            ));
        }
        let call = phase.calls().iter().find(|call| is_due(call, task))?;
        let sleeps = self.flow.of(&step.node).tool(&call.tool).is_some_and(|tool| is_sleep(&tool));
        (!sleeps).then(|| Unanswered::Tool { step: step.clone(), tool_call: Box::new(call.clone()) })
    }

    /// Records the late result of an abandoned call, and ends its task.
    pub(super) fn record_late(&mut self, task: TaskId, input: &Input) -> Result<(), Refusal> {
        let unanswered = self.state.unanswered.get(&task).cloned().ok_or(Refusal::TaskOver)?;
        self.is_late = true;
        match (unanswered, input) {
            (Unanswered::Model { step, agent, model, turn }, Input::ModelAnswered { answer, .. }) => {
                let usage = usage(&agent, &model, answer.usage());
                self.emit_answered(&step, turn, None, answer, &usage);
            }
            (Unanswered::Model { step, agent, model, turn }, Input::TaskFailed { failure: why, .. }) => {
                let error = failure(why.code, &step.node, &why.message);
                let usage = why.usage.map(|used| usage(&agent, &model, used));
                self.emit_unanswered(&step, turn, error, usage.as_ref());
            }
            (Unanswered::Tool { step, tool_call }, Input::ToolReturned { result, .. }) => {
                self.emit_executed(&step, &tool_call, Ok(result));
            }
            (Unanswered::Tool { step, tool_call }, Input::TaskFailed { failure: why, .. }) => {
                let error = failure(why.code, &step.node, &why.message);
                self.emit_executed(&step, &tool_call, Err(&error));
            }
            (Unanswered::Tool { step, tool_call }, Input::TaskLost { .. }) => {
                let message = "its worker was lost; it is not known whether the call took effect";
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

impl RunState {
    /// Forgets the abandoned calls whose task is gone, since no result of them can come, and returns their tasks. The
    /// store records this with the preceding input, so that a replay does the same.
    pub fn forget_unanswered(&mut self, is_left: impl Fn(TaskId) -> bool) -> Vec<TaskId> {
        self.unanswered.extract_if(.., |task, _| !is_left(*task)).map(|(task, _)| task).collect()
    }
}
