//! The value of a form as JSON text.

use leptos::prelude::*;
use serde_json::Value;
use shared::error::Mistake;

use super::draft::{next_key, parse_json};
use crate::components::inert::inert_code;
use crate::state::verdict::is_at;

/// An editor of the value as JSON text; valid text changes the value at once. The server's mistakes are listed below it,
/// each with its place in the value.
#[component]
pub fn RawJson(
    raw: RwSignal<Option<String>>,
    value: RwSignal<Value>,
    errors: Signal<Vec<Mistake>>,
    base: String,
    mistake: Memo<Option<String>>,
    object: bool,
) -> impl IntoView {
    let typed = move |text: String| {
        if let Ok(parsed) = parse_json(&text, object) {
            value.set(parsed);
        }
        raw.set(Some(text));
    };
    let mistake_id = format!("raw-json-mistake-{}", next_key());
    let inside = Memo::new(move |_| errors.with(|errors| placed(errors, &base)));
    let rows = move || raw.with(|raw| raw.as_deref().map_or(4, |text| text.lines().count().clamp(4, 24)).to_string());
    view! {
        <div class="field" class:bad=move || mistake.with(Option::is_some)>
            <textarea class="textarea code" aria-label="The value as JSON" spellcheck="false" rows=rows
                prop:value=move || raw.get().unwrap_or_default()
                on:input=move |event| typed(event_target_value(&event))
                aria-invalid=move || mistake.with(Option::is_some).to_string()
                aria-describedby=mistake_id.clone()></textarea>
            <p class="mistake" id=mistake_id aria-live="polite">{mistake}</p>
            {move || inside.get().into_iter().map(|says| view! { <p class="mistake">{inert_code(&says)}</p> }).collect_view()}
        </div>
    }
}

/// The messages of the mistakes in the value at `base`, each after its place in it, such as `/amount`.
fn placed(errors: &[Mistake], base: &str) -> Vec<String> {
    let inside = errors.iter().filter(|one| is_at(one, base)).map(|one| match &one.path[base.len()..] {
        "" => one.message.clone(),
        place => format!("`{place}`: {}", one.message),
    });
    inside.collect()
}

/// Rewrites the JSON text when the value is changed elsewhere. Invalid text stays, as it is not sent.
pub fn follow(raw: RwSignal<Option<String>>, value: RwSignal<Value>, object: bool) {
    Effect::new(move |_| {
        let now = value.get();
        let says = raw.with_untracked(|raw| parse_json(raw.as_deref()?, object).ok());
        if says.is_some_and(|says| says != now) {
            raw.set(Some(pretty(&now)));
        }
    });
}

/// The mistake in the JSON text, if it is open and has one.
pub fn mistake_in(raw: RwSignal<Option<String>>, object: bool) -> Memo<Option<String>> {
    Memo::new(move |_| raw.with(|raw| raw.as_deref().and_then(|text| parse_json(text, object).err())))
}

/// A value as the text that is shown.
pub fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
