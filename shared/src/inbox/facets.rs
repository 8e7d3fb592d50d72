//! The counts of the queue: the answer of `GET /api/v1/reviews/facets`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::time::Timestamp;

/// The time within which a deadline is soon.
pub const SOON: Duration = Duration::from_mins(30);
/// The time within which a deadline is today's, in any time zone.
pub const TODAY: Duration = Duration::from_hours(24);

/// The nearness of a deadline.
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
    /// There is no deadline.
    None,
}

impl Nearness {
    /// Returns the nearness of a deadline.
    pub fn of(deadline: Option<Timestamp>, now: Timestamp) -> Self {
        match deadline {
            None => Self::None,
            Some(deadline) if deadline <= now.after(SOON) => Self::Soon,
            Some(deadline) if deadline <= now.after(TODAY) => Self::Today,
            Some(_) => Self::Later,
        }
    }
}

/// The age group of a review.
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
    /// The minimum age of each group except the youngest, oldest first.
    pub const FROM: [(Self, Duration); 3] = [
        (Self::Weeks, Duration::from_hours(7 * 24)),
        (Self::Days, Duration::from_hours(24)),
        (Self::Hours, Duration::from_hours(1)),
    ];

    /// Returns the age group of a review that was requested at this time.
    pub fn of(asked: Timestamp, now: Timestamp) -> Self {
        let group = Self::FROM.into_iter().find(|(_, age)| asked <= now.before(*age));
        group.map_or(Self::Minutes, |(group, _)| group)
    }
}

/// `GET /api/v1/reviews/facets`: how many pending reviews match, and how many would match with another filter. Each
/// facet is counted with all parts of the filter except its own. Only reviews that the caller may see are counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Facets {
    /// The number of matching reviews.
    pub total: u64,
    /// The number of these that the caller may decide.
    pub mine: u64,
    /// Whether only the most urgent reviews were counted, so that each number is a lower bound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// The counts by kind.
    pub kind: Counts,
    /// The counts by severity.
    pub severity: Counts,
    /// The counts by flow id; reviews without a flow are not included.
    pub flow: Counts,
    /// The counts by role; a review can be for several.
    pub role: Counts,
    /// The counts by tag; a review can need several.
    pub tag: Counts,
    /// The counts by [`Assigned`]; `me` is independent of the others.
    pub assigned: Counts,
    /// The counts by [`Nearness`] of the deadline.
    pub due: Counts,
    /// The counts by [`AgeGroup`].
    #[serde(default)]
    pub age: Counts,
}

/// The counts of a facet's values, most frequent first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counts {
    /// The values that occur.
    pub values: Vec<Count>,
    /// The sum of the counts of less frequent values that are omitted, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<u64>,
}

/// The count of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Count {
    /// The value, as the filter expects it.
    pub value: String,
    /// The number of pending reviews with the value, of those that match all other parts of the filter.
    pub count: u64,
}
