//! Whose votes on a review count, and who may see them while they are secret.

use super::Review;
use crate::id::Username;

impl Review {
    /// Returns the review as a person may see it, or anyone: until the resolution, secret votes are hidden except for
    /// one's own.
    #[must_use]
    pub fn seen_by(mut self, viewer: Option<&Username>) -> Self {
        if self.is_secret() {
            let own = |name: &Username| viewer == Some(name);
            self.decisions.retain(|decision| own(&decision.by) || own(decision.voter()));
            if let Some(voting) = &mut self.voting {
                voting.voided.retain(own);
            }
        }
        self
    }

    /// Whether a person's vote counts, if votes are counted.
    pub fn may_vote(&self, name: &Username) -> bool {
        self.voting.as_ref().is_none_or(|voting| voting.voters.contains(name))
    }

    /// Whether it depends on the existing users: votes are counted, people may be excluded or lack tags, or no one
    /// could decide it when this was last checked.
    pub fn depends_on_people(&self) -> bool {
        self.voting.is_some() || self.reviewers.rests_on_people() || self.problem.is_some()
    }

    /// Whether its votes are currently secret.
    pub fn is_secret(&self) -> bool {
        self.blind && self.voting.is_some() && self.is_pending()
    }
}
