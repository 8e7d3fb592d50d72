//! The page for unknown addresses.

use leptos::prelude::*;

use crate::components::states::Empty;

#[component]
pub fn NotFoundPage() -> impl IntoView {
    view! {
        <main class="empty-page">
            <Empty icon=icondata::LuSearch title="Page not found" page=true link=("/inbox", "Go to the inbox")
                text="The link may be old, or you may not have access to this page." />
        </main>
    }
}
