//! The page for unknown addresses.

use leptos::prelude::*;

use crate::components::states::Empty;

/// The page for an unknown address.
#[component]
pub fn NotFoundPage() -> impl IntoView {
    view! {
        <main class="empty-page">
            <Empty icon=icondata::LuSearch title="Page not found" page=true>
                <p>"The link may be old, or you may not have access to what it names."</p>
                <a href="/inbox" class="b">"Go to the inbox"</a>
            </Empty>
        </main>
    }
}
