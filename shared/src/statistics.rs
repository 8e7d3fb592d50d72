//! Statistics of reviews: how many were requested, their outcomes, and how long people took.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::review::ReviewKind;
use crate::time::Timestamp;

/// The longest range that is counted at once, in days.
pub const MAX_DAYS: u32 = 731;
/// The most groups by time that a range may have.
pub const MAX_TIMES: u32 = 1000;
/// The most groups by anything else; those with the most requests are returned.
pub const MAX_GROUPS: usize = 100;
/// The default number of days.
pub const DEFAULT_DAYS: u32 = 30;

/// The query of `GET /api/v1/statistics`; a review must match every filter.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct StatisticsQuery {
    /// Only reviews requested at this time or later; default: 30 days before `to`.
    pub from: Option<Timestamp>,
    /// Only reviews requested before this time; default: now.
    pub to: Option<Timestamp>,
    /// Only for this flow.
    pub flow: Option<String>,
    /// Only about calls of this tool.
    pub tool: Option<String>,
    /// Only about requests of this agent.
    pub agent: Option<String>,
    /// Only reviews of this kind.
    pub kind: Option<ReviewKind>,
    /// Only for this role.
    pub role: Option<String>,
    /// Only decided by this person.
    pub reviewer: Option<String>,
    /// The grouping; default: none.
    pub by: Option<GroupBy>,
}

/// The grouping of reviews.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum GroupBy {
    /// The hour of the request.
    Hour,
    /// The day of the request, in UTC.
    Day,
    /// The week of the request, from Monday, in UTC.
    Week,
    /// The flow, by id; reviews requested over the API without a flow are in no group.
    Flow,
    /// The tool that is about to be called; a review of several counts for each.
    Tool,
    /// The agent that makes the request.
    Agent,
    /// The `kind` of the review.
    Kind,
    /// The person who decided; a review with several counts for each.
    Reviewer,
}

/// An hour, in microseconds.
const HOUR: i64 = 3_600_000_000;
/// Microseconds from 1970, a Thursday, to its first Monday.
const MONDAY: i64 = 4 * 24 * HOUR;

impl GroupBy {
    /// Returns the length of a group in microseconds; `None` if groups are not periods of time.
    pub fn length(self) -> Option<i64> {
        match self {
            Self::Hour => Some(HOUR),
            Self::Day => Some(24 * HOUR),
            Self::Week => Some(7 * 24 * HOUR),
            Self::Flow | Self::Tool | Self::Agent | Self::Kind | Self::Reviewer => None,
        }
    }

    /// Returns the start of the group of a review that was requested at `asked`; `None` if groups are not periods of
    /// time.
    pub fn begin(self, asked: Timestamp) -> Option<Timestamp> {
        let length = self.length()?;
        let offset = if self == Self::Week { MONDAY } else { 0 };
        Some(Timestamp((asked.0 - offset).div_euclid(length) * length + offset))
    }
}

/// The reason why an agent gives up, which is the category of its review.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum EscalationReason {
    /// It is not sure enough.
    LowConfidence,
    /// It has failed too often.
    RepeatedFailures,
    /// It may do harm.
    EthicalConcern,
    /// It is outside of its task.
    OutOfScope,
    /// It lacks resources.
    ResourceLimit,
    /// It was told contradictory things.
    ConflictingInstructions,
    /// It may be dangerous.
    SafetyConcern,
    /// The user asked for a person.
    UserRequested,
    /// A rule forbids it.
    PolicyViolation,
    /// There is no precedent for it.
    UnknownTerritory,
}

/// How long people took from the request to their decision, in milliseconds. Empty if no one decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ResponseTimes {
    /// The arithmetic mean, rounded down to whole milliseconds; null if no person decided.
    pub avg: Option<u64>,
    /// The median of the times.
    pub p50: Option<u64>,
    /// The 95th percentile of the times.
    pub p95: Option<u64>,
}

/// Drafts that agents gave to people to edit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct EditFigures {
    /// The number of requested reviews of kind `edit`.
    pub count: u64,
    /// The number of drafts that someone changed.
    pub changed: u64,
}

/// The decisions of judges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct JudgeFigures {
    /// How often a judge was asked.
    pub asked: u64,
    /// How often a judge decided.
    pub decided: u64,
    /// How often a judge passed the review on.
    pub passed_on: u64,
    /// How often a judge could not judge.
    pub failed: u64,
    /// How often a judge passed on, and a person then decided as it would have.
    pub agreed: u64,
    /// How often a judge passed on, and a person then decided otherwise.
    pub disagreed: u64,
}

/// The outcomes of reviews.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Figures {
    /// The number of requests: the sum of the seven below.
    pub requests: u64,
    /// Accepted as requested, by a person or a handler.
    pub approved: u64,
    /// Sent back with a correction, or approved with other arguments.
    pub corrected: u64,
    /// Stopped, or at least one call rejected.
    pub rejected: u64,
    /// Answered with text, or by an alternative.
    pub answered: u64,
    /// Expired, whatever followed.
    pub expired: u64,
    /// Withdrawn: by a person, or because its run ended or continued without it.
    pub withdrawn: u64,
    /// The review is still pending.
    pub pending: u64,
    /// The share of approvals among the approved, corrected and rejected; none if there are none.
    pub approval_rate: Option<f64>,
    /// How long people took.
    pub response_ms: ResponseTimes,
    /// Questions of agents.
    pub clarifications: u64,
    /// Drafts to edit.
    pub edits: EditFigures,
    /// How often an agent gave up.
    pub escalations: u64,
    /// The number of escalations for each reason.
    pub escalations_by_reason: BTreeMap<EscalationReason, u64>,
    /// Reports of progress.
    pub checkpoints: u64,
    /// Reviews of kind `handoff`: a person takes something over, and the run does not wait for it.
    pub handoffs: u64,
    /// How often a guardrail blocked something that was approved, by its name.
    pub vetoes: BTreeMap<String, u64>,
    /// The decisions of judges.
    pub judge: JudgeFigures,
}

/// A group of reviews.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatisticsGroup {
    /// The key of the group: a name, or the time at which the hour, day or week begins.
    pub key: String,
    /// The outcomes of the group.
    #[serde(flatten)]
    pub figures: Figures,
}

/// The answer of `GET /api/v1/statistics`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Statistics {
    /// The start of the counted range, by the time of the request.
    pub from: Timestamp,
    /// The end of the counted range, exclusive: `to` of the query, or the time of the request.
    pub to: Timestamp,
    /// The outcomes of all reviews.
    #[serde(flatten)]
    pub figures: Figures,
    /// The groups: times in order, without empty ones; otherwise by the number of requests.
    pub groups: Vec<StatisticsGroup>,
    /// The number of further groups, which have fewer requests.
    #[serde(default)]
    pub groups_left_out: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weeks_begin_on_monday_and_days_at_midnight() {
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        for (by, asked, begin) in [
            (GroupBy::Hour, "2026-11-23T04:59:59Z", "2026-11-23T04:00:00Z"),
            (GroupBy::Day, "2026-11-22T23:59:59.999999Z", "2026-11-22T00:00:00Z"),
            (GroupBy::Week, "2026-11-22T23:59:59.999999Z", "2026-11-16T00:00:00Z"),
            (GroupBy::Week, "2026-11-23T00:00:00Z", "2026-11-23T00:00:00Z"),
        ] {
            assert_eq!(by.begin(at(asked)), Some(at(begin)), "{asked}");
        }
        assert_eq!(GroupBy::Flow.begin(at("2026-11-23T00:00:00Z")), None);
    }
}
