//! A question while a handler is asked: what the handler and people see of it, and how the asking ends.

use shared::decision::Via;
use shared::error::FlowError;
use shared::id::{ReviewId, TaskId};
use shared::log::ReviewChange;
use shared::review::{Advice, AskedHandler, Review};
use shared::run::Step;

use crate::engine::builder::Builder;
use crate::engine::question::{Asked, Question};
use crate::limits::MAX_REASON;

impl Builder<'_> {
    /// Returns the review of a question: the pending one, or else as it would be opened now.
    pub(in crate::engine::ask) fn review_to_show(&self, asking: &Question) -> Result<Review, FlowError> {
        let pending = if asking.pending { self.reviews.get(&asking.review).cloned() } else { None };
        pending.map_or_else(|| self.composed(asking), Ok)
    }

    /// Makes the review pending beside the handler that is asked: whoever answers first decides.
    pub(in crate::engine::ask) fn open_pending(
        &mut self,
        asking: &mut Question,
        handler: AskedHandler,
    ) -> Result<(), FlowError> {
        if asking.pending {
            self.show_asked_handler(asking, handler);
            return Ok(());
        }
        let composed = self.composed(asking)?;
        let mut review = Review { expires_at: None, on_timeout: None, asked: Some(handler), ..composed };
        self.open_voting(&mut review);
        self.emit_requested(&review);
        self.add_review(review);
        asking.advice.clear();
        asking.pending = true;
        Ok(())
    }

    /// Shows on a pending review which handler is asked.
    pub(in crate::engine::ask) fn show_asked_handler(&mut self, asking: &Question, handler: AskedHandler) {
        if asking.pending
            && let Some(review) = self.change_review(asking.review, |review| review.asked = Some(handler))
        {
            self.emit_updated(&review, None, ReviewChange::Asked);
        }
    }

    /// Returns the review of the question that a task asks a handler, or programs for guardrails, about.
    pub(in crate::engine) fn handler_asked_by(&self, task: TaskId) -> Option<ReviewId> {
        let is_its = |question: &&Question| question.task().is_some_and(|(its, _)| its == task);
        self.state.questions.iter().find(is_its).map(|question| question.review)
    }

    /// Takes a question out of the state, with the visit that it belongs to.
    pub(in crate::engine::ask) fn take_question(&mut self, review: ReviewId) -> Option<(Question, Step)> {
        let place = self.state.questions.iter().position(|question| question.review == review)?;
        let step = self.state.step_of(&self.state.questions[place].subject).cloned()?;
        Some((self.state.questions.remove(place), step))
    }

    /// Puts a question back whose handler is asked again, in this visit.
    pub(in crate::engine::ask) fn put_back(&mut self, question: Question, step: Step) {
        let branch = question.subject.branch().and_then(|branch| self.state.branches.get_mut(&branch));
        if let Some(own) = branch.and_then(|branch| branch.phase.step_mut()) {
            *own = step;
        }
        self.state.questions.push(question);
    }

    /// Creates the advice of a handler that gives this reason.
    pub(in crate::engine::ask) fn advice(&self, by: String, via: Via, reason: &str) -> Advice {
        let reason = reason.chars().take(MAX_REASON).collect();
        Advice { by, via, at: self.now, verdict: None, reason, changes: None, answer: None }
    }

    /// Ends the timer and the task of the handler that was asked. The question is not with anyone then.
    pub(in crate::engine::ask) fn end_asking(&mut self, question: Question) -> Question {
        if let Some(timer) = question.timer {
            self.end_task(timer.task);
        }
        if let Asked::Program { task, answers_later: false, .. } = question.asked {
            self.end_task(task);
        }
        Question { asked: Asked::People, timer: None, ..question }
    }
}
