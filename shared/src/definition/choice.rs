//! The options that a person may choose.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::invisible_characters::is_invisible;

/// What choosing an option does to the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ChoiceKind {
    /// The run follows `next`.
    #[default]
    Accept,
    /// The step that made the content runs again with a message.
    Correct,
    /// The run ends, or goes to `on_reject`.
    Stop,
}

/// One option of a human node.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Choice"), serde(deny_unknown_fields))]
pub struct HumanOption {
    /// The id that a decision names.
    pub id: String,
    /// The effect of choosing it.
    #[serde(default)]
    pub kind: ChoiceKind,
    /// The label that people read.
    pub label: String,
    /// With `correct`: the message to the source step. With `stop`: the reason why the run ended.
    pub message: Option<String>,
    /// A longer description.
    pub description: Option<String>,
}

/// Normalises a text to what people can tell apart: in lower case, without invisible characters and extra spaces.
pub fn as_read(text: &str) -> String {
    let seen: String = text.chars().filter(|c| !is_invisible(*c)).collect();
    seen.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Returns the first text that people cannot tell apart from an earlier one; `None` if all are distinct.
pub fn read_twice<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Option<T> {
    let mut known = BTreeSet::new();
    texts.into_iter().find(|text| !known.insert(as_read(text.as_ref())))
}

/// Returns the text of an option: its label, and its description if there is one.
pub fn option_text(label: &str, description: Option<&str>) -> String {
    description.map_or_else(|| label.to_owned(), |more| format!("{label} {more}"))
}

impl HumanOption {
    /// Returns the text that people read: the label, and the description if there is one.
    pub fn text(&self) -> String {
        option_text(&self.label, self.description.as_deref())
    }

    /// Creates an accepting option whose id is its label.
    pub fn of_text(text: &str) -> Self {
        let (id, label) = (text.to_owned(), text.to_owned());
        Self { id, kind: ChoiceKind::Accept, label, message: None, description: None }
    }
}
