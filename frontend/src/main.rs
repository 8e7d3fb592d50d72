//! The console of Countersign: a Leptos application for the browser.
//!
//! Imports `shared` only. Inside, one way: `state` (pure, no Leptos) <- `client` (fetch and the live socket) <-
//! `components` <- `pages` <- `app`.

#![expect(
    clippy::needless_pass_by_value,
    clippy::large_types_passed_by_value,
    reason = "components take their properties by value"
)]

mod app;
mod client;
mod components;
mod pages;
mod state;

fn main() {
    std::panic::set_hook(Box::new(|panic| {
        console_error_panic_hook::hook(panic);
        show_that_it_stopped(&panic.to_string());
    }));
    wasm_bindgen_futures::spawn_local(async {
        client::early::answers().await;
        if let Some(boot) = leptos::prelude::document().get_element_by_id("boot") {
            boot.remove();
        }
        leptos::mount::mount_to_body(app::App);
    });
}

/// Shows the message that `index.html` has for it. After a panic, no code of the program may be called any longer, so
/// this touches only the page itself.
fn show_that_it_stopped(why: &str) {
    let find = |selector| leptos::prelude::document().query_selector(selector).ok().flatten();
    if let Some(text) = find("#stopped pre") {
        text.set_text_content(Some(why));
    }
    if let Some(page) = find("#stopped") {
        // Removing an attribute of a fixed, valid name cannot fail.
        drop(page.remove_attribute("hidden"));
    }
}
