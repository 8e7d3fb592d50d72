//! Logging in.

use leptos::prelude::*;

/// Logging in.
#[component]
pub fn LoginPage() -> impl IntoView {
    view! { <main class="login"><h1>"Countersign"</h1></main> }
}
