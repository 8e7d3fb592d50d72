//! The votes on a review, as far as they concern somebody: whose count, and what may be known of them while they are
//! secret.

use super::Review;
use crate::id::Username;

impl Review {
    /// As somebody may see it, or anybody: secret votes are shown only after the resolution, but for one's own.
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

    /// Whether somebody's vote counts, where votes are counted.
    pub fn may_vote(&self, name: &Username) -> bool {
        self.voting.as_ref().is_none_or(|voting| voting.voters.contains(name))
    }

    /// Whether it depends on who there is: votes are counted, somebody may be shut out or lack tags, or nobody could
    /// decide it when this was last looked at.
    pub fn depends_on_people(&self) -> bool {
        self.voting.is_some() || self.reviewers.rests_on_people() || self.problem.is_some()
    }

    /// Whether its votes are secret now.
    pub fn is_secret(&self) -> bool {
        self.blind && self.voting.is_some() && self.is_pending()
    }
}
