//! The deadlines of those who are asked, and the warnings before them.

use std::time::Duration;

use shared::definition::{Handler, OnTimeout};
use shared::id::ReviewId;
use shared::time::Timestamp;

use super::content::handlers;
use crate::engine::builder::Builder;
use crate::engine::question::{Asked, Question};

/// The shortest time limit with a warning.
const SHORT: Duration = Duration::from_mins(5);

/// Returns when people are warned of a deadline: a tenth of the time before it, but at least a minute and at most an
/// hour. `None` if the time is so short that people have only just been told.
pub(super) fn warning(from: Timestamp, deadline: Timestamp) -> Option<Timestamp> {
    let time = deadline.since(from);
    if time < SHORT {
        return None;
    }
    let before = (time / 10).clamp(Duration::from_mins(1), Duration::from_hours(1));
    Some(from.after(time.saturating_sub(before)))
}

impl Builder<'_> {
    /// Returns the deadline of whoever is asked now; `None` while guardrails ask about an approval.
    pub(super) fn until(&self, question: &Question) -> Option<Timestamp> {
        let of_people = || self.reviews.get(&question.review)?.expires_at;
        let is_over = matches!(question.asked, Asked::Guardrails { .. });
        if is_over { None } else { question.until().or_else(of_people) }
    }

    /// Returns the time from which on people cannot decide any more. `None` if they still can after the deadline,
    /// because the review escalates, or because the next handler does not decide at once.
    pub(super) fn closes_at(&self, id: ReviewId) -> Option<Timestamp> {
        let question = self.state.question(id)?;
        let closes = if question.asked == Asked::People {
            let happens = self.reviews.get(&id).and_then(|review| review.on_timeout.as_ref());
            !matches!(happens, Some(OnTimeout::Escalate(_)))
        } else {
            let next = handlers(self.flow, &self.state, &question.subject).get(question.handler + 1);
            matches!(next, Some(Handler::Auto(_)))
        };
        self.until(question).filter(|_| closes)
    }
}
