//! The keyboard shortcuts of the inbox: moving along the list, opening the current row or selecting its review, and
//! returning to the list.

use gloo_timers::callback::Timeout;
use leptos::html;
use leptos::prelude::*;
use shared::id::ReviewId;
use wasm_bindgen::JsCast;

use crate::client::Live;
use crate::components::arrival::Arrival;
use crate::components::commands::{Command, Commands};
use crate::components::focus::{focus_on, focus_without_scrolling, keep_focus_in_page};
use crate::components::selecting::Selecting;
use crate::components::shortcuts::{closest, is_for_page, is_free, key_of};
use crate::state::palette::Section;
use crate::state::shortcuts::{NEXT, PREVIOUS, SEARCH, SELECT};

/// How long a row must be selected before its review opens, in milliseconds, so that rows a person passes do not slow
/// them down.
const PAUSE: u32 = 60;

/// The parts of the page that the keys act on.
pub struct Keys {
    pub at: RwSignal<Option<ReviewId>>,
    pub open: Memo<Option<ReviewId>>,
    /// Whether the page of the selected reviews is open.
    pub on_selected: Memo<bool>,
    pub selecting: Selecting,
    pub search_field: NodeRef<html::Input>,
    pub read: Callback<ReviewId>,
    /// Opens the page of the selected reviews.
    pub decide: Callback<()>,
    pub back: Callback<()>,
}

/// Handles keys while the page is open.
pub fn use_keys(Keys { at, open, on_selected, selecting, search_field, read, decide, back }: Keys) {
    let (live, arrival) = (expect_context::<Live>(), expect_context::<Arrival>());
    // The timer that opens the selected row.
    let walk = StoredValue::new_local(None::<Timeout>);
    let read_where_one_is = move || {
        walk.set_value(None);
        if let Some(id) = at.get_untracked().filter(|id| open.get_untracked() != Some(*id)) {
            arrival.keep_focus();
            read.run(id);
        }
    };
    let step = move |by: isize| {
        let Some(id) = live.inbox.with_untracked(|inbox| inbox.beside(at.get_untracked(), by)) else { return };
        at.set(Some(id));
        focus_row(id);
        // Beside the list, the review opens at once; on a phone the list stays, and so do selected reviews beside it.
        if open.get_untracked().is_some() || (wide() && !on_selected.get_untracked()) {
            walk.set_value(Some(Timeout::new(PAUSE, read_where_one_is)));
        }
    };
    let select = move || {
        if let Some(id) = at.get_untracked() {
            selecting.toggle(id);
        }
    };
    let clear = move || {
        selecting.clear();
    };
    let search = move || drop(search_field.get_untracked().map(|field| field.focus()));
    expect_context::<Commands>().offer(Section::List, move || {
        let listed = live.inbox.with_untracked(|inbox| !inbox.window().rows().is_empty());
        let moves = listed.then(|| {
            let command = |says, by, key: &str| Command::new(says, move || step(by)).key(Some(key.to_owned()));
            [command("Next review", 1, NEXT.keys), command("Previous review", -1, PREVIOUS.keys)]
        });
        let here = at.get_untracked().filter(|id| live.inbox.with_untracked(|inbox| inbox.get(*id).is_some()));
        let selection = selecting.selection;
        let selects = here.map(|id| {
            let is_selected = selection.with_untracked(|selection| selection.has(id));
            let says = if is_selected { "Deselect the current review" } else { "Select the current review" };
            Command::new(says, select).key(Some(SELECT.keys.to_owned()))
        });
        let any = selection.with_untracked(|selection| selection.ticked().next().is_some());
        let decides =
            (any && !on_selected.get_untracked()).then(|| Command::new("Review and decide…", move || decide.run(())));
        let clears = any.then(|| Command::new("Clear the selection", clear));
        let search = Command::new("Search and filter the list", search).key(Some(SEARCH.keys.to_owned()));
        let leaves = open.get_untracked().map(|_| Command::new("Back to the list", move || back.run(())));
        moves.into_iter().flatten().chain(selects).chain(decides).chain(clears).chain([search]).chain(leaves).collect()
    });
    let keys = window_event_listener(leptos::ev::keydown, move |event| {
        if event.key() == "Escape" && !event.default_prevented() {
            let focused =
                document().active_element().and_then(|element| element.dyn_into::<web_sys::HtmlElement>().ok());
            match focused.filter(|element| element.tag_name() != "BODY") {
                Some(element) if !is_for_page(&event) && element.closest("dialog").ok().flatten().is_none() => {
                    drop(element.blur());
                    keep_focus_in_page();
                }
                _ if !is_for_page(&event) => {}
                _ if on_selected.get_untracked() || (open.get_untracked().is_some() && !wide()) => back.run(()),
                _ if open.get_untracked().is_none() && selecting.clear_untouched() => event.prevent_default(),
                _ => {}
            }
            return;
        }
        if !is_free(&event) {
            return;
        }
        match key_of(&event).as_str() {
            key if key == NEXT.keys => step(1),
            key if key == PREVIOUS.keys => step(-1),
            // In the pane, arrow keys scroll.
            "ArrowDown" if closest(&event, ".read").is_none() => step(1),
            "ArrowUp" if closest(&event, ".read").is_none() => step(-1),
            key if key == SELECT.keys && !event.repeat() => select(),
            key if key == SEARCH.keys => search(),
            // The review on screen is not the selected one yet, so no key may decide it.
            _ if walk.with_value(Option::is_some) => read_where_one_is(),
            // Enter presses anything else that has the focus.
            "Enter" if closest(&event, "a:not(.rows .row), button, summary").is_none() => match at.get_untracked() {
                Some(id) if open.get_untracked() != Some(id) => read.run(id),
                _ => focus_on(".read"),
            },
            _ => return,
        }
        event.prevent_default();
    });
    on_cleanup(move || {
        keys.remove();
        walk.set_value(None);
    });
}

/// Whether the list and the pane are side by side.
fn wide() -> bool {
    let query = window().match_media("(min-width: 761px)").ok().flatten();
    query.is_none_or(|query| query.matches())
}

/// Focuses a row without scrolling.
fn focus_row(id: ReviewId) {
    if let Some(row) = document().get_element_by_id(&format!("row-{id}")) {
        focus_without_scrolling(&row);
    }
}
