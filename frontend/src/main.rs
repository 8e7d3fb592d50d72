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
    console_error_panic_hook::set_once();
    components::theme::apply(components::theme::stored());
    if let Some(boot) = leptos::prelude::document().get_element_by_id("boot") {
        boot.remove();
    }
    leptos::mount::mount_to_body(app::App);
}
