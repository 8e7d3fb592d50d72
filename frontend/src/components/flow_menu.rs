//! A menu that selects one flow.

use leptos::prelude::*;

use super::inert::named;
use super::listeners::while_shown;
use crate::client::use_api;

/// A menu of all flows. It is shown if there are several, or if one is selected.
#[component]
pub fn FlowMenu(
    /// The selected flow; `None` for all.
    #[prop(into)]
    chosen: Signal<Option<String>>,
    /// Called with the new selection.
    #[prop(into)]
    choose: Callback<Option<String>>,
) -> impl IntoView {
    let api = use_api();
    // If they cannot be loaded, only the menu is missing.
    let flows = LocalResource::new(move || async move { api.flows().await.map(|page| page.items) });
    let flows = Memo::new(move |_| flows.get().and_then(Result::ok).unwrap_or_default());
    let change = move |event| choose.run(Some(event_target_value(&event)).filter(|flow| !flow.is_empty()));
    view! {
        <Show when=move || flows.with(|flows| flows.len() > 1) || chosen.with(Option::is_some)>
            <select class="select" aria-label="Flow" on:change=while_shown(change)>
                <option value="" prop:selected=move || chosen.with(Option::is_none)>"All flows"</option>
                {move || flows.get().into_iter().map(|flow| {
                    let id = flow.id.to_string();
                    let own = id.clone();
                    let is = move || chosen.with(|chosen| chosen.as_ref() == Some(&own));
                    view! { <option value=id prop:selected=is>{named(&flow.title)}</option> }
                }).collect_view()}
            </select>
        </Show>
    }
}
