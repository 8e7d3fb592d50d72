//! The warning about hidden characters in edited text, since fields do not show them.

use leptos::prelude::*;

use crate::components::glyph::Glyph;
use crate::state::words;

/// The number of hidden characters in an edited value, and a button that removes them.
#[component]
pub fn HiddenWarning(
    /// The number of hidden characters.
    #[prop(into)]
    count: Signal<usize>,
    #[prop(into)] remove: Callback<()>,
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
