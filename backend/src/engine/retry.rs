//! Retries of failed calls, according to the failure policy of the node.

use std::time::Duration;

use shared::definition::{Backoff, Failure};
use shared::error::RunError;
use shared::id::{NodeId, TaskId};
use shared::run::{Step, StepStatus};
use shared::time::{Span, Timestamp};

use super::builder::Builder;
use super::input::TaskFailure;
use super::transition::TaskKind;

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
        error: &RunError,
    ) {
        step.tries += 1;
        step.status = StepStatus::Retrying;
        self.put_step(step);
        self.move_task(task, step, kind, due_at, repeatable);
        self.emit_retrying(step, error, due_at);
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
