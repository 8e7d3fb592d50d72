//! The queue of reviews: its order of urgency, its filters and its counts, shared by the server and the console.

mod facets;
mod outline;
mod query;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::access::{Act, Principal, REVIEWER, access};
use crate::definition::Severity;
use crate::id::ReviewId;
use crate::json_text::{json_text, text_schema};
use crate::review::Review;
use crate::time::{Span, Timestamp};

pub use facets::{AgeGroup, Count, Counts, Facets, Nearness, SOON, TODAY};
pub use outline::{outline, rights_outline};
pub use query::ReviewQuery;

/// The order of a list of reviews.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ReviewOrder {
    /// The newest reviews come first.
    #[default]
    Newest,
    /// By [`Urgency`]; for pending reviews only.
    Urgency,
}

/// The urgency of a review, most urgent first: by the soonest deadline, with none last; then by the highest severity;
/// then by the oldest request; then by the id. No two reviews are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Urgency {
    /// The deadline; [`Timestamp::MAX`] if there is none.
    pub due: Timestamp,
    /// The severity, from 0 (critical) to 3 (low).
    pub severity: u8,
    /// The time of the request.
    pub asked: Timestamp,
    /// The review's id, which orders reviews that are otherwise equal.
    pub id: ReviewId,
}

impl Urgency {
    /// Returns the urgency of a review.
    pub fn of(review: &Review) -> Self {
        let due = review.expires_at.unwrap_or(Timestamp::MAX);
        Self { due, severity: rank(review.stakes.severity), asked: review.created_at, id: review.id }
    }
}

fn rank(severity: Severity) -> u8 {
    match severity {
        Severity::Critical => 0,
        Severity::High => 1,
        Severity::Medium => 2,
        Severity::Low => 3,
    }
}

/// The assignment of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Assigned {
    /// The caller may decide it.
    Me,
    /// Someone has claimed it.
    Claimed,
    /// No one has claimed it, or the claim has expired.
    Unclaimed,
}

/// Restricts a list of reviews to the caller's own requests; `me` is the only value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Asker {
    /// The caller requested it, or started its run.
    Me,
}

/// A limit for the deadline: within a length of time (`30m`), by a point in time, or none (`none`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Within this time from now, or overdue.
    Within(Span),
    /// At this time or before.
    By(Timestamp),
    /// The review has no deadline.
    Never,
}

impl Due {
    /// Returns the latest matching deadline; `None` if only reviews without a deadline match.
    pub fn latest(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Within(span) => Some(now.after(span.0)),
            Self::By(time) => Some(time),
            Self::Never => None,
        }
    }

    fn fits(self, deadline: Option<Timestamp>, now: Timestamp) -> bool {
        match (deadline, self.latest(now)) {
            (Some(deadline), Some(latest)) => deadline <= latest,
            (deadline, latest) => deadline.is_none() && latest.is_none(),
        }
    }
}

impl fmt::Display for Due {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Within(span) => span.fmt(f),
            Self::By(time) => time.fmt(f),
            Self::Never => f.write_str("none"),
        }
    }
}

impl FromStr for Due {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::Never);
        }
        let time = text.parse().map(Self::By).ok();
        time.or_else(|| text.parse().map(Self::Within).ok())
            .ok_or_else(|| format!("`{text}` is not a length of time such as 30m, an RFC 3339 time in UTC, or `none`"))
    }
}

json_text!(Due);
text_schema!(Due, { "type": "string" });

/// A facet: a part of a filter by which the queue is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
pub enum Facet {
    /// The kind of review.
    Kind,
    /// The severity of the review.
    Severity,
    /// The flow that asks.
    Flow,
    /// The roles that it is for.
    Role,
    /// The tags that reviewers also need.
    Tag,
    /// The assignment ([`Assigned`]): whether the caller may decide it, and whether it is claimed.
    Assigned,
    /// The deadline of the review.
    Due,
    /// The age of the review.
    Age,
}

impl Facet {
    /// All facets, in the order of [`Facets`].
    pub const ALL: &[Self] = Self::VARIANTS;
}

/// Whether the consequences of a review are declared irreversible.
pub fn is_irreversible(review: &Review) -> bool {
    review.stakes.reversible == Some(false)
}

/// Returns the roles that a review is for: those that the flow names (reviewer, if it names no one), and those to which
/// it was escalated.
pub fn roles(review: &Review) -> impl Iterator<Item = &str> {
    let reviewers = &review.reviewers;
    let everyone = reviewers.roles.is_empty() && reviewers.users.is_empty();
    let named = reviewers.roles.iter().chain(&review.escalated).map(String::as_str);
    named.chain(everyone.then_some(REVIEWER))
}

/// Whether a review has this assignment.
pub fn is_with(assigned: Assigned, review: &Review, principal: &Principal, now: Timestamp) -> bool {
    let claimed = review.claimed_by.as_ref().is_some_and(|claim| claim.until > now);
    match assigned {
        Assigned::Me => access(principal, Act::Decide(review)).is_allowed(),
        Assigned::Claimed => claimed,
        Assigned::Unclaimed => !claimed,
    }
}
