//! What the page has asked the server while the program was still being loaded. `index.html` keeps the answers under
//! `window.early`, by what was asked for; each is taken once.

use gloo_net::http::Response;
use leptos::prelude::window;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

/// The answer to a `GET` of this path that is there or under way. None where nothing was asked, or without success: who
/// asks again hears why.
pub async fn answer(path: &str) -> Option<Response> {
    let all = js_sys::Reflect::get(&window(), &JsValue::from_str("early")).ok()?.dyn_into::<js_sys::Object>().ok()?;
    let promise = js_sys::Reflect::get(&all, &path.into()).ok()?.dyn_into::<js_sys::Promise>().ok()?;
    // Deleting a field of a plain object cannot fail.
    drop(js_sys::Reflect::delete_property(&all, &path.into()));
    let response = Response::from(JsFuture::from(promise).await.ok()?.dyn_into::<web_sys::Response>().ok()?);
    response.ok().then_some(response)
}
