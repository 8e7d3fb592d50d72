//! The theme: light, dark, or that of the system. The choice is stored in this browser.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use crate::client::storage;

const STORAGE_KEY: &str = "countersign.theme";

/// A choice of colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Theme {
    /// The setting of the system.
    #[default]
    System,
    Light,
    Dark,
}

/// The stored theme; that of the system if none is stored.
pub fn stored() -> Theme {
    storage::read(STORAGE_KEY).unwrap_or_default()
}

/// Applies and stores a theme.
pub fn apply(theme: Theme) {
    let Some(root) = document().document_element() else { return };
    // Setting an attribute of a fixed, valid name cannot fail.
    drop(match theme {
        Theme::System => root.remove_attribute("data-theme"),
        Theme::Light => root.set_attribute("data-theme", "light"),
        Theme::Dark => root.set_attribute("data-theme", "dark"),
    });
    storage::write(STORAGE_KEY, &theme);
}
