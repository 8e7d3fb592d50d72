//! Deadlines: a review whose time is up is expired before anything else is heard, whoever comes first to say so.

use shared::JsonMap;
use shared::decision::Via;
use shared::definition::{ChoiceKind, NodeKind, OnTimeout};
use shared::error::FlowCode;
use shared::id::TaskId;
use shared::run::Step;

use super::builder::{Builder, failure};
use super::decide::waits_for;
use super::remember::Remembered;
use super::state::{Asked, Branch, Phase};
use super::transition::{Refusal, TaskKind};

impl Builder<'_> {
    /// Expires every pending review whose deadline has passed, the earliest first. Says whether there was one.
    pub(super) fn expire_overdue(&mut self) -> bool {
        let mut expired = false;
        while let Some(asked) = self.overdue() {
            self.time_is_up(asked);
            expired = true;
        }
        expired
    }

    fn overdue(&self) -> Option<Asked> {
        let all = self.state.branches.values().flat_map(|branch| branch.phase.asked());
        let due = all.filter_map(|asked| {
            let expires_at = self.reviews.get(&asked.review)?.expires_at?;
            (expires_at <= self.now).then_some((expires_at, asked.review, *asked))
        });
        due.min_by_key(|(at, review, _)| (*at, *review)).map(|(_, _, asked)| asked)
    }

    /// A timer's task is due. Deadlines that have passed were applied before this is asked.
    pub(super) fn due(&mut self, task: TaskId) -> Result<(), Refusal> {
        if self.is_ended(task) {
            return Ok(());
        }
        let has_deadline = |phase: &Phase| phase.asked().iter().any(|asked| asked.deadline == Some(task));
        if let Some(branch) = self.state.branches.values().find(|branch| has_deadline(&branch.phase)) {
            // The clock of whoever claimed the task is ahead of this one: it stays due at its time.
            let asked = branch.phase.asked().iter().find(|asked| asked.deadline == Some(task)).copied();
            let step = branch.phase.step().cloned();
            if let (Some(asked), Some(step)) = (asked, step)
                && let Some(at) = self.reviews.get(&asked.review).and_then(|review| review.expires_at)
            {
                self.move_task(task, &step, TaskKind::Deadline { review: asked.review }, at, true);
                return Ok(());
            }
        }
        self.wake(task)
    }

    fn time_is_up(&mut self, asked: Asked) {
        let Some((number, Branch { phase, .. })) = self.take_branch(waits_for(asked.review)) else { return };
        let Some(review) = self.reviews.get(&asked.review).cloned() else { return };
        let reason = "nobody decided in time".to_owned();
        self.expire(asked, &reason);
        let on_timeout = review.on_timeout.clone().unwrap_or(OnTimeout::Reject);
        if on_timeout == OnTimeout::Error {
            let Some(mut step) = phase.step().cloned() else { return };
            let error = failure(FlowCode::FlowHumanTimeout, &step.node, reason);
            self.failed_step(&mut step, error.clone());
            self.end_phase(&phase, asked);
            self.fail_run(error);
            return;
        }
        let approves = on_timeout == OnTimeout::Approve;
        match phase {
            Phase::Human { step, .. } => self.human_timed_out(number, step, approves, reason),
            phase => self.actions_unanswered(number, phase, &review, approves, &reason),
        }
    }

    /// `approve` acts as the first accept option, anything else as stop.
    fn human_timed_out(&mut self, number: u32, mut step: Step, approves: bool, reason: String) {
        let kind = if approves { ChoiceKind::Accept } else { ChoiceKind::Stop };
        let choice = self.flow.node(&step.node).and_then(|node| match &node.kind {
            NodeKind::Human(human) => human.options.iter().find(|choice| choice.kind == kind),
            _ => None,
        });
        let nothing = JsonMap::new();
        let remembered = Remembered {
            option: choice.map(|choice| choice.id.as_str()),
            kind: Some(kind),
            text: None,
            comment: None,
            edits: &nothing,
            metadata: &nothing,
            by: &[],
            at: self.now,
            via: Via::Timeout,
        };
        self.remember(&step.node, &remembered);
        step.note = Some(reason.clone());
        if approves {
            self.finish_step(number, step, &JsonMap::new());
        } else {
            self.stop(number, step, reason);
        }
    }

    /// Ends what belongs to a phase that will not be put back: its tasks, and its reviews but the one that expired.
    fn end_phase(&mut self, phase: &Phase, expired: Asked) {
        self.abandon(phase);
        for asked in phase.asked().iter().filter(|asked| **asked != expired).copied() {
            self.withdraw(asked, Via::Run, None, "the run has failed");
        }
    }
}
