//! What this browser keeps: the theme, drafts of decisions.

use serde::Serialize;
use serde::de::DeserializeOwned;

fn local() -> Option<web_sys::Storage> {
    web_sys::window()?.local_storage().ok()?
}

/// A value that was kept, if it is there and can still be read.
pub fn read<T: DeserializeOwned>(key: &str) -> Option<T> {
    serde_json::from_str(&local()?.get_item(key).ok()??).ok()
}

/// Keeps a value. Does nothing where the browser does not allow it.
pub fn write<T: Serialize>(key: &str, value: &T) {
    if let (Some(local), Ok(text)) = (local(), serde_json::to_string(value)) {
        // A full or forbidden storage costs the draft after a reload, nothing else.
        drop(local.set_item(key, &text));
    }
}

/// Forgets a value.
pub fn remove(key: &str) {
    if let Some(local) = local() {
        drop(local.remove_item(key));
    }
}
