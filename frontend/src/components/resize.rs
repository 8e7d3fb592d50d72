//! Observes the size of an element, as the browser reports it after layout.

use leptos::html::ElementType;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;

/// Calls `changed` with the element of `node` after it was first laid out and whenever its size has changed, while the
/// calling component exists. Reading sizes there forces no extra layout.
pub fn on_resize<E>(node: NodeRef<E>, changed: impl Fn(&web_sys::Element) + 'static)
where
    E: ElementType + 'static,
    E::Output: JsCast + Clone + 'static,
{
    let resized = Closure::<dyn Fn()>::new(move || {
        if let Some(element) = node.try_get_untracked().flatten() {
            changed(element.unchecked_ref());
        }
    });
    // It fails only if the argument is no function.
    let Ok(observer) = web_sys::ResizeObserver::new(resized.as_ref().unchecked_ref()) else { return };
    let observer = StoredValue::new_local((observer, resized));
    Effect::new(move |_| {
        if let Some(element) = node.get() {
            observer.with_value(|(observer, _)| observer.observe(element.unchecked_ref()));
        }
    });
    on_cleanup(move || observer.with_value(|(observer, _)| observer.disconnect()));
}
