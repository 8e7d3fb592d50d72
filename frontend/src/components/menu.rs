//! A menu of words, one of which is always chosen.

use leptos::prelude::*;

use super::listeners::while_shown;

/// A menu with a label. `at` is the place of the word that is chosen at first; `set` gets that of another one.
pub fn menu(
    label: &'static str,
    words: impl IntoIterator<Item = impl Into<String>>,
    at: usize,
    set: impl Fn(usize) + 'static,
) -> AnyView {
    let options = words.into_iter().enumerate().map(|(index, words)| {
        let words: String = words.into();
        view! { <option value=index.to_string() selected=index == at>{words}</option> }
    });
    view! {
        <label class="field">
            <span class="label">{label}</span>
            <select class="select" on:change=while_shown(move |event| set(event_target_value(&event).parse().unwrap_or(at)))>
                {options.collect_view()}
            </select>
        </label>
    }
    .into_any()
}
