//! The review of the current address, or the selected ones, beside the list of the inbox or in its place; and the way
//! back to the list.

use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_location, use_navigate, use_params};
use leptos_router::params::Params;
use shared::id::ReviewId;

use crate::components::review::{ReviewPane, SelectedReviews};
use crate::components::states::Empty;

#[derive(Params, PartialEq)]
struct ReviewParams {
    id: ReviewId,
}

/// Returns a callback that goes back to the list, with the same filter.
pub fn back_to_the_list() -> Callback<()> {
    let navigate = use_navigate();
    let search = use_location().search;
    Callback::new(move |()| {
        let search = search.get_untracked();
        let mark = if search.is_empty() { "" } else { "?" };
        navigate(&format!("/inbox{mark}{search}"), NavigateOptions { scroll: false, ..NavigateOptions::default() });
    })
}

/// The pane of the review in the address, beside the list or, on a narrow screen, in its place.
#[component]
pub fn OpenPane() -> impl IntoView {
    let params = use_params::<ReviewParams>();
    let id = Memo::new(move |_| params.with(|params| params.as_ref().ok().map(|params| params.id)));
    let back = back_to_the_list();
    move || match id.get() {
        Some(id) => view! { <ReviewPane id=id back=back /> }.into_any(),
        None => view! {
            <article class="read">
                <Empty icon=icondata::LuSearch title="This is not the address of a review" page=true>
                    <button class="b" on:click=move |_| back.run(())>"Go to the inbox"</button>
                </Empty>
            </article>
        }
        .into_any(),
    }
}

/// The selected reviews, beside the list or, on a narrow screen, in its place.
#[component]
pub fn SelectedPane() -> impl IntoView {
    view! { <SelectedReviews back=back_to_the_list() /> }
}
