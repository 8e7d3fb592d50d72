//! The filter of the statistics, held in the address, so that a view can be bookmarked and shared.

use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use shared::review::ReviewKind;

use crate::components::glyph::Glyph;
use crate::components::list_filter::{FilterParts, FlowMenu};
use crate::components::listeners::while_shown;
use crate::state::insights::{InsightsFilter, RANGES};
use crate::state::words;

/// The controls of the filter in the head of the page.
#[component]
pub fn InsightsFilters(filter: Memo<InsightsFilter>) -> impl IntoView {
    let navigate = use_navigate();
    let go = move |filter: InsightsFilter| {
        navigate(&filter.address(), NavigateOptions { scroll: false, ..NavigateOptions::default() });
    };
    let parts = FilterParts::of(filter, Callback::new(go));
    let ranges = RANGES.map(|(days, words)| {
        let is = move || filter.with(|filter| filter.days() == days).to_string();
        view! { <button class="chip" aria-pressed=is on:click=move |_| parts.set("days", &days.to_string())>{words}</button> }
    });
    let kinds = ReviewKind::ALL.iter().copied().map(|kind| {
        let is = move || filter.with(|filter| filter.kind == Some(kind));
        view! { <option value=kind.as_str() prop:selected=is>{words::kind(kind.as_str())}</option> }
    });
    let kinds = kinds.collect_view();
    let narrowed = move || {
        let chip = |name: &'static str| {
            let value = parts.get(name)?;
            Some(view! {
                <button class="chip" aria-pressed="true" on:click=move |_| parts.set(name, "")>
                    {name}" "<b>{value}</b>" "<Glyph icon=icondata::LuX/><span class="sr">"Remove this filter"</span>
                </button>
            })
        };
        ["tool", "agent", "role", "reviewer"].into_iter().filter_map(chip).collect_view()
    };
    view! {
        <div class="chips grow" role="group" aria-label="Time">{ranges}{narrowed}</div>
        <FlowMenu parts/>
        <select class="select" aria-label="Kind" on:change=while_shown(move |event| parts.set("kind", &event_target_value(&event)))>
            <option value="" prop:selected=move || filter.with(|filter| filter.kind.is_none())>"Any kind"</option>
            {kinds}
        </select>
    }
}
