//! The results of a search by relevance, with marked words.

use serde::{Deserialize, Serialize};

/// The hits of a search, most relevant first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "FoundOf{T}"))]
pub struct SearchResults<T> {
    /// The hits, at most `limit` of them (default 50, at most 200); a search has no further pages.
    pub items: Vec<Hit<T>>,
    /// Whether there are more matches, of which only the newest were ranked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

/// A hit, which contains all the words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "HitOf{T}"))]
pub struct Hit<T> {
    /// The item that was found.
    pub item: T,
    /// The excerpts with the words, most telling first.
    pub excerpts: Vec<Excerpt>,
}

/// An excerpt of a text with words of the search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Excerpt {
    /// The text of the excerpt, with `…` where it was cut.
    pub text: String,
    /// The words in the excerpt, in order.
    pub marks: Vec<Mark>,
}

/// A word in an excerpt, in characters (Unicode scalar values) from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mark {
    /// The word's first character, from 0.
    pub start: u32,
    /// The position after the last character.
    pub end: u32,
}
