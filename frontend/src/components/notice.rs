//! The corner that shows notices.

use leptos::prelude::*;

use super::glyph::Glyph;
use super::inert::inert;
use crate::client::notifier::NoticeTone;
pub use crate::client::notifier::Notifier;

/// The list of notices, which screen readers announce as they come.
#[component]
pub fn Notices() -> impl IntoView {
    let notifier = expect_context::<Notifier>();
    view! {
        <div class="notices" role="status" aria-live="polite">
            <For each=move || notifier.shown.get() key=|notice| notice.id let:notice>
                <div class="notice">
                    {match notice.tone {
                        NoticeTone::Good => view! { <span class="go"><Glyph icon=icondata::LuCircleCheck /></span> }.into_any(),
                        NoticeTone::Plain => view! { <span class="muted"><Glyph icon=icondata::LuInfo /></span> }.into_any(),
                        NoticeTone::Bad => view! { <span class="stop"><Glyph icon=icondata::LuTriangleAlert /></span> }.into_any(),
                    }}
                    <span class="grow">{inert(&notice.text)}</span>
                    <button class="b ghost sm icon" aria-label="Close" on:click=move |_| notifier.close(notice.id)>
                        <Glyph icon=icondata::LuX />
                    </button>
                </div>
            </For>
        </div>
    }
}
