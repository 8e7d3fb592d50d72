//! Who may decide a review, how their decisions become one resolution, and what a response must fulfil.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{NodeId, Username};

/// Who may decide.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct Reviewers {
    /// Everyone who has one of these roles.
    pub roles: Vec<String>,
    /// These people, by username; they need neither the roles nor the tags.
    pub users: Vec<Username>,
    /// What those who are asked by role must have besides, all of it: roles that say what somebody knows or covers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Not the one who started the run.
    pub not_requester: bool,
    /// Nobody who decided at this node (four eyes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_same_as: Option<NodeId>,
}

impl Reviewers {
    /// Whether nothing is said: everyone with the system role reviewer.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it says who may decide, and not only who may not.
    pub fn names_somebody(&self) -> bool {
        !self.roles.is_empty() || !self.users.is_empty() || !self.tags.is_empty()
    }

    /// Whether who may decide rests on more than each person by themselves: somebody may be shut out, or those with a
    /// role may lack the tags.
    pub fn rests_on_people(&self) -> bool {
        self.shuts_out() || !self.tags.is_empty()
    }

    /// Whether somebody may be shut out by what they did in the run, so that nobody may be left.
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
    /// More than half of those who may vote.
    Majority,
    /// All of those who may vote.
    Unanimous,
    /// This many accepting votes, at least 1, however many people may vote.
    Quorum(u32),
    /// So many of each role.
    Groups(IndexMap<String, u32>),
}

impl Policy {
    /// Whether the first decision resolves.
    pub fn is_first(&self) -> bool {
        *self == Self::First
    }

    /// The roles of its groups with how many each needs; none for the other policies.
    pub fn groups(&self) -> impl Iterator<Item = (&String, u32)> {
        let groups = match self {
            Self::Groups(groups) => Some(groups),
            _ => None,
        };
        groups.into_iter().flatten().map(|(role, needed)| (role, *needed))
    }
}

/// What a response must fulfil.
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
        /// The condition; `response` has `option`, `text`, `edits` and `metadata`. A decision for which it does not
        /// hold is refused.
        when: String,
        /// What is shown where it does not hold.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
}
