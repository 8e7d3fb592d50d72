//! Who may see a log entry: one rule for `GET /api/v1/log` and the live socket. Each resolves it with what it has cached
//! of reviews and runs.

use super::{EntryKind, Event};
use crate::id::{ReviewId, RunId, Username};

/// Who may see an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Audience<'a> {
    /// Those who may see flows.
    Flows,
    /// Those who may see this review.
    Review(ReviewId),
    /// Of those who may see this review, the actor and admins.
    Viewer(ReviewId, Option<&'a Username>),
    /// Those who may see this run.
    Run(RunId),
    /// Of those who may see this run, those who may see feedback of the actor.
    Feedback(RunId, Option<&'a Username>),
    /// The actor, and admins.
    Actor(Option<&'a Username>),
}

impl Event {
    /// Returns who may see the event: those who may see its review, or else its run, or else only the actor and admins.
    /// Whoever sees a run does not see all of its reviews, so an event about a review tells them nothing.
    pub fn audience(&self) -> Audience<'_> {
        let actor = self.actor.as_ref();
        match (self.kind, self.review_id, self.run_id) {
            (EntryKind::FlowSaved, ..) => Audience::Flows,
            (EntryKind::ReviewViewed, Some(review), _) => Audience::Viewer(review, actor),
            (_, Some(review), _) => Audience::Review(review),
            (EntryKind::FeedbackGiven, None, Some(run)) => Audience::Feedback(run, actor),
            (_, None, Some(run)) => Audience::Run(run),
            (_, None, None) => Audience::Actor(actor),
        }
    }
}
