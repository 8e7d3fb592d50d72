//! The storage of this browser: the theme, drafts of decisions and flows, and the views that the person has saved.

use serde::Serialize;
use serde::de::DeserializeOwned;

fn local() -> Option<web_sys::Storage> {
    web_sys::window()?.local_storage().ok()?
}

/// Returns a stored value, if it exists and can still be read.
pub fn read<T: DeserializeOwned>(key: &str) -> Option<T> {
    shared::client::read(&text(key)?).ok()
}

/// Returns a value as it was stored.
pub fn text(key: &str) -> Option<String> {
    local()?.get_item(key).ok()?
}

/// Stores a value. Returns whether this succeeded: the storage may be full or forbidden.
pub fn write<T: Serialize>(key: &str, value: &T) -> bool {
    serde_json::to_string(value).is_ok_and(|text| write_text(key, &text))
}

/// Stores a text. Returns whether this succeeded.
pub fn write_text(key: &str, text: &str) -> bool {
    local().is_some_and(|local| local.set_item(key, text).is_ok())
}

/// Returns the stored keys with this prefix.
pub fn keys(prefix: &str) -> Vec<String> {
    let Some(local) = local() else { return Vec::new() };
    let keys = (0..local.length().unwrap_or(0)).filter_map(|index| local.key(index).ok().flatten());
    keys.filter(|key| key.starts_with(prefix)).collect()
}

pub fn remove(key: &str) {
    if let Some(local) = local() {
        drop(local.remove_item(key));
    }
}
