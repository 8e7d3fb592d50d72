//! How the queue is counted: the answer of `GET /api/v1/reviews/facets`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::time::Timestamp;

/// A deadline within this time is soon.
pub const SOON: Duration = Duration::from_mins(30);
/// A deadline within this time is today's, wherever one lives.
pub const TODAY: Duration = Duration::from_hours(24);

/// How near a deadline is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Nearness {
    /// Due within 30 minutes, or overdue.
    Soon,
    /// Due in more than 30 minutes, but within 24 hours.
    Today,
    /// Due in more than 24 hours.
    Later,
    /// There is none.
    None,
}

impl Nearness {
    /// That of a deadline.
    pub fn of(deadline: Option<Timestamp>, now: Timestamp) -> Self {
        match deadline {
            None => Self::None,
            Some(deadline) if deadline <= now.after(SOON) => Self::Soon,
            Some(deadline) if deadline <= now.after(TODAY) => Self::Today,
            Some(_) => Self::Later,
        }
    }
}

/// How long ago a review was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AgeGroup {
    /// Less than an hour ago.
    Minutes,
    /// An hour ago or longer, but less than a day.
    Hours,
    /// A day ago or longer, but less than a week.
    Days,
    /// A week ago or longer.
    Weeks,
}

impl AgeGroup {
    /// The age from which on a review is in a group, for all groups but the youngest, the oldest first.
    pub const FROM: [(Self, Duration); 3] = [
        (Self::Weeks, Duration::from_hours(7 * 24)),
        (Self::Days, Duration::from_hours(24)),
        (Self::Hours, Duration::from_hours(1)),
    ];

    /// That of a review that was asked at this time.
    pub fn of(asked: Timestamp, now: Timestamp) -> Self {
        let group = Self::FROM.into_iter().find(|(_, age)| asked <= now.before(*age));
        group.map_or(Self::Minutes, |(group, _)| group)
    }
}

/// `GET /api/v1/reviews/facets`: how many pending reviews fit, and how many more or fewer would with another filter. Each
/// facet is counted with all parts of the filter but its own. Only what the caller may see is counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Facets {
    /// How many fit.
    pub total: u64,
    /// How many of these I may decide.
    pub mine: u64,
    /// Whether not all were looked at, but the most urgent only: there are at least as many as each number says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// By what is asked.
    pub kind: Counts,
    /// By what is at stake.
    pub severity: Counts,
    /// By flow id; a review that no flow asks is in none of these counts.
    pub flow: Counts,
    /// By role; a review can be for several.
    pub role: Counts,
    /// By tag; a review can need several.
    pub tag: Counts,
    /// By [`Assigned`]: `me` says nothing of the others.
    pub assigned: Counts,
    /// By [`Nearness`] of the deadline.
    pub due: Counts,
    /// By [`AgeGroup`]: how long ago it was asked.
    #[serde(default)]
    pub age: Counts,
}

/// How many reviews have each value of a facet, the most frequent first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counts {
    /// The values; none that no review has.
    pub values: Vec<Count>,
    /// The sum of the counts of the values that are left out, being less frequent than these; none where none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<u64>,
}

/// How many reviews have a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Count {
    /// The value, as the filter takes it.
    pub value: String,
    /// How many pending reviews have the value, of those that fit all other parts of the filter.
    pub count: u64,
}
