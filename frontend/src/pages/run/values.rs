//! The state of a run, one card for each key, and its input.

use std::collections::BTreeSet;

use leptos::prelude::*;
use serde_json::Value;
use shared::JsonMap;
use shared::error::json_type;
use shared::run::Run;

use crate::components::copy::CopyButton;
use crate::components::inert::{in_pieces, inert};
use crate::components::markdown::Markdown;
use crate::state::diffs::text_of;
use crate::state::markdown;

/// The length in bytes beyond which a value is folded; so is one with many lines.
const LONG: usize = 700;

/// The cards of values, one for each key.
#[component]
pub fn State(
    /// The values of the state or output, by key.
    #[prop(into)]
    values: Signal<JsonMap>,
    /// The keys that changed last.
    #[prop(into)]
    changed: Signal<BTreeSet<String>>,
) -> impl IntoView {
    // A card is created again when its value changes; others stay unfolded.
    let cards = move || values.get().into_iter().collect::<Vec<_>>();
    view! {
        <div class="values">
            <Show when=move || values.with(JsonMap::is_empty)><p class="muted small">"Empty."</p></Show>
            <For each=cards key=|(key, value)| format!("{key}\u{0}{value}") let:card>
                <Card key=card.0 value=card.1 changed/>
            </For>
        </div>
    }
}

#[component]
fn Card(key: String, value: Value, changed: Signal<BTreeSet<String>>) -> impl IntoView {
    let text = text_of(&value);
    let long = text.len() > LONG || text.lines().count() > 14;
    let folded = RwSignal::new(long);
    let code = !value.is_string();
    let kind = match &value {
        Value::String(text) => {
            let words = text.split_whitespace().count();
            if words > 20 { format!("text, {words} words") } else { "text".to_owned() }
        }
        Value::Array(rows) => format!("list of {}", rows.len()),
        Value::Object(fields) => format!("object of {}", fields.len()),
        other => json_type(other).to_owned(),
    };
    let name = key.clone();
    let is_new = Memo::new(move |_| changed.with(|changed| changed.contains(&name)));
    view! {
        <section class="card value" class:fresh=is_new class:folded=folded>
            <header>
                <code>{key.clone()}</code>
                <span class="muted grow cut">{kind}</span>
                {move || is_new.get().then(|| view! { <span class="tag accent">"changed last"</span> })}
                <CopyButton text=text.clone() class="b ghost sm icon" name=key around=".value" shown="pre, .value-text"/>
            </header>
            {if code {
                view! { <pre class="value-code">{in_pieces(&text)}</pre> }.into_any()
            } else if markdown::is_likely(&text) {
                view! { <div class="value-text rich"><Markdown text/></div> }.into_any()
            } else {
                view! { <div class="value-text">{in_pieces(&text)}</div> }.into_any()
            }}
            {long.then(|| view! {
                <button class="value-more" aria-expanded=move || (!folded.get()).to_string() on:click=move |_| folded.update(|folded| *folded = !*folded)>
                    {move || if folded.get() { "Show all" } else { "Show less" }}
                </button>
            })}
        </section>
    }
}

#[component]
pub fn Facts(
    /// The run; `None` until it is loaded.
    run: Signal<Option<Run>>,
) -> impl IntoView {
    let rows = move |of: fn(&Run) -> Vec<(String, String)>| run.with(|run| run.as_ref().map(of).unwrap_or_default());
    let input =
        Memo::new(move |_| rows(|run| run.input.iter().map(|(key, value)| (key.clone(), text_of(value))).collect()));
    let context = Memo::new(move |_| {
        rows(|run| {
            let named =
                [("user", &run.context.user), ("tenant", &run.context.tenant), ("session", &run.context.session)];
            let named = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
            named.chain(run.context.metadata.iter().map(|(key, value)| (key.clone(), text_of(value)))).collect()
        })
    });
    let list = |title: &'static str, rows: Memo<Vec<(String, String)>>| {
        move || {
            let rows = rows.get();
            (!rows.is_empty()).then(|| {
                let rows = rows
                    .into_iter()
                    .map(|(key, value)| view! { <dt>{inert(&key)}</dt><dd>{in_pieces(&value)}</dd> })
                    .collect_view();
                view! { <h2 class="sub">{title}</h2><dl class="facts-list">{rows}</dl> }
            })
        }
    };
    view! { {list("Input", input)}{list("Context", context)} }
}
