//! Whose votes on a review count, and who may see them while they are secret.

use super::Review;
use crate::decision::Decision;
use crate::id::Username;

impl Review {
    /// Returns the votes that were cast. If votes are not counted, a decision that has left the review pending, such as
    /// a pause, is no vote: it takes nobody's right to decide.
    pub fn votes(&self) -> &[Decision] {
        if self.voting.is_some() { &self.decisions } else { &[] }
    }

    /// Removes votes that no longer count. Other decisions stay on the record.
    pub fn remove_votes(&mut self, gone: impl Fn(&Decision) -> bool) {
        if self.voting.is_some() {
            self.decisions.retain(|vote| !gone(vote));
        }
    }

    /// Returns the review as `viewer` may see it: while votes are secret, without the votes of others. `None` removes
    /// all secret votes.
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

    /// Whether this person is a voter; true for everyone if votes are not counted.
    pub fn may_vote(&self, name: &Username) -> bool {
        self.voting.as_ref().is_none_or(|voting| voting.voters.contains(name))
    }

    /// Whether the review must be checked again when users change: votes are counted, people may be excluded or lack
    /// tags, or no one could decide it at the last check.
    pub fn depends_on_people(&self) -> bool {
        self.voting.is_some() || self.reviewers.rests_on_people() || !self.barred.is_empty() || self.problem.is_some()
    }

    /// Whether votes are secret and the review is still pending.
    pub fn is_secret(&self) -> bool {
        self.blind && self.voting.is_some() && self.is_pending()
    }
}
