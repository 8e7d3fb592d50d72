//! The context of a run that a review shows: its end user, and the current item of a list.

use serde::{Deserialize, Serialize};

use crate::JsonMap;

/// The context of a run, which is kept through every pause.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct Context {
    /// The end user.
    pub user: Option<String>,
    /// The customer or organisation, in the launching program's own terms; templates read it as `context.tenant`.
    pub tenant: Option<String>,
    /// The end user's session, in the launching program's own terms; templates read it as `context.session`.
    pub session: Option<String>,
    /// Anything else; the metadata of decisions is merged into it.
    #[serde(serialize_with = "crate::user_data::members")]
    pub metadata: JsonMap,
}

/// The current item of a map's list: `2 of 5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Part {
    /// The place in the list, from 1.
    pub number: u32,
    /// The number of items.
    pub of: u32,
    /// Whether the item belongs to the call that led here: then the visits of the node are those inside that call, not
    /// one for each item.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inside: bool,
}

impl Part {
    /// Returns `visit` if the node was entered before. `None` for the first visit, and for a mapped node, whose visits
    /// are its items.
    pub fn again(part: Option<Self>, visit: u32) -> Option<u32> {
        (visit > 1 && part.is_none_or(|part| part.inside)).then_some(visit)
    }
}
