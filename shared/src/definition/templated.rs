//! Values that a flow writes out, or that a template gives when they are needed.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A value, or a template that gives it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(untagged)]
pub enum Templated<T> {
    /// A value that the flow file writes out.
    Value(T),
    /// A text with `{{` or `{%` in it, which is rendered when the value is needed.
    Template(TemplateText),
}

/// A text with a template in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct TemplateText(pub String);

impl TemplateText {
    /// Whether a text has a template in it.
    pub fn is_one(text: &str) -> bool {
        text.contains("{{") || text.contains("{%")
    }
}

impl<T> Templated<T> {
    /// The value, where it is written out.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Template(_) => None,
        }
    }

    /// The template, where one gives the value.
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
