//! A question while a handler is asked: what the handler sees, what people see of it, and its end.

use shared::error::RunError;
use shared::id::{ReviewId, TaskId};
use shared::log::ReviewChange;
use shared::review::{AskedHandler, Review};
use shared::run::Step;

use super::asking::Asking;
use crate::engine::builder::Builder;
use crate::engine::question::{Asked, Question, Subject};

impl Builder<'_> {
    /// What is asked, as people would see it: as it stands where they may decide already.
    pub(super) fn review_to_show(&self, asking: &Asking) -> Result<Review, (Subject, RunError)> {
        let pending = if asking.pending { self.reviews.get(&asking.review).cloned() } else { None };
        pending.map_or_else(|| self.composed(asking), Ok)
    }

    /// The same as it would be asked now.
    pub(super) fn composed(&self, asking: &Asking) -> Result<Review, (Subject, RunError)> {
        let Asking { review, subject, advice, .. } = asking;
        self.review_about(*review, subject, advice.clone()).map_err(|error| (subject.clone(), error))
    }

    /// Makes the review pending beside the handler that is asked: whoever answers first decides.
    pub(super) fn open_pending(
        &mut self,
        asking: &mut Asking,
        handler: AskedHandler,
    ) -> Result<(), (Subject, RunError)> {
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

    /// Says beside a pending review which handler is asked.
    pub(super) fn show_asked_handler(&mut self, asking: &Asking, handler: AskedHandler) {
        if asking.pending
            && let Some(review) = self.change_review(asking.review, |review| review.asked = Some(handler))
        {
            self.emit_updated(&review, None, ReviewChange::Asked);
        }
    }

    /// The review of the question whose handler has this task.
    pub(in crate::engine) fn handler_asked_by(&self, task: TaskId) -> Option<ReviewId> {
        let is_its = |question: &&Question| question.task().is_some_and(|(its, _)| its == task);
        self.state.questions.iter().find(is_its).map(|question| question.review)
    }

    /// Takes a question out to work on it, with the visit that it belongs to.
    pub(super) fn take_question(&mut self, review: ReviewId) -> Option<(Question, Step)> {
        let place = self.state.questions.iter().position(|question| question.review == review)?;
        let step = self.state.step_of(&self.state.questions[place].subject).cloned()?;
        Some((self.state.questions.remove(place), step))
    }

    /// A handler has said what it had to say.
    pub(super) fn end_asking(&mut self, question: Question) -> Asking {
        if let Some(timer) = question.timer {
            self.end_task(timer.task);
        }
        if let Asked::Program { task, answers_later: false, .. } = question.asked {
            self.end_task(task);
        }
        question.into()
    }
}
