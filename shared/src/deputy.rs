//! Deputies: who stands in for whom, and when. `access` determines their rights.

use serde::{Deserialize, Serialize};

use crate::id::{DeputyId, Username};
use crate::time::Timestamp;

/// A deputyship: a person stands in for another one for some time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Deputyship {
    /// The id for `DELETE /api/v1/deputies/{id}`.
    pub id: DeputyId,
    /// The person who is away.
    pub person: Username,
    /// The deputy, who decides for them.
    pub deputy: Username,
    /// The deputy may decide for the person from this time on.
    pub from: Timestamp,
    /// The end of the deputyship, exclusive.
    pub until: Timestamp,
    /// The reason in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The person or admin who named the deputy.
    pub made_by: Username,
    /// The time at which the deputy was named.
    pub created_at: Timestamp,
}

impl Deputyship {
    /// Whether the deputyship applies at `now`.
    pub fn holds(&self, now: Timestamp) -> bool {
        self.from <= now && now < self.until
    }

    /// Returns the next time after `now` at which the deputyship begins or ends; `None` if it is over.
    pub fn changes_after(&self, now: Timestamp) -> Option<Timestamp> {
        [self.from, self.until].into_iter().find(|moment| now < *moment)
    }
}

/// The body of `POST /api/v1/deputies`. People name their own deputies; admins do so for others too.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct NewDeputy {
    /// The person who is away; default: the caller.
    pub person: Option<Username>,
    /// The deputy, who decides for them.
    pub deputy: Username,
    /// The start of the deputyship; default: now.
    pub from: Option<Timestamp>,
    /// The end of the deputyship, at most a year after `from`.
    pub until: Timestamp,
    /// The reason in words.
    pub note: Option<String>,
}

/// The body of `POST /api/v1/reviews/{id}/delegate`, which delegates the caller's votes on the review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Delegate {
    /// The person who decides from now on.
    pub to: Username,
}
