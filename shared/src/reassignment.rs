//! Reassignments: an admin gives a pending review to others, usually because nobody is left who could decide it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::definition::Reviewers;
use crate::id::Username;
use crate::time::Timestamp;

/// A person, or everyone with a role, as the reviewers of a review name them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Assignee {
    /// The person with this username.
    User(Username),
    /// Everyone with this role who also has the review's tags.
    Role(String),
}

impl Assignee {
    /// Returns everyone whom reviewers name; nobody if every reviewer may decide.
    pub fn named_in(reviewers: &Reviewers) -> Vec<Self> {
        let roles = reviewers.roles.iter().cloned().map(Self::Role);
        roles.chain(reviewers.users.iter().cloned().map(Self::User)).collect()
    }
}

/// Formats it for people: `tom`, or `the role legal`.
impl fmt::Display for Assignee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(name) => write!(f, "{name}"),
            Self::Role(role) => write!(f, "the role {role}"),
        }
    }
}

/// A reassignment of a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reassignment {
    /// The admin who reassigned it, and who may not decide it from then on.
    pub by: Username,
    /// The time, on the server's clock.
    pub at: Timestamp,
    /// Those who may no longer decide it; empty if it was for every reviewer.
    pub from: Vec<Assignee>,
    /// Those who may decide it instead.
    pub to: Assignee,
    /// The reason in words.
    pub reason: String,
}

impl Reassignment {
    /// Returns what changed, and why, for people: `from tom to the role legal: on leave`.
    pub fn change(&self) -> String {
        let from: Vec<_> = self.from.iter().map(ToString::to_string).collect();
        let from = if from.is_empty() { "every reviewer".to_owned() } else { from.join(" and ") };
        format!("from {from} to {}: {}", self.to, self.reason)
    }
}

/// Formats it for people: `dana reassigned this from tom to the role legal: on leave`.
impl fmt::Display for Reassignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} reassigned this {}", self.by, self.change())
    }
}

/// The body of `POST /api/v1/reviews/{id}/reassign`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Reassign {
    /// Which of those who may decide it are replaced; default: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Assignee>,
    /// Who may decide it instead.
    pub to: Assignee,
    /// The reason in words, which everyone sees who sees the review.
    pub reason: String,
}
