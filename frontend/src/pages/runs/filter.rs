//! The controls of the filter of the list of runs. Each changes the address, so that a view can be bookmarked and shared.

use leptos::html;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use shared::client::query_string;
use shared::person_filter::PersonFilter;
use shared::run::RunStatus;

use crate::components::flow_menu::FlowMenu;
use crate::components::focus::bring_into_view;
use crate::components::listeners::while_shown;
use crate::state::ending::{Ending, ending_word, word};
use crate::state::run_filter::RunFilter;

/// Chips for the status, the ending and one's own runs, a menu for the flow, and fields for words, person and days.
#[component]
pub fn RunFilters(filter: Memo<RunFilter>) -> impl IntoView {
    let navigate = StoredValue::new(use_navigate());
    let go = move |filter: &RunFilter| {
        let options = NavigateOptions { replace: true, scroll: false, ..NavigateOptions::default() };
        navigate.with_value(|navigate| navigate(&format!("/runs{}", query_string(filter)), options));
    };
    let chip = move |label: &'static str, status: Option<RunStatus>, ending: Option<Ending>| {
        let is = move || filter.with(|filter| filter.status == status && filter.ending == ending);
        view! {
            <button type="button" class="chip" aria-pressed=move || is().to_string()
                on:click=move |_| go(&RunFilter { status, ending, ..filter.get_untracked() })>{label}</button>
        }
    };
    // On a phone the chips are in one line, which scrolls.
    let chips = NodeRef::<html::Div>::new();
    Effect::new(move |_| {
        filter.track();
        let Some(chips) = chips.get() else { return };
        request_animation_frame(move || {
            if let Ok(Some(chip)) = chips.query_selector("[aria-pressed=true]") {
                bring_into_view(&chip);
            }
        });
    });
    let chosen = move |flow| go(&RunFilter { flow, ..filter.get_untracked() });
    view! {
        <div node_ref=chips class="chips grow" role="group" aria-label="Status">
            {chip("All", None, None)}
            {RunStatus::ALL.iter().map(|status| chip(word(*status), Some(*status), None)).collect_view()}
            {Ending::ALL.iter().map(|ending| chip(ending_word(*ending), None, Some(*ending))).collect_view()}
        </div>
        <FlowMenu chosen=Signal::derive(move || filter.with(|filter| filter.flow.clone())) choose=chosen/>
        <RunFields filter change=Callback::new(move |filter: RunFilter| go(&filter))/>
    }
}

/// The fields for words, person and days.
#[component]
fn RunFields(
    filter: Memo<RunFilter>,
    /// Called with the new filter.
    change: Callback<RunFilter>,
) -> impl IntoView {
    let text = |value: String| Some(value.trim().to_owned()).filter(|value| !value.is_empty());
    let with = move |set: fn(&mut RunFilter, Option<String>), value: String| {
        let mut next = filter.get_untracked();
        set(&mut next, text(value));
        change.run(next);
    };
    let by = move || filter.with(|filter| filter.requested_by.as_ref().map(ToString::to_string).unwrap_or_default());
    let is_mine = move || filter.with(|filter| filter.requested_by == Some(PersonFilter::Me));
    let mine = move |_| {
        let now = filter.get_untracked();
        let requested_by = Some(PersonFilter::Me).filter(|me| now.requested_by.as_ref() != Some(me));
        change.run(RunFilter { requested_by, ..now });
    };
    let is_narrowed = move || {
        let words_and_more = |filter: &RunFilter| {
            filter.q.is_some() || filter.requested_by.is_some() || filter.from.is_some() || filter.to.is_some()
        };
        filter.with(words_and_more)
    };
    view! {
        <form class="run-filters" role="search" on:submit=|event| event.prevent_default()>
            <label class="grow"><span class="sr">"Words"</span>
                <input class="input" type="search" maxlength="500" placeholder="Words in flow or topic, or a run's id"
                    prop:value=move || filter.with(|filter| filter.q.clone().unwrap_or_default())
                    on:change=while_shown(move |event| with(|filter, value| filter.q = value, event_target_value(&event)))/></label>
            <button type="button" class="chip" aria-pressed=move || is_mine().to_string() on:click=mine>"Started by me"</button>
            <label><span class="sr">"Started by"</span>
                <input class="input who-filter" placeholder="Started by" autocapitalize="off" spellcheck="false"
                    pattern="[A-Za-z0-9][A-Za-z0-9._\\-]*" title="A username, or me" prop:value=by
                    on:change=while_shown(move |event| with(set_by, event_target_value(&event)))/></label>
            <div class="days">
                <label class="day"><span class="hint">"from"</span>
                    <input class="input" type="date" title="Days are in your time zone" prop:value=move || filter.with(|filter| filter.from.clone().unwrap_or_default())
                        on:change=while_shown(move |event| with(|filter, value| filter.from = value, event_target_value(&event)))/></label>
                <label class="day"><span class="hint">"to"</span>
                    <input class="input" type="date" title="Days are in your time zone; this day is included" prop:value=move || filter.with(|filter| filter.to.clone().unwrap_or_default())
                        on:change=while_shown(move |event| with(|filter, value| filter.to = value, event_target_value(&event)))/></label>
            </div>
            <Show when=is_narrowed>
                <a href="/runs" class="b sm ghost">"Clear"</a>
            </Show>
        </form>
    }
}

/// Sets the person. What cannot be a username leaves the filter as it is.
fn set_by(filter: &mut RunFilter, name: Option<String>) {
    match name.map(|name| name.to_lowercase().parse::<PersonFilter>()) {
        Some(Ok(name)) => filter.requested_by = Some(name),
        Some(Err(_)) => {}
        None => filter.requested_by = None,
    }
}
