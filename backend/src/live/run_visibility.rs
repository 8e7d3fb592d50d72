//! What decides who may see a run, one of its reviews, and an entry of the log.

use std::sync::Arc;

use shared::access::{Access, Act, Involvement, Principal, access};
use shared::collaboration::Delegation;
use shared::decision::Decision;
use shared::definition::Reviewers;
use shared::id::{ReviewId, Username};
use shared::inbox::rights_outline;
use shared::review::Review;

/// The size that is counted for a name, in bytes: usernames and roles are short.
const NAME: usize = 64;

/// The data that determine who may see a run.
#[derive(Debug, Clone)]
pub(super) struct RunVisibility {
    requested_by: Username,
    /// The outlines of all reviews of the run. Entries in transit keep the version of their time; unchanged outlines are
    /// shared.
    reviews: Vec<Arc<Review>>,
}

impl RunVisibility {
    /// Creates it for a run that this person started, with outlines of its reviews.
    pub fn new(requested_by: Username, reviews: &[Review]) -> Self {
        Self { requested_by, reviews: reviews.iter().map(|review| Arc::new(rights_outline(review))).collect() }
    }

    /// Whether `principal` may see the run. A principal who sees one of its reviews, but neither sees all runs nor
    /// started this one, may decide that review or has decided it. This involvement lets reviewers see the run.
    pub fn is_seen_by(&self, principal: &Principal) -> bool {
        let may = |involvement| access(principal, Act::SeeRun(&self.requested_by, involvement)) == Access::Allowed;
        may(Involvement::None)
            || (self.reviews.iter().any(|review| access(principal, Act::SeeReview(review)) == Access::Allowed)
                && may(Involvement::Reviews))
    }

    /// Returns the outline of one of the run's reviews.
    pub fn review(&self, id: ReviewId) -> Option<&Arc<Review>> {
        self.reviews.iter().rev().find(|review| review.id == id)
    }

    /// Returns the approximate size in memory, in bytes.
    pub fn size(&self) -> usize {
        size_of::<Self>() + NAME + self.reviews.iter().map(|review| outline_size(review)).sum::<usize>()
    }

    /// Adds the outline of a review, or replaces an older one.
    pub fn put(&mut self, review: Arc<Review>) {
        // Searched from the end, since nearly always the newest changes.
        match self.reviews.iter_mut().rev().find(|old| old.id == review.id) {
            Some(old) if old.version > review.version => {}
            Some(old) => *old = review,
            None => self.reviews.push(review),
        }
    }
}

/// Returns the approximate size of an outline in memory, in bytes: its parts are the names of people and roles.
fn outline_size(review: &Review) -> usize {
    let Reviewers { roles, users, tags, .. } = &review.reviewers;
    let names = roles.len() + users.len() + tags.len() + review.escalated.len() + review.barred.len();
    let voters = review.voting.as_ref().map_or(0, |voting| voting.voters.len());
    size_of::<Review>()
        + (names + voters) * NAME
        + review.delegations.len() * (size_of::<Delegation>() + 3 * NAME)
        + review.decisions.len() * (size_of::<Decision>() + 2 * NAME)
}

/// The audience of an entry, with the data that determine who belongs to it.
#[derive(Debug)]
pub(super) enum Viewers {
    /// Those who may see flows.
    Flows,
    /// Those who may see this review, of which only the outline is kept.
    Review(Arc<Review>),
    /// Of those who may see this review, the actor and admins.
    Viewer(Arc<Review>, Option<Username>),
    /// Those who may see this run.
    Run(Arc<RunVisibility>),
    /// Of those who may see this run, those who may see feedback of this person.
    Feedback(Arc<RunVisibility>, Option<Username>),
    /// The actor, and admins.
    Actor(Option<Username>),
    /// Nobody: the review or run no longer exists, or cannot be read.
    Nobody,
}

impl Viewers {
    /// Whether `principal` belongs to the audience.
    pub fn include(&self, principal: &Principal) -> bool {
        let may = |act| access(principal, act).is_allowed();
        match self {
            Viewers::Flows => may(Act::SeeFlows),
            Viewers::Review(review) => may(Act::SeeReview(review)),
            Viewers::Viewer(review, actor) => may(Act::SeeEntryBy(actor.as_ref())) && may(Act::SeeReview(review)),
            Viewers::Run(run) => run.is_seen_by(principal),
            Viewers::Feedback(run, by) => may(Act::SeeFeedback(by.as_ref())) && run.is_seen_by(principal),
            Viewers::Actor(actor) => may(Act::SeeEntryBy(actor.as_ref())),
            Viewers::Nobody => false,
        }
    }
}
