//! What people do beside deciding: claims, comments, looking, and cancelling the run.

use std::time::Duration;

use shared::access::{Access, Act, Principal, access};
use shared::decision::Via;
use shared::error::{FlowCode, Mistake, RunError};
use shared::id::{ReviewId, TaskId};
use shared::log::ReviewChange;
use shared::review::{Claim, Comment, Review};

use super::builder::Builder;
use super::state::{Asked, RunOutcome};
use super::transition::Refusal;
use super::view;

/// How long a claim holds. It is advisory: it does not stop anybody's decision.
const LEASE: Duration = Duration::from_mins(15);
/// The longest comment, in bytes.
const MAX_COMMENT: usize = 10_000;
/// How many comments a review has at most: each version of it holds all of them.
const MAX_COMMENTS: usize = 200;

impl Builder<'_> {
    /// Somebody works on a review; claiming again in the second half of the lease lengthens it.
    pub(super) fn claim(&mut self, id: ReviewId, by: &Principal, via: Via) -> Result<(), Refusal> {
        let review = self.pending_review(id, by, Act::Handle)?;
        self.refuse_if_claimed(review, by)?;
        // Each version of a review is kept for ever: a claim that would hardly last longer than it does is none.
        let own = |claim: &Claim| claim.by == by.username && claim.until > self.now.after(LEASE / 2);
        if review.claimed_by.as_ref().is_some_and(own) {
            return Ok(());
        }
        let claim = Claim { by: by.username.clone(), until: self.now.after(LEASE) };
        self.update(id, by, ReviewChange::Claim { via: Some(via) }, |review| review.claimed_by = Some(claim));
        Ok(())
    }

    /// Somebody no longer works on a review. Releasing what nobody has claimed changes nothing.
    pub(super) fn release(&mut self, id: ReviewId, by: &Principal, via: Via) -> Result<(), Refusal> {
        let review = self.pending_review(id, by, Act::Handle)?;
        self.refuse_if_claimed(review, by)?;
        if review.claimed_by.is_some() {
            self.update(id, by, ReviewChange::Release { via: Some(via) }, |review| review.claimed_by = None);
        }
        Ok(())
    }

    fn refuse_if_claimed(&self, review: &Review, by: &Principal) -> Result<(), Refusal> {
        let other = |claim: &Claim| claim.by != by.username && claim.until > self.now;
        if review.claimed_by.as_ref().is_some_and(other) {
            return Err(Refusal::ReviewClaimed(Box::new(review.clone())));
        }
        Ok(())
    }

    /// Somebody says something beside a review.
    pub(super) fn comment(&mut self, id: ReviewId, by: &Principal, via: Via, text: String) -> Result<(), Refusal> {
        let review = self.pending_review(id, by, Act::Handle)?;
        let mistake = if review.comments.len() >= MAX_COMMENTS {
            Some(("too_many", format!("a review has at most {MAX_COMMENTS} comments")))
        } else if text.trim().is_empty() {
            Some(("required", "the comment is empty".to_owned()))
        } else if text.len() > MAX_COMMENT {
            Some(("too_long", format!("longer than {MAX_COMMENT} bytes")))
        } else {
            None
        };
        if let Some((code, message)) = mistake {
            return Err(Refusal::Invalid(vec![Mistake::new("/text", code, message)]));
        }
        let comment = Comment { by: by.username.clone(), at: self.now, text };
        self.update(id, by, ReviewChange::Comment { via: Some(via) }, |review| review.comments.push(comment));
        Ok(())
    }

    /// Changes a review, and tells of it: who did what, and through what.
    pub(super) fn update(
        &mut self,
        id: ReviewId,
        by: &Principal,
        what: ReviewChange,
        change: impl FnOnce(&mut Review),
    ) {
        if let Some(review) = self.change_review(id, change) {
            self.emit_updated(&review, Some(by.username.clone()), what);
        }
    }

    /// Somebody opened a review, whether pending or not.
    pub(super) fn viewed(&mut self, id: ReviewId, by: &Principal) -> Result<(), Refusal> {
        let review = self.visible_review(id, by, Act::SeeReview)?.clone();
        self.emit_viewed(&review, by.username.clone());
        Ok(())
    }

    /// Somebody cancels the run.
    pub(super) fn cancel(&mut self, by: &Principal, reason: Option<String>) -> Result<(), Refusal> {
        self.may_cancel(by)?;
        self.end_run(RunOutcome::Cancelled { at: self.now, by: by.username.clone(), reason });
        Ok(())
    }

    /// Somebody cancels a run of which something cannot be read, for this reason.
    pub(super) fn give_up(
        &mut self,
        why: &str,
        tasks: &[TaskId],
        by: &Principal,
        reason: Option<&str>,
    ) -> Result<(), Refusal> {
        self.may_cancel(by)?;
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let message = format!("{} cancelled the run{reason}; it could not go on, since {why}", by.username);
        let pending = self.reviews.values().filter(|review| review.is_pending()).map(|review| review.id);
        for review in pending.collect::<Vec<_>>() {
            let asked = Asked { review, deadline: None, warn_at: None };
            self.withdraw(asked, Via::Run, Some(by.username.clone()), &message);
        }
        self.state.branches.clear();
        for task in tasks {
            self.abandon_task(*task);
        }
        let error = RunError { code: FlowCode::RecordUnreadable, message, node: None };
        self.end_run(RunOutcome::Failed { at: self.now, error });
        Ok(())
    }

    fn may_cancel(&self, by: &Principal) -> Result<(), Refusal> {
        match access(by, Act::CancelRun(&view::summary(&self.state))) {
            Access::Allowed => {}
            Access::Denied(why) => return Err(Refusal::Forbidden(why.to_owned())),
            Access::Hidden => return Err(Refusal::NotFound),
        }
        if self.state.outcome.is_some() { Err(Refusal::RunOver) } else { Ok(()) }
    }

    /// The run fails as a whole because of a task, whatever its failure policies say.
    pub(super) fn fail_run(&mut self, task: TaskId, error: RunError) -> Result<(), Refusal> {
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
