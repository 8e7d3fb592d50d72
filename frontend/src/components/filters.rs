//! The filters of the inbox: a search, the most frequent choices, and a panel with all of them. Each choice shows the
//! number of its reviews.

use gloo_timers::callback::Timeout;
use leptos::html;
use leptos::prelude::*;
use shared::api::ReviewQuery;
use shared::inbox::{Counts, Facets};

use super::glyph::Glyph;
use super::inert::inert_code;
use super::listeners::while_shown;
use super::saved_views::{SaveView, ViewChoices};
use crate::client::{Live, ReviewList};
use crate::state::filter::{part, with};
use crate::state::inbox::Inbox;
use crate::state::words;

/// The delay between the last key press and the search, in milliseconds.
const TYPING: u32 = 250;

/// The count of a chip until it is known: a space as wide as a digit, so that the chips take as many lines before, and
/// the list below them stays where it is.
const UNKNOWN: &str = "\u{2007}";

/// The most frequent choices: query parameter, value, and label of the chip.
const CHIPS: [(&str, &str, &str); 4] = [
    ("assigned", "me", "Mine"),
    ("due", "30m", "Due soon"),
    ("severity", "critical", "Critical"),
    ("kind", "tool_calls", "Tool calls"),
];

/// A choice in the panel: query parameter, label, label for any value, and the values with their labels. Without
/// values, those that the server counts are offered.
type PanelChoice = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)]);

const CHOICES: [PanelChoice; 9] = [
    (
        "severity",
        "Severity",
        "Any severity",
        &[("critical", "Critical"), ("high", "High"), ("medium", "Medium"), ("low", "Low")],
    ),
    ("kind", "Kind", "Any kind", &[]),
    ("flow", "Flow", "Any flow", &[]),
    ("role", "Role", "Any role", &[]),
    ("tag", "Tag", "Any tag", &[]),
    (
        "assigned",
        "Claimed",
        "Claimed or not",
        &[("me", "Mine to decide"), ("unclaimed", "Not claimed"), ("claimed", "Claimed")],
    ),
    (
        "due",
        "Deadline",
        "Any deadline",
        &[("30m", "Within 30 minutes"), ("1day", "Within 24 hours"), ("none", "No deadline")],
    ),
    ("age", "Age", "Any age", &[("1h", "Over an hour old"), ("1day", "Over a day old"), ("7days", "Over a week old")]),
    ("irreversible", "Reversible", "Reversible or not", &[("true", "Cannot be undone"), ("false", "Can be undone")]),
];

/// The search field, the chips and the panel.
#[component]
pub fn InboxFilters(
    /// The current filter.
    query: Memo<ReviewQuery>,
    /// Called with the new filter, and whether it replaces the current entry of the browser's history.
    #[prop(into)]
    change: Callback<(ReviewQuery, bool)>,
    /// The search field, which a key of the page focuses.
    field: NodeRef<html::Input>,
) -> impl IntoView {
    let list = expect_context::<ReviewList>();
    let live = expect_context::<Live>();
    let text = RwSignal::new(String::new());
    // The filter may change from outside: by a link, or by going back.
    Effect::new(move |_| {
        let asked = query.with(|query| query.q.clone()).unwrap_or_default();
        if text.with_untracked(|text| text.trim() != asked) {
            text.set(asked);
        }
    });
    let timer = StoredValue::new_local(None::<Timeout>);
    let search = move || {
        timer.set_value(None);
        let now = query.get_untracked();
        let next = with(&now, "q", Some(text.get_untracked().trim()));
        if next != now {
            // Further typing replaces the history entry, so that one search is one step back.
            change.run((next, now.q.is_some()));
        }
    };
    let typed = move |event| {
        text.set(event_target_value(&event));
        timer.set_value(Some(Timeout::new(TYPING, search)));
    };
    let choose = move |name: &str, value: Option<&str>| {
        let now = with(&query.get_untracked(), "q", Some(text.get_untracked().trim()));
        change.run((with(&now, name, value), false));
    };
    let shown = RwSignal::new(false);
    let is = move |name: &str, value: &str| query.with(|query| part(query, name).as_deref() == Some(value));
    let all = Memo::new(move |_| query.with(|query| *query == ReviewQuery::default()));
    let clear = move |_| {
        text.set(String::new());
        timer.set_value(None);
        change.run((ReviewQuery::default(), false));
    };
    let choose_view = move |filter: ReviewQuery| {
        timer.set_value(None);
        change.run((filter, false));
    };
    let chips = CHIPS.map(|(name, value, label)| {
        let on = Memo::new(move |_| is(name, value));
        let count = Memo::new(move |_| {
            // The socket updates this count at once; the server computes the others less often.
            if (name, value) == ("assigned", "me")
                && all.get()
                && let Some(numbers) = live.inbox.with(Inbox::numbers)
            {
                return Some(words::thousands(numbers.mine));
            }
            list.facets.with(|facets| count(facets.as_ref()?, name, value))
        });
        view! {
            <button
                class="chip"
                aria-pressed=move || on.get().to_string()
                on:click=move |_| choose(name, (!on.get_untracked()).then_some(value))
            >
                {label}" "
                <span class="count">{move || count.get().unwrap_or_else(|| UNKNOWN.to_owned())}</span>
            </button>
        }
    });
    // Choices made in the panel are shown as chips, as the panel may be closed.
    let others = move || {
        let chosen = query.with(|query| CHOICES.map(|choice| (choice, part(query, choice.0))));
        let chosen = chosen.into_iter().filter_map(|(choice, value)| Some((choice, value?)));
        let is_chip = |name: &str, value: &str| CHIPS.iter().any(|(part, own, _)| *part == name && *own == value);
        chosen
            .filter(|((name, ..), value)| !is_chip(name, value))
            .map(|((name, label, _, values), value)| {
                let words = named(name, values, &value);
                let words = if values.is_empty() { format!("{label}: {words}") } else { words };
                view! {
                    <button class="chip" aria-pressed="true" on:click=move |_| choose(name, None)>
                        <span class="cut">{words}</span>
                        " "
                        <Glyph icon=icondata::LuX />
                        <span class="sr">"Remove this filter"</span>
                    </button>
                }
            })
            .collect_view()
    };
    let button = NodeRef::<html::Button>::new();
    let close = move |event: web_sys::KeyboardEvent| {
        if event.key() == "Escape" && shown.get_untracked() {
            event.prevent_default();
            shown.set(false);
            drop(button.get_untracked().map(|button| button.focus()));
        }
    };
    let panel = move || {
        CHOICES
            .map(|choice| view! { <Choose choice query choose=Callback::new(move |value: String| choose(choice.0, Some(&value))) /> })
            .collect_view()
    };
    let uncounted = move || {
        let problem = list.uncounted.get()?;
        let again = move |_| list.count();
        Some(view! {
            <p class="uncounted" role="status">
                {inert_code(&format!("The counts could not be loaded: {problem}"))}" "<button class="b sm" on:click=again>"Try again"</button>
            </p>
        })
    };
    view! {
        <div class="find">
            <label class="search">
                <Glyph icon=icondata::LuSearch />
                <input
                    node_ref=field
                    type="search"
                    maxlength="500"
                    placeholder="Search"
                    aria-label="Search the inbox"
                    prop:value=text
                    on:input=typed
                    on:change=while_shown(move |_| search())
                />
                <kbd aria-hidden="true">"/"</kbd>
            </label>
            <button
                node_ref=button
                on:keydown=close
                class="b icon"
                title="Filters"
                aria-label="Filters"
                aria-controls="filters"
                aria-expanded=move || shown.get().to_string()
                class:on=shown
                on:click=move |_| shown.update(|shown| *shown = !*shown)
            >
                <Glyph icon=icondata::LuSlidersHorizontal />
            </button>
        </div>
        <ViewChoices query choose=Callback::new(choose_view) />
        <div class="chips" role="group" aria-label="Which reviews">
            <button class="chip" aria-pressed=move || all.get().to_string() on:click=clear>"All"</button>
            {chips}
            {others}
            <SaveView query />
        </div>
        <div class="panel" id="filters" role="group" aria-label="Filters" hidden=move || !shown.get() on:keydown=close>
            <Show when=move || shown.get()>{panel}{uncounted}</Show>
        </div>
    }
}

/// A menu of the panel for one query parameter.
#[component]
fn Choose(choice: PanelChoice, query: Memo<ReviewQuery>, choose: Callback<String>) -> impl IntoView {
    let list = expect_context::<ReviewList>();
    let (name, label, any, values) = choice;
    let chosen = Memo::new(move |_| query.with(|query| part(query, name)));
    let options = Memo::new(move |_| {
        let counted = |value: &str| list.facets.with(|facets| count(facets.as_ref()?, name, value));
        let known = values.iter().map(|(value, _)| (*value).to_owned());
        let frequent = list.facets.with(|facets| {
            let counts = facets.as_ref().filter(|_| values.is_empty()).and_then(|facets| counts(facets, name));
            counts
                .map(|counts| counts.values.iter().map(|one| one.value.clone()).collect::<Vec<_>>())
                .unwrap_or_default()
        });
        let mut all: Vec<String> = known.chain(frequent).collect();
        all.extend(chosen.get().filter(|chosen| !all.contains(chosen)));
        let option = |value: String| {
            let words = named(name, values, &value);
            let words = counted(&value).map_or_else(|| words.clone(), |count| format!("{words} ({count})"));
            (value, words)
        };
        all.into_iter().map(option).collect::<Vec<_>>()
    });
    let rest = Memo::new(move |_| {
        let rest = |facets: &Facets| Some(words::counted(counts(facets, name)?.rest?, facets.at_least));
        list.facets.with(|facets| rest(facets.as_ref()?)).filter(|_| values.is_empty())
    });
    view! {
        <label>
            <span class="label">{label}</span>
            <select class="select" on:change=while_shown(move |event| choose.run(event_target_value(&event)))>
                <option value="" prop:selected=move || chosen.with(Option::is_none)>{any}</option>
                {move || {
                    options
                        .get()
                        .into_iter()
                        .map(|(value, words)| {
                            let own = value.clone();
                            let is = move || chosen.with(|chosen| chosen.as_ref() == Some(&own));
                            view! { <option value=value prop:selected=is>{words}</option> }
                        })
                        .collect_view()
                }}
                {move || rest.get().map(|rest| view! { <option disabled=true>{format!("Others ({rest})")}</option> })}
            </select>
        </label>
    }
}

fn named(name: &str, values: &[(&str, &str)], value: &str) -> String {
    let known = values.iter().find(|(own, _)| *own == value).map(|(_, words)| (*words).to_owned());
    // Kinds are predefined words; names of flows, roles and tags stay as they are.
    known.unwrap_or_else(|| if name == "kind" { words::kind(value) } else { value.to_owned() })
}

fn counts<'a>(facets: &'a Facets, name: &str) -> Option<&'a Counts> {
    Some(match name {
        "kind" => &facets.kind,
        "severity" => &facets.severity,
        "flow" => &facets.flow,
        "role" => &facets.role,
        "tag" => &facets.tag,
        "assigned" => &facets.assigned,
        "due" => &facets.due,
        "age" => &facets.age,
        _ => return None,
    })
}

/// The number of reviews that a choice would show, in words; `None` if it is not counted.
fn count(facets: &Facets, name: &str, value: &str) -> Option<String> {
    let values = &counts(facets, name)?.values;
    let of = |value: &str| values.iter().find(|one| one.value == value).map_or(0, |one| one.count);
    let number = match (name, value) {
        ("due", "30m") => of("soon"),
        ("due", "1day") => of("soon") + of("today"),
        ("age", "1h") => of("hours") + of("days") + of("weeks"),
        ("age", "1day") => of("days") + of("weeks"),
        ("age", "7days") => of("weeks"),
        _ => of(value),
    };
    Some(words::counted(number, facets.at_least))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_count_that_is_a_lower_bound_is_marked() {
        let high = json!({ "values": [{ "value": "high", "count": 1200 }] });
        let severity: Counts = serde_json::from_value(high).unwrap();
        let facets = |at_least| Facets { at_least, severity: severity.clone(), ..Facets::default() };
        let says = |at_least, value| count(&facets(at_least), "severity", value);
        assert_eq!(says(false, "high").as_deref(), Some("1,200"));
        assert_eq!(says(true, "high").as_deref(), Some("1,200+"));
        assert_eq!(says(true, "low").as_deref(), Some("0+"));
    }
}
