//! The query of lists and counts of reviews.

use serde::{Deserialize, Serialize};

use super::{Asker, Assigned, Due, ReviewOrder};
use crate::definition::Severity;
use crate::id::RunId;
use crate::review::{ReviewKind, ReviewStatus};
use crate::time::Span;

/// `GET /api/v1/reviews`; without `run`, `requested_by`, `order`, `limit` and `cursor` also
/// `GET /api/v1/reviews/facets`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct ReviewQuery {
    /// Only reviews with this status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ReviewStatus>,
    /// Only reviews of this kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ReviewKind>,
    /// Only reviews that this role may decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Only reviews of this severity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// Only reviews of this flow, by its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Only reviews of this run, by its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Only reviews whose reviewers, where they are asked by role, must have this tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Only reviews that are due within this time (`30m`), by this time, or never (`none`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due: Option<Due>,
    /// `true`: only reviews whose consequences cannot be undone; `false`: only the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub irreversible: Option<bool>,
    /// Only reviews of at least this age: `2h`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age: Option<Span>,
    /// Words in title, prompt, flow title, node, requester, actions, consequences, arguments and items; all must occur.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    /// Only reviews with this assignment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assigned: Option<Assigned>,
    /// `me`: only reviews that the caller requested, or of runs that the caller started. Refused with the order
    /// `urgency` and for facets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<Asker>,
    /// The order of the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<ReviewOrder>,
    /// The most reviews on a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}
