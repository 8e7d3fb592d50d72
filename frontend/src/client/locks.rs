//! Locks that the tabs of a browser share (Web Locks). One ends with its tab, also if that crashes.

use js_sys::{Function, Promise, Reflect};
use leptos::prelude::window;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

#[wasm_bindgen]
extern "C" {
    type LockManager;

    #[wasm_bindgen(method)]
    fn request(this: &LockManager, name: &str, options: &JsValue, then: &JsValue) -> Promise;

    #[wasm_bindgen(method)]
    fn query(this: &LockManager) -> Promise;
}

/// A lock of this tab, beside which others may have the same. It ends when it is dropped.
#[derive(Debug)]
pub struct SharedLock {
    release: Function,
}

impl Drop for SharedLock {
    fn drop(&mut self) {
        // Resolving a promise cannot fail.
        drop(self.release.call0(&JsValue::NULL));
    }
}

/// Takes a lock; `None` if the browser has none to give.
pub fn share(name: &str) -> Option<SharedLock> {
    let mut release = None;
    let released = Promise::new(&mut |resolve, _| release = Some(resolve));
    // Whoever holds it is not interested in its end.
    drop(request(name, "shared", released.into())?);
    release.map(|release| SharedLock { release })
}

/// Waits until no tab has this lock. Returns `None` at once if the browser has no locks.
pub async fn wait_until_free(name: &str) -> Option<()> {
    JsFuture::from(request(name, "exclusive", JsValue::UNDEFINED)?).await.ok().map(drop)
}

/// Whether a tab has this lock now. `None` if the browser has no locks.
pub async fn is_held(name: &str) -> Option<bool> {
    let all = JsFuture::from(manager()?.query()).await.ok()?;
    let held = Reflect::get(&all, &"held".into()).ok()?.dyn_into::<js_sys::Array>().ok()?;
    let is_it = |lock: JsValue| Reflect::get(&lock, &"name".into()).is_ok_and(|held| held == name);
    Some(held.iter().any(is_it))
}

/// Requests a lock that lasts until `released` is resolved. Returns what is resolved after that.
fn request(name: &str, mode: &str, released: JsValue) -> Option<Promise> {
    let locks = manager()?;
    let options = js_sys::Object::new();
    // Setting a field of a new plain object cannot fail.
    drop(Reflect::set(&options, &"mode".into(), &mode.into()));
    let then = Closure::once_into_js(move || released);
    Some(locks.request(name, &options, &then))
}

/// The locks of the browser, which gives them only to pages that came over TLS or from its own machine.
fn manager() -> Option<LockManager> {
    let locks = Reflect::get(&window().navigator(), &"locks".into()).ok().filter(JsValue::is_object)?;
    Some(locks.unchecked_into())
}
