//! Ends a run early: because it is cancelled, or because one of its tasks can never be executed.

use shared::access::{Act, Principal, access};
use shared::decision::Via;
use shared::error::{FlowCode, FlowError};
use shared::id::TaskId;

use super::builder::Builder;
use super::projection;
use super::state::RunOutcome;
use super::transition::Refusal;

impl Builder<'_> {
    /// Cancels the run for a person who may do so.
    pub(super) fn cancel(&mut self, by: &Principal, reason: Option<String>) -> Result<(), Refusal> {
        self.may_cancel(by)?;
        self.end_run(RunOutcome::Cancelled { at: self.now, by: by.username.clone(), token: by.token_id, reason });
        Ok(())
    }

    /// Cancels a run that cannot be read completely: withdraws its pending reviews, abandons `tasks`, and fails the
    /// run. `why` says what cannot be read.
    pub(super) fn give_up(
        &mut self,
        why: &str,
        tasks: &[TaskId],
        by: &Principal,
        reason: Option<&str>,
    ) -> Result<(), Refusal> {
        self.may_cancel(by)?;
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let message = format!("{} cancelled the run{reason}; it could not continue: {why}", by.username);
        let pending = self.reviews.values().filter(|review| review.is_pending()).map(|review| review.id);
        for review in pending.collect::<Vec<_>>() {
            self.withdraw(review, Via::Run, Some(by.into()), &message);
        }
        self.state.branches.clear();
        self.state.questions.clear();
        for task in tasks {
            self.abandon_task(*task);
        }
        let error = FlowError { code: FlowCode::RecordUnreadable, message, node: None };
        self.end_run(RunOutcome::Failed { at: self.now, error });
        Ok(())
    }

    fn may_cancel(&self, by: &Principal) -> Result<(), Refusal> {
        Refusal::unless(access(by, Act::CancelRun(&projection::summary(&self.state))))?;
        if self.state.outcome.is_some() { Err(Refusal::RunOver) } else { Ok(()) }
    }

    /// Fails the run because one of its tasks cannot be executed, regardless of failure policies.
    pub(super) fn fail_run(&mut self, task: TaskId, error: FlowError) -> Result<(), Refusal> {
        if self.state.outcome.is_some() {
            return Err(Refusal::RunOver);
        }
        self.end_run(RunOutcome::Failed { at: self.now, error });
        // No answer to this task will come.
        self.state.unanswered.remove(&task);
        self.end_task(task);
        Ok(())
    }
}
