//! Icons. They are hidden from screen readers, so each needs a word beside it or in the button's label.

use icondata::Icon as IconData;
use leptos::prelude::*;
use leptos::tachys::svg::InertElement;

/// An icon, as large as the text around it.
#[component]
pub fn Glyph(
    /// The icon, such as `icondata::LuInbox`.
    #[prop(into)]
    icon: Signal<IconData>,
) -> impl IntoView {
    view! { <span class="glyph" aria-hidden="true">{move || drawing(icon.get())}</span> }
}

fn drawing(icon: IconData) -> impl IntoView {
    let shapes = InertElement::new(format!("<g>{}</g>", icon.data));
    view! {
        <svg
            width="100%"
            height="100%"
            viewBox=icon.view_box
            stroke-linecap=icon.stroke_linecap
            stroke-linejoin=icon.stroke_linejoin
            stroke-width=icon.stroke_width
            stroke=icon.stroke
            fill=icon.fill.unwrap_or("currentColor")
            role="graphics-symbol"
        >
            {shapes}
        </svg>
    }
}
