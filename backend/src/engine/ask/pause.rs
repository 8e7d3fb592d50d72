//! Pauses: whoever asked at a checkpoint is told to wait. The review stays pending without a time limit, and offers to
//! resume, to change the plan or to abort.

use shared::decision::Decision;
use shared::id::ReviewId;
use shared::log::ReviewChange;
use shared::review::{Paused, ReviewKind};

use super::by_agent::PAUSE;
use super::decide::verdict::{CheckedVerdict, NodeVerdict};
use crate::engine::builder::Builder;
use crate::engine::digest;
use crate::engine::question::Subject;

impl Builder<'_> {
    /// Whether a verdict tells whoever asked to wait.
    pub(super) fn pauses(&self, id: ReviewId, said: &CheckedVerdict) -> bool {
        let asks = self.reviews.get(&id).is_some_and(|review| review.kind == ReviewKind::Checkpoint);
        asks && matches!(said, CheckedVerdict::Node(NodeVerdict::Accept(option)) if option.id == PAUSE)
    }

    /// Pauses a question, without a time limit. The next revision of its review records who did so. One person
    /// decides a checkpoint, so there are no votes.
    pub(super) fn pause(&mut self, id: ReviewId, decision: &Decision) -> Option<()> {
        self.merge_metadata(&decision.metadata);
        let question = self.state.question_mut(id)?;
        let Subject::Ask { paused, .. } = &mut question.subject else { return None };
        *paused = true;
        let (subject, timer) = (question.subject.clone(), question.timer.take());
        if let Some(timer) = timer {
            self.end_task(timer.task);
        }
        let options = self.content(&subject).ok()?.options;
        let paused = self.change_review(id, |review| {
            review.decisions.push(decision.clone());
            review.options = options;
            review.paused = Some(Paused { by: decision.by.clone(), at: decision.at });
            (review.expires_at, review.on_timeout, review.claimed_by) = (None, None, None);
            review.revision += 1;
            review.digest = digest::of_review(review);
        })?;
        let change = ReviewChange::Paused { via: Some(decision.via) };
        self.emit_updated(&paused, Some(decision.into()), change);
        Some(())
    }
}
