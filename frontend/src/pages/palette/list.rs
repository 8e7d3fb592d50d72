//! The list of the palette: what matches the typed words, and what the keys select and choose. The focus stays in the
//! field (WAI-ARIA: a combobox with a list box).

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use shared::access::Act;
use web_sys::{KeyboardEvent, MouseEvent, ScrollIntoViewOptions, ScrollLogicalPosition};

use super::entries::{self, Entry, Target};
use super::{Field, LIST};
use crate::client::{Notifier, Session, use_api};
use crate::components::commands::Commands;
use crate::components::glyph::Glyph;
use crate::components::inert::inert_code;
use crate::state::palette::{Section, current, found};
use crate::state::words;

/// The matches, in groups with headings.
#[component]
pub fn PaletteList() -> impl IntoView {
    let Field { open, is_listed, text, selected, keys, flows } = expect_context();
    let (session, commands, notifier, api) =
        (expect_context::<Session>(), expect_context::<Commands>(), expect_context::<Notifier>(), use_api());
    // What was on the page when the palette was opened: an action on another review must not take its place.
    let offered = StoredValue::new_local(commands.now());
    let fixed = StoredValue::new(offered.with_value(|offered| entries::fixed(offered, session)));
    if session.may(Act::Launch) {
        spawn_local(async move {
            // Without an answer, the flows that were read before stay.
            if let Ok(page) = api.flows().await {
                // It fails only if the person has logged out meanwhile.
                let _ = flows.try_set(Some(page.items));
            }
        });
    }
    let found = Memo::new(move |_| {
        let typed = text.get();
        let mut all = fixed.get_value();
        all.extend(flows.with(|flows| entries::flows(flows.as_deref().unwrap_or_default())));
        let words: Vec<_> = all.iter().map(|entry| entry.words.clone()).collect();
        let matching = found(&words, &typed).into_iter().map(|at| all[at].clone());
        let (opens, search) = entries::typed(&typed);
        opens.into_iter().chain(matching).chain(search).collect::<Vec<Entry>>()
    });
    // The id of the option that a key moved to since the last change of the text.
    let moved_to = RwSignal::new(None::<String>);
    Effect::new(move |_| {
        text.track();
        moved_to.set(None);
    });
    // Flows may be read after the text was typed.
    Effect::new(move |_| {
        let is_typed = text.with(|text| !text.trim().is_empty());
        let moved_to = moved_to.get();
        selected.set(found.with(|found| {
            let ids = found.iter().map(|entry| entry.id.as_str());
            current(ids, is_typed, moved_to.as_deref()).map(ToOwned::to_owned)
        }));
    });
    Effect::new(move |_| {
        let selected = selected.get();
        // The option may be made by the same change.
        request_animation_frame(move || {
            if let Some(option) = selected.and_then(|id| document().get_element_by_id(&id)) {
                let nearest = ScrollIntoViewOptions::new();
                nearest.set_block(ScrollLogicalPosition::Nearest);
                option.scroll_into_view_with_scroll_into_view_options(&nearest);
            }
        });
    });
    let navigate = StoredValue::new_local(use_navigate());
    let choose = move |entry: &Entry| {
        let target = match &entry.target {
            Target::Command(at) => offered.with_value(|offered| offered.get(*at).cloned()).map(Err),
            Target::Page(path) => Some(Ok(path.clone())),
        };
        let navigate = navigate.get_value();
        open.set(false);
        spawn_local(async move {
            // The page has the focus again by then.
            TimeoutFuture::new(0).await;
            match target {
                Some(Ok(path)) => navigate(&path, NavigateOptions::default()),
                Some(Err(offered)) if !commands.perform(&offered) => {
                    notifier.say(format!("“{}” is no longer possible here.", offered.command.says));
                }
                _ => {}
            }
        });
    };
    let select = move |to: &dyn Fn(Option<usize>, usize) -> usize| {
        let next = found.with_untracked(|found| {
            let here = selected.with_untracked(|id| found.iter().position(|entry| id.as_ref() == Some(&entry.id)));
            found.get(to(here, found.len())).map(|entry| entry.id.clone())
        });
        moved_to.set(next);
    };
    let pressed = move |event: &KeyboardEvent| {
        if event.ctrl_key() || event.meta_key() || event.alt_key() || event.shift_key() {
            return;
        }
        match event.key().as_str() {
            "ArrowDown" => select(&|here, count| here.map_or(0, |here| (here + 1) % count.max(1))),
            "ArrowUp" => select(&|here, count| here.filter(|here| *here > 0).unwrap_or(count).saturating_sub(1)),
            "Home" => select(&|_, _| 0),
            "End" => select(&|_, count| count.saturating_sub(1)),
            "Enter" if !event.repeat() => {
                let entry = selected
                    .get_untracked()
                    .and_then(|id| found.with_untracked(|found| found.iter().find(|entry| entry.id == id).cloned()));
                entry.iter().for_each(choose);
            }
            "Enter" => {}
            _ => return,
        }
        event.prevent_default();
    };
    keys.set_value(Some(Box::new(pressed)));
    is_listed.set(true);
    on_cleanup(move || {
        // It fails only if the palette is gone too.
        let _ = keys.try_set_value(None);
        let _ = (selected.try_set(None), is_listed.try_set(false));
    });
    let groups = move || {
        let found = found.get();
        let same = found.chunk_by(|one, next| one.section == next.section);
        same.map(|entries| group(entries, selected, choose)).collect_view()
    };
    let says = move || words::count(found.with(Vec::len), "result", "results");
    view! {
        <div class="palette-list" id=LIST role="listbox" aria-label="Commands">{groups}</div>
        <p class="sr" role="status">{says}</p>
    }
}

/// The entries of a section, under its heading.
fn group(
    entries: &[Entry],
    selected: RwSignal<Option<String>>,
    choose: impl Fn(&Entry) + Copy + Send + Sync + 'static,
) -> AnyView {
    let section = entries.first().map_or(Section::Search, |entry| entry.section);
    let options = entries.iter().cloned().map(|entry| {
        let (id, own) = (entry.id.clone(), entry.id.clone());
        let Entry { says, more, key, icon, .. } = entry.clone();
        view! {
            <div
                id=id
                role="option"
                class="palette-option"
                aria-selected=move || selected.with(|selected| selected.as_ref() == Some(&own)).to_string()
                // The field keeps the focus.
                on:mousedown=|event: MouseEvent| event.prevent_default()
                on:click=move |_| choose(&entry)
            >
                <Glyph icon=icon />
                <span class="says">{inert_code(&says)}</span>
                <span class="cut muted small grow">{inert_code(&more)}</span>
                {key.map(|key| view! { <kbd aria-hidden="true">{key}</kbd> })}
            </div>
        }
    });
    view! {
        <div role="group" aria-label=section.title()>
            <div class="sub" aria-hidden="true">{section.title()}</div>
            {options.collect_view()}
        </div>
    }
    .into_any()
}
