//! Filters of lists, held in the address, so that a view can be bookmarked and shared: the fields that several lists
//! have, and the button behind which a small screen has them.

use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_navigate, use_query_map};
use serde::Serialize;
use serde::de::DeserializeOwned;
use shared::client::query_string;

use super::glyph::Glyph;
use super::inert::named;
use super::listeners::while_shown;
use crate::client::use_api;
use crate::state::filter::{count, part, read, with};

/// The filter in the address of the page at `path`, and a callback that writes another one there.
pub fn use_filter<F>(path: &'static str) -> (Memo<F>, Callback<F>)
where
    F: Clone + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    let (query, navigate) = (use_query_map(), use_navigate());
    let go = move |filter: F| {
        let options = NavigateOptions { replace: true, scroll: false, ..NavigateOptions::default() };
        navigate(&format!("{path}{}", query_string(&filter)), options);
    };
    (Memo::new(move |_| query.with(|query| read(query))), Callback::new(go))
}

/// The parts of a filter, by their names in the address. Cheap to copy into closures.
#[derive(Clone, Copy)]
pub struct FilterParts {
    get: Callback<&'static str, Option<String>>,
    set: Callback<(&'static str, String)>,
    count: Memo<usize>,
    /// Whether they are shown where they can be folded.
    pub open: RwSignal<bool>,
}

impl FilterParts {
    /// The parts of `filter`. A change of one of them calls `go` with the whole.
    pub fn of<F>(filter: Memo<F>, go: Callback<F>) -> Self
    where
        F: Clone + Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        Self {
            get: Callback::new(move |name| filter.with(|filter| part(filter, name))),
            set: Callback::new(move |(name, value): (&'static str, String)| {
                go.run(filter.with_untracked(|filter| with(filter, name, Some(&value))));
            }),
            count: Memo::new(move |_| filter.with(count)),
            open: RwSignal::new(false),
        }
    }

    /// A part as text; `None` if it is not set. Follows it.
    pub fn get(self, name: &'static str) -> Option<String> {
        self.get.run(name)
    }

    /// A part as the text of a field. Follows it.
    pub fn text(self, name: &'static str) -> String {
        self.get(name).unwrap_or_default()
    }

    /// Sets a part, or removes it if the text is blank. A text that cannot be one leaves the filter as it is.
    pub fn set(self, name: &'static str, text: &str) {
        self.set.run((name, text.trim().to_owned()));
    }

    /// The number of parts that are set. Follows it.
    pub fn count(self) -> usize {
        self.count.get()
    }
}

/// The filters above a list. Where there is little room, they are folded behind a button with the number of those that
/// are set; the style sheet knows where that is.
#[component]
pub fn Filters(parts: FilterParts, children: Children) -> impl IntoView {
    let open = parts.open;
    let set = move || {
        let count = parts.count();
        (count > 0).then(|| view! { <span class="count">{count}<span class="sr">" set"</span></span> })
    };
    view! {
        <button
            type="button"
            class="b fold-filters"
            class:on=open
            aria-controls="list-filters"
            aria-expanded=move || open.get().to_string()
            on:click=move |_| open.update(|open| *open = !*open)
        >
            <Glyph icon=icondata::LuSlidersHorizontal />
            "Filters "
            {set}
        </button>
        <div class="filters" id="list-filters" class:open=open>{children()}</div>
    }
}

/// A field for the words that a list is searched for.
#[component]
pub fn WordsField(
    parts: FilterParts,
    placeholder: &'static str,
    /// The largest number of characters.
    #[prop(optional)]
    most: Option<&'static str>,
) -> impl IntoView {
    view! {
        <label class="grow"><span class="sr">"Words"</span>
            <input class="input" type="search" maxlength=most placeholder=placeholder prop:value=move || parts.text("q")
                on:change=while_shown(move |event| parts.set("q", &event_target_value(&event)))/></label>
    }
}

/// The fields for the first and the last day.
#[component]
pub fn DayFields(parts: FilterParts) -> impl IntoView {
    let day = move |name: &'static str, title: &'static str| {
        view! {
            <label class="day"><span class="hint">{name}</span>
                <input class="input" type="date" title=title prop:value=move || parts.text(name)
                    on:change=while_shown(move |event| parts.set(name, &event_target_value(&event)))/></label>
        }
    };
    view! {
        <div class="days">
            {day("from", "Days are in your time zone")}
            {day("to", "Days are in your time zone; this day is included")}
        </div>
    }
}

/// A menu of all flows. It is shown if there are several, or if one is selected.
#[component]
pub fn FlowMenu(parts: FilterParts) -> impl IntoView {
    let api = use_api();
    // If they cannot be loaded, only the menu is missing.
    let flows = LocalResource::new(move || async move { api.flows().await.map(|page| page.items) });
    let flows = Memo::new(move |_| flows.get().and_then(Result::ok).unwrap_or_default());
    let chosen = Memo::new(move |_| parts.get("flow"));
    view! {
        <Show when=move || flows.with(|flows| flows.len() > 1) || chosen.with(Option::is_some)>
            <select class="select" aria-label="Flow" on:change=while_shown(move |event| parts.set("flow", &event_target_value(&event)))>
                <option value="" prop:selected=move || chosen.with(Option::is_none)>"Any flow"</option>
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
