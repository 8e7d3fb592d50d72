//! Icons. They say nothing to screen readers: a word always stands beside them, or in the button's label.

use icondata::Icon as IconData;
use leptos::prelude::*;
use leptos_icons::Icon;

/// An icon, as large as the text around it.
#[component]
pub fn Glyph(
    /// Which one, such as `icondata::LuInbox`.
    #[prop(into)]
    icon: Signal<IconData>,
) -> impl IntoView {
    view! { <span class="glyph" aria-hidden="true"><Icon icon=icon width="100%" height="100%" /></span> }
}
