//! The inbox.

use leptos::prelude::*;

/// The inbox.
#[component]
pub fn InboxPage() -> impl IntoView {
    view! { <section class="inbox"></section> }
}
