//! What the page has asked the server while the program was still being loaded. `index.html` keeps the answers under
//! `window.early`, by what was asked for: the text of each, and until it is there a promise of it. Each is taken once.

use futures::FutureExt;
use futures::future::{join_all, select};
use gloo_timers::future::TimeoutFuture;
use leptos::prelude::window;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

/// How long the program waits for the answers before it begins without them, in milliseconds.
const PATIENCE: u32 = 1000;

/// Waits for the answers that are under way: a page that is made of them is made and painted once, and not first
/// without a name, then without rows.
pub async fn answers() {
    let Some(all) = all() else { return };
    let all = js_sys::Object::values(&all);
    let under_way = all.iter().filter_map(|answer| answer.dyn_into::<js_sys::Promise>().ok());
    let answered = join_all(under_way.map(JsFuture::from)).boxed_local();
    // What became of each is heard by whoever takes it.
    select(answered, TimeoutFuture::new(PATIENCE)).await;
}

/// The answer to a `GET` of this path that is there or under way. None where nothing was asked, or without success: who
/// asks again hears why.
pub async fn answer(path: &str) -> Option<String> {
    let all = all()?;
    let answer = js_sys::Reflect::get(&all, &path.into()).ok()?;
    // Deleting a field of a plain object cannot fail.
    drop(js_sys::Reflect::delete_property(&all, &path.into()));
    match answer.dyn_into::<js_sys::Promise>() {
        Ok(promise) => JsFuture::from(promise).await.ok()?.as_string(),
        Err(answer) => answer.as_string(),
    }
}

fn all() -> Option<js_sys::Object> {
    js_sys::Reflect::get(&window(), &JsValue::from_str("early")).ok()?.dyn_into().ok()
}
