//! What this browser keeps: the theme, drafts of decisions and of flows.

use serde::Serialize;
use serde::de::DeserializeOwned;

fn local() -> Option<web_sys::Storage> {
    web_sys::window()?.local_storage().ok()?
}

/// A value that was kept, if it is there and can still be read.
pub fn read<T: DeserializeOwned>(key: &str) -> Option<T> {
    shared::client::read(&text(key)?).ok()
}

/// A value as it was kept.
pub fn text(key: &str) -> Option<String> {
    local()?.get_item(key).ok()?
}

/// Keeps a value. Whether the browser did: its storage may be full, or forbidden.
pub fn write<T: Serialize>(key: &str, value: &T) -> bool {
    serde_json::to_string(value).is_ok_and(|text| write_text(key, &text))
}

/// Keeps a text. Whether the browser did.
pub fn write_text(key: &str, text: &str) -> bool {
    local().is_some_and(|local| local.set_item(key, text).is_ok())
}

/// The keys of what was kept that begin so.
pub fn keys(prefix: &str) -> Vec<String> {
    let Some(local) = local() else { return Vec::new() };
    let keys = (0..local.length().unwrap_or(0)).filter_map(|index| local.key(index).ok().flatten());
    keys.filter(|key| key.starts_with(prefix)).collect()
}

/// Forgets a value.
pub fn remove(key: &str) {
    if let Some(local) = local() {
        drop(local.remove_item(key));
    }
}
