//! Saved views of the inbox: filters that a person keeps under names.

use serde::{Deserialize, Serialize};

use crate::inbox::ReviewQuery;

/// The most views of a person.
pub const MAX_VIEWS: usize = 30;
/// The longest name of a view, in characters.
pub const MAX_VIEW_NAME: usize = 60;

/// `GET` and `PUT /api/v1/me/views`: the views of the caller, in their order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Views {
    /// The number of changes so far. A change names the revision that it was made from, and is refused if there is a
    /// newer one.
    pub revision: u64,
    /// The views.
    pub views: Vec<SavedView>,
}

/// A filter under a name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "View"), serde(deny_unknown_fields))]
pub struct SavedView {
    /// The name, which is unique among the person's views.
    pub name: String,
    /// The filter: parameters of `GET /api/v1/reviews`, without `status`, `run`, `requested_by`, `order`, `limit` and
    /// `cursor`. What it names need not exist.
    pub filter: ReviewQuery,
    /// Whether the inbox opens with it; at most one view.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub default: bool,
}
