//! Ends branches, called flows and the run: withdraws pending reviews, ends timers, abandons calls, and cancels steps.

use shared::author::Author;
use shared::decision::Via;
use shared::error::FlowError;
use shared::log::{EventData, OfRun, RunCancelled, RunCompleted};
use shared::run::{Step, StepStatus};

use super::builder::Builder;
use super::next::EndedStep;
use super::phase::{Branch, Phase};
use super::projection;
use super::state::RunOutcome;

impl Builder<'_> {
    pub(super) fn end_run(&mut self, outcome: RunOutcome) {
        let (why, by) = match &outcome {
            RunOutcome::Completed { .. } => ("the run has completed".to_owned(), None),
            RunOutcome::Failed { error, .. } => (format!("the run has failed: {error}"), None),
            RunOutcome::Cancelled { by, token, reason, .. } => {
                let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
                (format!("the run was cancelled{reason}"), Some(Author { name: by.clone(), token: *token }))
            }
        };
        self.arrivals.clear();
        self.answers.clear();
        while let Some(EndedStep { mut step, .. }) = self.ended.pop_front() {
            self.end_step(&mut step, StepStatus::Cancelled);
        }
        while let Some(number) = self.state.branches.keys().next().copied() {
            self.end_branch(number, by.as_ref(), &why);
        }
        self.emit_end(&outcome, by);
        self.state.outcome = Some(outcome);
    }

    /// Ends a branch, with everything that it waits for and the flow that it called.
    pub(super) fn end_branch(&mut self, number: u32, by: Option<&Author>, why: &str) {
        self.end_work(number, by, why);
        let Some(Branch { phase, .. }) = self.state.branches.remove(&number) else { return };
        if let Phase::Flow { step } = &phase {
            self.end_call(step, by, why);
        }
        if let Some(step) = phase.step() {
            self.end_step(&mut step.clone(), StepStatus::Cancelled);
        }
    }

    /// Ends everything that a branch waits for: its calls, its questions, and the branches that work for it.
    pub(super) fn end_work(&mut self, number: u32, by: Option<&Author>, why: &str) {
        let children: Vec<_> = self.state.children_of(number).collect();
        for child in children {
            self.end_work(child, by, why);
            self.state.branches.remove(&child);
        }
        self.abandon(number);
        let asked: Vec<_> = self.state.questions_of(number).map(|question| question.review).collect();
        for review in asked {
            self.withdraw(review, Via::Run, by.cloned(), why);
        }
    }

    /// Ends the flow that a step called, with all of its branches.
    pub(super) fn end_call(&mut self, step: &Step, by: Option<&Author>, why: &str) {
        let frame = step.node.call(step.visit);
        self.arrivals.retain(|arrival| !arrival.node.is_inside(&frame));
        let inside = |branch: &Branch| branch.node.is_inside(&frame);
        while let Some(number) =
            self.state.branches.iter().find(|(_, branch)| inside(branch)).map(|(number, _)| *number)
        {
            self.end_branch(number, by, why);
        }
        self.state.end_frame(&frame);
    }

    /// Ends a failed execution of a flow. Returns the branch and the step that called it; `None` if it is the run
    /// itself.
    pub(super) fn end_frame(&mut self, frame: &str, error: &FlowError) -> Option<(u32, Step)> {
        if frame.is_empty() {
            return None;
        }
        let caller = self.take_branch(|phase| phase.calls_frame(frame))?;
        let (branch, Branch { phase: Phase::Flow { step }, .. }) = caller else { return None };
        self.end_call(&step, None, &format!("the flow has failed: {error}"));
        Some((branch, step))
    }

    fn emit_end(&mut self, outcome: &RunOutcome, by: Option<Author>) {
        match outcome {
            RunOutcome::Completed { .. } => {
                let output = projection::output(self.flow, &self.state.keys);
                self.emit_run(None, |run| EventData::RunCompleted(RunCompleted { run, output }));
            }
            RunOutcome::Failed { .. } => self.emit_run(None, |run| EventData::RunFailed(OfRun { run })),
            RunOutcome::Cancelled { reason, .. } => {
                let reason = reason.clone();
                self.emit_run(by, |run| EventData::RunCancelled(RunCancelled { run, reason }));
            }
        }
    }
}
