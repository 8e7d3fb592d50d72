//! The query of lists and counts of reviews.

use serde::{Deserialize, Serialize};

use super::{Asker, Assigned, Due, ReviewOrder};
use crate::definition::Severity;
use crate::id::RunId;
use crate::review::{ReviewKind, ReviewStatus};
use crate::time::Span;

/// `GET /api/v1/reviews`; without `order`, `limit` and `cursor` also `GET /api/v1/reviews/facets`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct ReviewQuery {
    /// Where they stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ReviewStatus>,
    /// What is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ReviewKind>,
    /// For this role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// How much is at stake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// Of this flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Of this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Needing this tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// By when their time is up: `30m`, a time, or `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due: Option<Due>,
    /// `true`: those whose consequences cannot be undone; `false`: the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub irreversible: Option<bool>,
    /// Asked so long ago, or longer: `2h`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age: Option<Span>,
    /// Words in title, prompt, flow title, node, requester, actions, consequences, arguments and items; all must be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    /// Their assignment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assigned: Option<Assigned>,
    /// Asked by whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<Asker>,
    /// In which order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<ReviewOrder>,
    /// How many rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Where the page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}
