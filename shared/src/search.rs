//! What a search finds, by relevance, with marks where the words stand.

use serde::{Deserialize, Serialize};

/// What was found, the most relevant first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "FoundOf{T}"))]
pub struct Found<T> {
    /// The hits, at most `limit` of them (default 50, at most 200); a search has no further pages.
    pub items: Vec<Hit<T>>,
    /// There is more that has the words: the newest of it was ranked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

/// One thing that has all the words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "HitOf{T}"))]
pub struct Hit<T> {
    /// What it is.
    pub item: T,
    /// Where the words stand in it, the most telling first.
    pub excerpts: Vec<Excerpt>,
}

/// A part of a text that holds words of the search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Excerpt {
    /// The part, `…` where it was cut.
    pub text: String,
    /// The words in it, in order.
    pub marks: Vec<Mark>,
}

/// A word in an excerpt, in characters (Unicode scalar values) from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mark {
    /// The word's first character, from 0.
    pub start: u32,
    /// The one behind the last.
    pub end: u32,
}
