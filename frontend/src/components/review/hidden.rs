//! The warning of hidden characters where somebody edits: no field shows them as marks.

use leptos::prelude::*;

use crate::components::glyph::Glyph;
use crate::state::words;

/// Says how many there are in what is edited, and takes them out.
#[component]
pub fn HiddenWarning(
    /// How many there are.
    #[prop(into)]
    count: Signal<usize>,
    /// Takes them out.
    #[prop(into)]
    remove: Callback<()>,
) -> impl IntoView {
    let count = Memo::new(move |_| count.get());
    view! {
        <Show when=move || { count.get() > 0 }>
            <div class="banner warn" role="status">
                <Glyph icon=icondata::LuEyeOff />
                <span class="grow">
                    {move || words::count(count.get(), "hidden character", "hidden characters")}
                    " in this text, which this field does not show."
                </span>
                <button type="button" class="b sm" on:click=move |_| remove.run(())>"Remove them"</button>
            </div>
        </Show>
    }
}
