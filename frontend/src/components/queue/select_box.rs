//! The box at a row of the inbox that selects its review.

use leptos::prelude::*;
use shared::id::ReviewId;

use super::around::Around;
use crate::client::GlobalSignal;
use crate::components::glyph::Glyph;
use crate::components::inert::named;
use crate::components::selecting::{Selecting, refusal};
use crate::state::inbox::InboxRow;
use crate::state::selection::begun;

#[derive(Debug, Clone, PartialEq, Default)]
struct BoxState {
    on: bool,
    stop: bool,
    refusal: Option<&'static str>,
}

/// The box of a row. It is a button, so that the keys of the page work while it has the focus.
#[component]
pub fn SelectBox(
    id: ReviewId,
    row: Memo<Option<InboxRow>>,
    /// The state of the page around the row.
    around: GlobalSignal<Around>,
    selecting: Selecting,
) -> impl IntoView {
    let state = Memo::new(move |_| {
        row.with(|row| {
            let Some(row) = row else { return BoxState::default() };
            around.with(|around| {
                let has = |ids: &[ReviewId]| ids.contains(&id);
                let me = around.viewer.as_ref().map(|viewer| viewer.username.as_str());
                let begun = begun(&row.review, has(&around.drafted), around.stage(id), me);
                let refusal = refusal(row, around.viewer.as_ref(), begun);
                BoxState { on: has(&around.selected), stop: around.stop == Some(id), refusal }
            })
        })
    });
    let title =
        Memo::new(move |_| row.with(|row| row.as_ref().map(|row| named(&row.review.title))).unwrap_or_default());
    let refusal = Memo::new(move |_| state.with(|state| state.refusal));
    view! {
        <button
            type="button"
            role="checkbox"
            class="select-box"
            tabindex=move || if state.with(|state| state.stop) { "0" } else { "-1" }
            aria-checked=move || state.with(|state| state.on).to_string()
            aria-disabled=move || refusal.get().map(|_| "true")
            aria-label=move || format!("Select “{}”", title.get())
            title=move || refusal.get().map_or_else(|| "Select (x)".to_owned(), |reason| format!("Cannot be selected: {reason}"))
            on:click=move |_| selecting.toggle(id)
        >
            <i aria-hidden="true"><Glyph icon=icondata::LuCheck /></i>
        </button>
    }
}
