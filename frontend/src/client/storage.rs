//! What this browser keeps: the theme, drafts of decisions and of flows.

use serde::Serialize;
use serde::de::DeserializeOwned;

fn local() -> Option<web_sys::Storage> {
    web_sys::window()?.local_storage().ok()?
}

/// A value that was kept, if it is there and can still be read.
pub fn read<T: DeserializeOwned>(key: &str) -> Option<T> {
    shared::client::read(&local()?.get_item(key).ok()??).ok()
}

/// Keeps a value. Whether the browser did: its storage may be full, or forbidden.
pub fn write<T: Serialize>(key: &str, value: &T) -> bool {
    let text = serde_json::to_string(value).ok();
    local().zip(text).is_some_and(|(local, text)| local.set_item(key, &text).is_ok())
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
