//! How the votes on a review stand, where its policy takes several, and what of it somebody may know while they are
//! secret.

use serde::{Deserialize, Serialize};

use crate::decision::Decision;
use crate::id::Username;
use crate::review::Review;

/// How the votes on a review stand. Only a review whose policy is not `first` has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Voting {
    /// Who may vote: those who might when it was asked, less those who have lost the right since.
    pub voters: Vec<Username>,
    /// How many votes there are.
    pub votes: u32,
    /// What is needed and what is missing, in words.
    pub standing: String,
    /// The groups of the policy, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<VotingGroup>,
    /// Whose votes are void because what is shown has changed since; until they vote again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub voided: Vec<Username>,
    /// The items that a voter has changed: they are shown as changed, and written when the review is accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edited: Vec<Edited>,
}

/// A group of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VotingGroup {
    /// The role whose votes the group counts, as the policy names it.
    pub role: String,
    /// Those of the voters who have it; the vote of somebody with several roles counts in each of these groups.
    pub voters: Vec<Username>,
}

/// An item that a voter has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Edited {
    /// Its state key.
    pub key: String,
    /// `sha256:` of the value that the state has: where that changes, the edit is gone.
    pub replaces: String,
}

impl Decision {
    /// Whose vote it is: it counts as theirs, whoever cast it.
    pub fn voter(&self) -> &Username {
        self.on_behalf_of.as_ref().unwrap_or(&self.by)
    }
}

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
