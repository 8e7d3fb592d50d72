//! Deputies: who stands in for whom, and when. What that gives is `access`'s to say.

use serde::{Deserialize, Serialize};

use crate::id::{DeputyId, Username};
use crate::time::Timestamp;

/// Somebody stands in for somebody else for a span of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Deputyship {
    /// Names it in `DELETE /api/v1/deputies/{id}`.
    pub id: DeputyId,
    /// Who is away.
    pub person: Username,
    /// Who decides for them.
    pub deputy: Username,
    /// The deputy may decide for the person from this time on.
    pub from: Timestamp,
    /// Until when; at this moment it is over.
    pub until: Timestamp,
    /// Why, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Who said so: the person, or an admin.
    pub made_by: Username,
    /// The time at which the deputy was named.
    pub created_at: Timestamp,
}

impl Deputyship {
    /// Whether it holds at this moment.
    pub fn holds(&self, now: Timestamp) -> bool {
        self.from <= now && now < self.until
    }

    /// When that changes next; none: never more.
    pub fn changes_after(&self, now: Timestamp) -> Option<Timestamp> {
        [self.from, self.until].into_iter().find(|moment| now < *moment)
    }
}

/// The body of `POST /api/v1/deputies`. People name their own deputies; admins do so for others too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct NewDeputy {
    /// Who is away; nobody said: the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<Username>,
    /// Who decides for them.
    pub deputy: Username,
    /// From when; nothing said: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// Until when, at most a year after `from`.
    pub until: Timestamp,
    /// Why, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The body of `POST /api/v1/reviews/{id}/delegate`: hands over the votes that the caller has on the review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Delegate {
    /// Who decides from now on.
    pub to: Username,
}
