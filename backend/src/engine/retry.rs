//! Retries of failed calls, according to the failure policy of the node, and of calls whose worker was lost.

use std::time::Duration;

use shared::definition::{Backoff, Failure};
use shared::error::{FlowCode, FlowError};
use shared::id::{NodeId, TaskId};
use shared::run::{Step, StepStatus};
use shared::time::{Span, Timestamp};

use super::builder::{Builder, failure};
use super::input::TaskFailure;
use super::question::Asked;
use super::transition::{Refusal, TaskKind};

const DEFAULT_INITIAL: Span = Span::secs(1);
const DEFAULT_MAX: Span = Span::secs(60);
/// The longest wait that whoever refused a call may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_hours(1);

impl Builder<'_> {
    /// Returns the failure policy of a node, or else of its flow.
    pub(super) fn failure_policy(&self, node: &NodeId) -> Failure {
        let own = self.flow.node(node).and_then(|node| node.failure.clone());
        own.or_else(|| self.flow.of(node).flow.defaults.failure.clone()).unwrap_or_default()
    }

    /// Returns the time of the next attempt after `tries` attempts; `None` if there is none.
    pub(super) fn next_try(&mut self, node: &NodeId, tries: u32, failure: &TaskFailure) -> Option<Timestamp> {
        let policy = self.failure_policy(node);
        if !failure.retryable || tries > policy.retries {
            return None;
        }
        let wait = wait(&policy, tries, self.ids.fraction());
        // An earlier attempt would be refused again, whatever the policy says.
        let asked = failure.retry_after.map_or(Duration::ZERO, |after| after.0.min(MAX_RETRY_AFTER));
        Some(self.now.after(wait.max(asked)))
    }

    /// Returns the time of the next attempt to ask a handler after `tries` attempts; `None` if that is too late for its
    /// deadline, or if another attempt does not help.
    pub(super) fn next_try_until(&mut self, until: Timestamp, tries: u32, failure: &TaskFailure) -> Option<Timestamp> {
        let wait = wait(&Failure::default(), tries, self.ids.fraction());
        let asked = failure.retry_after.map_or(Duration::ZERO, |after| after.0.min(MAX_RETRY_AFTER));
        let due_at = self.now.after(wait.max(asked));
        (failure.retryable && due_at < until).then_some(due_at)
    }

    /// Schedules another attempt of a call, under the same task.
    pub(super) fn retry(
        &mut self,
        task: TaskId,
        step: &mut Step,
        kind: TaskKind,
        repeatable: bool,
        due_at: Timestamp,
        error: &FlowError,
    ) {
        step.tries += 1;
        step.status = StepStatus::Retrying;
        self.put_step(step);
        self.move_task(task, step, kind, due_at, repeatable);
        self.emit_retrying(step, error, due_at);
    }

    /// Emits that a call is made again because its worker was lost or stopped. The worker that has the task now goes on
    /// with it, and the failure policy does not count the lost attempt: the worker limits how many there may be.
    pub(super) fn call_again(&mut self, task: TaskId) -> Result<(), Refusal> {
        let is_its = |(its, _): (TaskId, u32)| its == task;
        let asked = self.state.questions.iter().find(|question| question.task().is_some_and(is_its));
        let asked = asked.and_then(|question| Some((question.subject.branch()?, &question.asked)));
        let branch = match asked {
            Some((branch, _)) => self.state.branches.get_mut(&branch),
            None => self.state.branches.values_mut().find(|branch| branch.phase.tasks().into_iter().any(is_its)),
        };
        let phase = branch.map(|branch| &mut branch.phase).ok_or(Refusal::TaskOver)?;
        let code = match asked {
            Some((_, Asked::Judge { .. })) => FlowCode::ModelFailed,
            Some(_) => FlowCode::HandlerFailed,
            None if phase.calls_model(task) => FlowCode::ModelFailed,
            None => FlowCode::ToolFailed,
        };
        let step = phase.step_mut().ok_or(Refusal::TaskOver)?;
        let message = format!("the worker of attempt {} was lost or stopped without a result", step.tries);
        step.tries += 1;
        let step = step.clone();
        self.put_step(&step);
        self.emit_retrying(&step, &failure(code, &step.node, message), self.now);
        Ok(())
    }
}

/// Returns the wait after attempt number `tries`. With exponential backoff it doubles, and varies by up to a quarter so
/// that runs that failed together do not retry together.
fn wait(policy: &Failure, tries: u32, fraction: f64) -> Duration {
    let initial = policy.initial.unwrap_or(DEFAULT_INITIAL).0;
    let max = policy.max.unwrap_or(DEFAULT_MAX).0;
    match policy.backoff {
        Backoff::Fixed => initial.min(max),
        Backoff::Exponential => {
            let doubled = initial.saturating_mul(2_u32.saturating_pow(tries.saturating_sub(1))).min(max);
            let jittered = doubled.as_secs_f64() * (0.75 + fraction / 2.0);
            Duration::try_from_secs_f64(jittered).unwrap_or(max).min(max)
        }
    }
}
