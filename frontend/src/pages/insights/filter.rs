//! The filter of the statistics, held in the address, so that a view can be bookmarked and shared.

use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use shared::review::ReviewKind;

use crate::components::flow_menu::FlowMenu;
use crate::components::glyph::Glyph;
use crate::components::listeners::while_shown;
use crate::state::insights::{InsightsFilter, RANGES};

/// The controls of the filter in the head of the page.
#[component]
pub fn InsightsFilters(filter: Memo<InsightsFilter>) -> impl IntoView {
    let navigate = StoredValue::new(use_navigate());
    let go = move |change: &dyn Fn(&mut InsightsFilter)| {
        let mut next = filter.get_untracked();
        change(&mut next);
        let options = NavigateOptions { scroll: false, ..NavigateOptions::default() };
        navigate.with_value(|navigate| navigate(&next.address(), options));
    };
    let flow = move |flow: Option<String>| go(&|filter| filter.flow.clone_from(&flow));
    let ranges = RANGES.map(|(days, words)| {
        let is = move || filter.with(|filter| filter.days() == days).to_string();
        view! { <button class="chip" aria-pressed=is on:click=move |_| go(&|filter| filter.days = Some(days))>{words}</button> }
    });
    let kinds = ReviewKind::ALL.iter().copied().map(|kind| {
        let is = move || filter.with(|filter| filter.kind == Some(kind));
        view! { <option value=kind.as_str() prop:selected=is>{kind.as_str().replace('_', " ")}</option> }
    });
    let kinds = kinds.collect_view();
    let narrowed = move || {
        let InsightsFilter { tool, agent, role, reviewer, .. } = filter.get();
        [("tool", tool), ("agent", agent), ("role", role), ("reviewer", reviewer)]
            .into_iter()
            .filter_map(|(name, value)| {
                let value = value?;
                let clear = move |_| {
                    go(&|filter| match name {
                        "tool" => filter.tool = None,
                        "agent" => filter.agent = None,
                        "role" => filter.role = None,
                        _ => filter.reviewer = None,
                    });
                };
                Some(view! {
                    <button class="chip" aria-pressed="true" on:click=clear>
                        {name}" "<b>{value}</b>" "<Glyph icon=icondata::LuX/><span class="sr">"Remove this filter"</span>
                    </button>
                })
            })
            .collect_view()
    };
    view! {
        <div class="chips grow" role="group" aria-label="Time">{ranges}{narrowed}</div>
        <FlowMenu chosen=Signal::derive(move || filter.with(|filter| filter.flow.clone())) choose=flow/>
        <select class="select" aria-label="Kind" on:change=while_shown(move |event| {
            let kind = event_target_value(&event);
            go(&|filter| filter.kind = ReviewKind::of_word(&kind));
        })>
            <option value="" prop:selected=move || filter.with(|filter| filter.kind.is_none())>"All kinds"</option>
            {kinds}
        </select>
    }
}
