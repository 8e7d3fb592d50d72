//! Values that are literal in a flow, or rendered from a template when they are needed.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A literal value, or a template for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(untagged)]
pub enum Templated<T> {
    /// A literal value in the flow file.
    Value(T),
    /// A text with `{{` or `{%` in it, which is rendered when the value is needed.
    Template(TemplateText),
}

/// A text that contains a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct TemplateText(pub String);

impl TemplateText {
    /// Whether a text contains a template.
    pub fn is_one(text: &str) -> bool {
        text.contains("{{") || text.contains("{%")
    }
}

impl<T> Templated<T> {
    /// Returns the value, if it is literal.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Template(_) => None,
        }
    }

    /// Returns the template, if there is one.
    pub fn template(&self) -> Option<&str> {
        match self {
            Self::Value(_) => None,
            Self::Template(TemplateText(text)) => Some(text),
        }
    }
}

impl<T: Default> Default for Templated<T> {
    fn default() -> Self {
        Self::Value(T::default())
    }
}

impl<T> From<T> for Templated<T> {
    fn from(value: T) -> Self {
        Self::Value(value)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Templated<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) if TemplateText::is_one(&text) => Ok(Self::Template(TemplateText(text))),
            value => serde_json::from_value(value).map(Self::Value).map_err(D::Error::custom),
        }
    }
}
