//! Who may decide a review, how decisions become one resolution, and the conditions for a response.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{NodeId, Username};

/// The people who may decide.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct Reviewers {
    /// Everyone with one of these roles.
    pub roles: Vec<String>,
    /// These people, by username; they need neither the roles nor the tags.
    pub users: Vec<Username>,
    /// Tags that those who are asked by role need in addition, all of them: roles for what a person knows or covers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Excludes the person who launched the run.
    pub not_requester: bool,
    /// Excludes everyone who decided at this node (four eyes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_same_as: Option<NodeId>,
}

impl Reviewers {
    /// Whether nothing is set, so that everyone with the system role reviewer may decide.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether people are named who may decide, by role, username or tag, and not only people who may not.
    pub fn names_somebody(&self) -> bool {
        !self.roles.is_empty() || !self.users.is_empty() || !self.tags.is_empty()
    }

    /// Whether the right to decide depends on more than each person alone: someone may be excluded, or those with a
    /// role may lack the tags.
    pub fn rests_on_people(&self) -> bool {
        self.shuts_out() || !self.tags.is_empty()
    }

    /// Whether people may be excluded by what they did in the run, so that no one may be left.
    pub fn shuts_out(&self) -> bool {
        self.not_requester || self.not_same_as.is_some()
    }
}

/// How several decisions become one resolution.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The first decision resolves.
    #[default]
    First,
    /// More than half of the voters.
    Majority,
    /// All of the voters.
    Unanimous,
    /// This many accepting votes, at least 1, however many people may vote.
    Quorum(u32),
    /// A number of votes from each role.
    Groups(IndexMap<String, u32>),
}

impl Policy {
    /// Whether the first decision resolves.
    pub fn is_first(&self) -> bool {
        *self == Self::First
    }

    /// Returns the roles of the groups with the number of votes that each needs; empty for other policies.
    pub fn groups(&self) -> impl Iterator<Item = (&String, u32)> {
        let groups = match self {
            Self::Groups(groups) => Some(groups),
            _ => None,
        };
        groups.into_iter().flatten().map(|(role, needed)| (role, *needed))
    }
}

/// A condition that a response must meet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "expected {schema} or {when, message}")]
pub enum Validator {
    /// JSON Schema of the response.
    Schema {
        /// A schema of an object checks `{option, text, edits, metadata}`; any other checks the free text alone.
        schema: Value,
    },
    /// CEL on `response`.
    When {
        /// The condition; `response` has `option`, `text`, `edits` and `metadata`. A decision for which it is false is
        /// refused.
        when: String,
        /// The message if it is not met.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
}
