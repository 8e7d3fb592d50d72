//! How the votes on a review stand, where its policy takes several. Who may know what of them is in `review/votes`.

use serde::{Deserialize, Serialize};

use crate::decision::Decision;
use crate::id::Username;

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
