//! Requests that the page sent while the program was still loading. `index.html` keeps the responses in `window.early`,
//! by path: the text of each, and until it arrives, a promise of it. Each is taken once.

use futures::FutureExt;
use futures::future::{join_all, select};
use gloo_timers::future::TimeoutFuture;
use leptos::prelude::window;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

/// How long the program waits for the responses before it starts without them, in milliseconds.
const EARLY_TIMEOUT: u32 = 1000;

/// Waits for the pending responses, so that the page is built and painted once, not first without a name and then
/// without rows.
pub async fn answers() {
    let Some(all) = all() else { return };
    let all = js_sys::Object::values(&all);
    let under_way = all.iter().filter_map(|answer| answer.dyn_into::<js_sys::Promise>().ok());
    let answered = join_all(under_way.map(JsFuture::from)).boxed_local();
    // Whoever takes a response learns whether it failed.
    select(answered, TimeoutFuture::new(EARLY_TIMEOUT)).await;
}

/// Returns the finished or pending response to a `GET` of this path. None if it was not requested or failed: a new
/// request returns the error.
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
