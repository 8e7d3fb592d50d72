//! The controls of the filter of the list of runs.

use leptos::html;
use leptos::prelude::*;
use shared::run::RunStatus;

use crate::components::focus::bring_into_view;
use crate::components::list_filter::{DayFields, FilterParts, Filters, FlowMenu, WordsField};
use crate::components::listeners::while_shown;
use crate::state::ending::{Ending, ending_word, word};
use crate::state::run_filter::RunFilter;

/// The person in the filter, as its part of the address.
const BY: &str = "requested_by";

/// Chips for the status, the ending and one's own runs, a menu for the flow, and fields for words, person and days.
#[component]
pub fn RunFilters(
    filter: Memo<RunFilter>,
    /// Called with another filter.
    go: Callback<RunFilter>,
) -> impl IntoView {
    let parts = FilterParts::of(filter, go);
    let chip = move |label: &'static str, status: Option<RunStatus>, ending: Option<Ending>| {
        let is = move || filter.with(|filter| filter.status == status && filter.ending == ending);
        view! {
            <button type="button" class="chip" aria-pressed=move || is().to_string()
                on:click=move |_| go.run(RunFilter { status, ending, ..filter.get_untracked() })>{label}</button>
        }
    };
    // On a phone the chips are in one line, which scrolls, and begins at its start each time that it is unfolded.
    let chips = NodeRef::<html::Div>::new();
    Effect::new(move |_| {
        filter.track();
        parts.open.track();
        let Some(chips) = chips.get() else { return };
        request_animation_frame(move || {
            if let Ok(Some(chip)) = chips.query_selector("[aria-pressed=true]") {
                bring_into_view(&chip);
            }
        });
    });
    let is_mine = move || parts.get(BY).as_deref() == Some("me");
    let mine = move |_| parts.set(BY, if untrack(is_mine) { "" } else { "me" });
    let is_narrowed = move || ["q", BY, "from", "to"].into_iter().any(|part| parts.get(part).is_some());
    view! {
        <Filters parts>
            <div node_ref=chips class="chips grow" role="group" aria-label="Status">
                {chip("All", None, None)}
                {RunStatus::ALL.iter().map(|status| chip(word(*status), Some(*status), None)).collect_view()}
                {Ending::ALL.iter().map(|ending| chip(ending_word(*ending), None, Some(*ending))).collect_view()}
            </div>
            <FlowMenu parts/>
            <form class="filter-fields" role="search" on:submit=|event| event.prevent_default()>
                <WordsField parts placeholder="Words in flow or topic, or a run's id" most="500"/>
                <button type="button" class="chip" aria-pressed=move || is_mine().to_string() on:click=mine>"Launched by me"</button>
                <label><span class="sr">"Launched by"</span>
                    <input class="input who-filter" placeholder="Launched by" autocapitalize="off" spellcheck="false"
                        pattern="[A-Za-z0-9][A-Za-z0-9._\\-]*" title="A username, or me" prop:value=move || parts.text(BY)
                        on:change=while_shown(move |event| parts.set(BY, &event_target_value(&event).to_lowercase()))/></label>
                <DayFields parts/>
                <Show when=is_narrowed>
                    <a href="/runs" class="b sm ghost">"Clear"</a>
                </Show>
            </form>
        </Filters>
    }
}
