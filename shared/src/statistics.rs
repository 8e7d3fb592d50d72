//! Statistics of reviews: how many were asked, what became of them, how long people took.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::review::ReviewKind;
use crate::time::Timestamp;

/// The longest range that is counted at once, in days.
pub const MAX_DAYS: u32 = 731;
/// The most groups by time that a range may have.
pub const MAX_TIMES: u32 = 1000;
/// How many groups by anything else are told, those with the most requests.
pub const MAX_GROUPS: usize = 100;
/// How many days are counted where nothing is said.
pub const DEFAULT_DAYS: u32 = 30;

/// The query of `GET /api/v1/statistics`; a review counts only if it fits all that is set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct StatisticsQuery {
    /// Reviews that were asked from this time on; default: 30 days before `to`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// Reviews that were asked before this time; default: now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
    /// Of this flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// About a call of this tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// About something that this agent wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ReviewKind>,
    /// For this role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Decided by this person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<String>,
    /// By what they are grouped; default: not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<GroupBy>,
}

/// What the reviews of a group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum GroupBy {
    /// The hour in which they were asked.
    Hour,
    /// The day in which they were asked, in UTC.
    Day,
    /// The week in which they were asked, from Monday, in UTC.
    Week,
    /// Their flow, by id; what was asked over the API without a flow is in no group.
    Flow,
    /// A tool that is about to be called: a review of several counts for each.
    Tool,
    /// The agent that wants something.
    Agent,
    /// What is asked, as the `kind` of the review says it.
    Kind,
    /// Who decided: a review with several counts for each.
    Reviewer,
}

/// An hour, in microseconds.
const HOUR: i64 = 3_600_000_000;
/// Microseconds from 1970, a Thursday, to its first Monday.
const MONDAY: i64 = 4 * 24 * HOUR;

impl GroupBy {
    /// How long one group is, in microseconds; none for what is no time.
    pub fn length(self) -> Option<i64> {
        match self {
            Self::Hour => Some(HOUR),
            Self::Day => Some(24 * HOUR),
            Self::Week => Some(7 * 24 * HOUR),
            Self::Flow | Self::Tool | Self::Agent | Self::Kind | Self::Reviewer => None,
        }
    }

    /// When the group begins in which something was asked; none for what is no time.
    pub fn begin(self, asked: Timestamp) -> Option<Timestamp> {
        let length = self.length()?;
        let offset = if self == Self::Week { MONDAY } else { 0 };
        Some(Timestamp((asked.0 - offset).div_euclid(length) * length + offset))
    }
}

/// Why an agent gives up. The category of its review says it.
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
    /// It is not what it is for.
    OutOfScope,
    /// It needs more than it has.
    ResourceLimit,
    /// It was told things that do not fit together.
    ConflictingInstructions,
    /// It may be dangerous.
    SafetyConcern,
    /// The user asked for a person.
    UserRequested,
    /// A rule forbids it.
    PolicyViolation,
    /// It has no example of it.
    UnknownTerritory,
}

/// How long people took, from the time of the question to their decision, in milliseconds. Nothing where nobody decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ResponseTimes {
    /// The arithmetic mean, rounded down to whole milliseconds; null where no person decided.
    pub avg: Option<u64>,
    /// Half of them took no longer.
    pub p50: Option<u64>,
    /// 95 % of them took no longer.
    pub p95: Option<u64>,
}

/// Drafts that agents gave to people to edit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct EditFigures {
    /// How many reviews of kind `edit` were asked.
    pub count: u64,
    /// How many of them somebody changed.
    pub changed: u64,
}

/// What judges did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct JudgeFigures {
    /// How often one was asked.
    pub asked: u64,
    /// How often one decided.
    pub decided: u64,
    /// How often one left it to those after it.
    pub passed_on: u64,
    /// How often one could not say anything.
    pub failed: u64,
    /// How often one passed on, and a person then decided as it would have.
    pub agreed: u64,
    /// How often one passed on, and a person then decided otherwise.
    pub disagreed: u64,
}

/// What became of reviews.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Figures {
    /// How many were asked: the sum of the seven below.
    pub requests: u64,
    /// Accepted as it was asked, by a person or a handler.
    pub approved: u64,
    /// Sent back with a correction, or approved with other arguments.
    pub corrected: u64,
    /// Stopped, or at least one call rejected.
    pub rejected: u64,
    /// Answered with text, or by an alternative.
    pub answered: u64,
    /// The time was up, whatever followed.
    pub expired: u64,
    /// Withdrawn: somebody took the review back, or its run ended or went on without it.
    pub withdrawn: u64,
    /// Not over yet: they wait for a decision.
    pub pending: u64,
    /// The part of the approved among the approved, corrected and rejected; none where there are none.
    pub approval_rate: Option<f64>,
    /// How long people took.
    pub response_ms: ResponseTimes,
    /// Questions of agents.
    pub clarifications: u64,
    /// Drafts to edit.
    pub edits: EditFigures,
    /// How often an agent gave up.
    pub escalations: u64,
    /// Why: each reason has its number.
    pub escalations_by_reason: BTreeMap<EscalationReason, u64>,
    /// Reports of progress.
    pub checkpoints: u64,
    /// Reviews of kind `handoff`: a person is to take something over, and the run does not wait for that.
    pub handoffs: u64,
    /// How often a guardrail blocked what leave was given for, by its name.
    pub vetoes: BTreeMap<String, u64>,
    /// What judges did.
    pub judge: JudgeFigures,
}

/// Reviews that have something in common.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatisticsGroup {
    /// What: a name, or the time at which the hour, day or week begins.
    pub key: String,
    /// What became of them.
    #[serde(flatten)]
    pub figures: Figures,
}

/// The answer of `GET /api/v1/statistics`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Statistics {
    /// From when on reviews were counted, by the time at which they were asked.
    pub from: Timestamp,
    /// Reviews that were asked at this time or later are not counted: `to` of the query, or the time of the request.
    pub to: Timestamp,
    /// What became of all of them.
    #[serde(flatten)]
    pub figures: Figures,
    /// By what was asked for: times in order, without those in which nothing was asked; else by the number of requests.
    pub groups: Vec<StatisticsGroup>,
    /// How many further groups there are, which have fewer requests.
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
