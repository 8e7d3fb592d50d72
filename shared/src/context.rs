//! What a review shows of the run that asks: for whom it goes, and which item of a list is worked on.

use serde::{Deserialize, Serialize};

use crate::JsonMap;

/// For whom, and with what, a run goes; carried through every pause.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct Context {
    /// The end user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The customer or organisation, in the launching program's own terms; templates read it as `context.tenant`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The end user's session, in the launching program's own terms; templates read it as `context.session`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Anything else; decisions' metadata is merged into it.
    pub metadata: JsonMap,
}

impl Context {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Which item of a map's list is worked on: `2 of 5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Part {
    /// Its place in the list, from 1.
    pub number: u32,
    /// How many there are.
    pub of: u32,
    /// Whether the item is that of the call which led here: then the visits of the node are those inside that call, and
    /// not one for each item.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inside: bool,
}

impl Part {
    /// Which time it is that a node is visited, where that says something: the visits of a mapped node are its items.
    pub fn again(part: Option<Self>, visit: u32) -> Option<u32> {
        (visit > 1 && part.is_none_or(|part| part.inside)).then_some(visit)
    }
}
