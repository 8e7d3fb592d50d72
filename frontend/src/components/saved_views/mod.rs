//! The saved views of the inbox: filters that a person keeps under names.

mod manage;
mod save;

use leptos::prelude::*;
use shared::inbox::ReviewQuery;
use shared::saved_view::{SavedView, Views};

use self::manage::ManageViews;
pub use self::save::SaveView;
use super::glyph::Glyph;
use super::inert::inert;
use crate::client::SavedViews;

/// The views to choose from, and a button to change them. Nothing until there is one.
#[component]
pub fn ViewChoices(
    /// The current filter.
    query: Memo<ReviewQuery>,
    /// Called with the filter of the chosen view.
    choose: Callback<ReviewQuery>,
) -> impl IntoView {
    let saved = expect_context::<SavedViews>();
    let views = Memo::new(move |_| saved.get().map(|Views { views, .. }| views).unwrap_or_default());
    let manages = RwSignal::new(false);
    let choice = move |SavedView { name, filter, .. }: SavedView| {
        let own = filter.clone();
        let is_current = Memo::new(move |_| query.with(|query| *query == own));
        view! {
            <button
                type="button"
                class="chip"
                aria-current=move || is_current.get().then_some("true")
                on:click=move |_| choose.run(filter.clone())
            >
                <span class="cut">{inert(&name)}</span>
            </button>
        }
    };
    view! {
        <Show when=move || !views.with(Vec::is_empty)>
            <div class="views">
                <div class="chips" role="group" aria-label="Saved views">
                    {move || views.get().into_iter().map(choice).collect_view()}
                </div>
                <button
                    type="button"
                    class="b ghost sm icon"
                    title="Manage views"
                    aria-label="Manage views"
                    on:click=move |_| manages.set(true)
                >
                    <Glyph icon=icondata::LuSettings2 />
                </button>
            </div>
        </Show>
        <ManageViews open=manages />
    }
}
