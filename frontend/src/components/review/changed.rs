//! Says that the content has changed since it was read. Nothing can be decided before that was seen.

use leptos::prelude::*;

use super::pane::Pane;
use crate::components::glyph::Glyph;
use crate::state::words::count;

/// Says that the content has changed.
#[component]
pub fn Changed(pane: Pane) -> impl IntoView {
    let changed = Memo::new(move |_| pane.review.with(|review| review.is_pending()) && pane.has_changed());
    let what = move || {
        let before = pane.before.get();
        pane.review.with(|now| {
            let Some(before) = before else { return String::new() };
            let same = |item: &&shared::review::Item| {
                before.items.iter().any(|old| old.key == item.key && old.value == item.value)
            };
            let items = now.items.iter().filter(|item| !same(item)).count();
            let calls = now.actions.iter().filter(|action| !before.actions.contains(action)).count();
            match (items, calls) {
                (0, 0) => String::new(),
                (items, 0) => format!("{} changed. ", count(items, "value has", "values have")),
                (0, calls) => format!("{} changed. ", count(calls, "call has", "calls have")),
                _ => "Values and calls have changed. ".to_owned(),
            }
        })
    };
    let kept = move || !pane.draft().is_empty();
    // Whether this tab has seen it change, or the person comes back to something older that they wrote.
    let since = move || match pane.before.get() {
        Some(before) if kept() => format!("This has changed since revision {}, on which you wrote. ", before.revision),
        None if kept() => format!("This has changed since revision {}, on which you wrote. ", pane.draft().revision),
        _ => "This changed while you were reading. ".to_owned(),
    };
    let shown = move || pane.before.with(Option::is_some);
    view! {
        <Show when=move || changed.get()>
            <div class="banner warn" role="alert">
                <Glyph icon=icondata::LuRefreshCw />
                <span class="grow">
                    <b>{since}</b>
                    {what}
                    {move || if shown() { "The difference is shown below." } else { "Read it again." }}
                    {move || kept().then_some(" What you wrote is kept, and nothing of it is sent before you have looked.")}
                </span>
                <button class="b sm" on:click=move |_| pane.read_change()>"I have seen it"</button>
            </div>
        </Show>
    }
}
