//! The frame around every page: the rail, the state of the connection, the person's menu.

use leptos::prelude::*;
use leptos_router::components::{A, Outlet};

/// The frame around every page.
#[component]
pub fn Shell() -> impl IntoView {
    view! {
        <div class="shell">
            <nav class="rail" aria-label="Main">
                <A href="/inbox">"Inbox"</A>
                <A href="/runs">"Runs"</A>
                <A href="/flows">"Flows"</A>
                <A href="/audit">"Audit"</A>
                <A href="/people">"People"</A>
            </nav>
            <main class="content"><Outlet /></main>
        </div>
    }
}
