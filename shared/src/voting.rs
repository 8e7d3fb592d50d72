//! The state of the votes on a review, if its policy requires several. `review/votes` says who may see what.

use serde::{Deserialize, Serialize};

use crate::decision::Decision;
use crate::id::Username;

/// The state of the votes on a review, for policies other than `first`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Voting {
    /// The voters: those who could vote when it was requested, without those who have lost the right since.
    pub voters: Vec<Username>,
    /// The number of votes.
    pub votes: u32,
    /// The required and missing votes, in words.
    pub standing: String,
    /// The groups of the policy, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<VotingGroup>,
    /// The people whose votes are void because the content has changed, until they vote again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub voided: Vec<Username>,
    /// The items that voters have changed: they are shown as changed, and written when the review is accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edited: Vec<Edited>,
}

/// A group of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VotingGroup {
    /// The role whose votes the group counts, as the policy names it.
    pub role: String,
    /// The voters with this role; the vote of a person with several roles counts in each of these groups.
    pub voters: Vec<Username>,
}

/// An item that a voter has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Edited {
    /// The state key of the item.
    pub key: String,
    /// `sha256:` of the value in the state: if that changes, the edit is dropped.
    pub replaces: String,
}

impl Decision {
    /// Returns the owner of the vote, whoever cast it.
    pub fn voter(&self) -> &Username {
        self.on_behalf_of.as_ref().unwrap_or(&self.by)
    }
}
