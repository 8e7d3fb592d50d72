//! The command palette: Ctrl+K opens a field that finds pages, actions, flows and reviews. The list is a separate part
//! of the program, loaded when the palette is first opened; the field is there at once, so that nothing typed is lost.

#![expect(clippy::unnecessary_wraps, reason = "the error is that of loading the part, which `wasm_split` adds")]

mod entries;
mod list;

use leptos::prelude::*;
use leptos::wasm_split::{SplitLoaderError, wasm_split};
use leptos_router::hooks::use_location;
use web_sys::KeyboardEvent;

use self::list::PaletteList;
use crate::client::FlowVersion;
use crate::components::commands::Commands;
use crate::components::dialog::Dialog;
use crate::components::glyph::Glyph;
use crate::components::shortcuts::{is_mac, key_of};
use crate::components::states::Loading;

/// The id of the list, to which the field refers.
const LIST: &str = "commands";

type KeyHandler = Box<dyn Fn(&KeyboardEvent)>;

/// What the field and the list share. Cheap to copy into closures.
#[derive(Clone, Copy)]
struct Field {
    open: RwSignal<bool>,
    /// Whether the list is loaded.
    is_listed: RwSignal<bool>,
    text: RwSignal<String>,
    selected: RwSignal<Option<String>>,
    /// What the list does with a key; `None` until it is loaded.
    keys: StoredValue<Option<KeyHandler>, LocalStorage>,
    /// The flows as they were read last; `None` until then.
    flows: RwSignal<Option<Vec<FlowVersion>>>,
}

#[wasm_split(palette, wasm_split_path = ::leptos::wasm_split, fallible, preload(load_list))]
fn list() -> Result<AnyView, SplitLoaderError> {
    Ok(untrack(|| view! { <PaletteList /> }.into_any()))
}

#[component]
pub fn Palette() -> impl IntoView {
    let open = expect_context::<Commands>().open;
    open.set(false);
    let field = Field {
        open,
        is_listed: RwSignal::new(false),
        text: RwSignal::new(String::new()),
        selected: RwSignal::new(None),
        keys: StoredValue::new_local(None),
        flows: RwSignal::new(None),
    };
    let keys = window_event_listener(leptos::ev::keydown, move |event| {
        if opens(&event) {
            event.prevent_default();
            open.set(true);
        }
    });
    on_cleanup(move || keys.remove());
    // It closes when a page is left, also by the browser's Back.
    let location = use_location();
    let address = move || (location.pathname.track(), location.search.track());
    Effect::watch(address, move |_, _, _| open.set(false), false);
    provide_context(field);
    view! {
        <Dialog open title="All commands" bare=true>
            <Opened />
        </Dialog>
    }
}

#[component]
fn Opened() -> impl IntoView {
    let Field { open, is_listed, text, selected, keys, .. } = expect_context();
    text.set(String::new());
    // A failure is ignored here: showing the list tries again and reports it.
    let loaded = LocalResource::new(|| async { drop(load_list().await) });
    let pressed = move |event: KeyboardEvent| {
        // Enter may only end the input of a character.
        if !event.is_composing() {
            keys.with_value(|keys| keys.iter().for_each(|keys| keys(&event)));
        }
    };
    view! {
        <div class="in palette">
            <div class="palette-field">
                <Glyph icon=icondata::LuSearch />
                <input
                    type="text"
                    role="combobox"
                    aria-label="Find a command, a page or a flow"
                    aria-autocomplete="list"
                    aria-expanded=move || is_listed.get().to_string()
                    aria-controls=LIST
                    aria-activedescendant=move || selected.get()
                    placeholder="Find a command, a page or a flow"
                    autocomplete="off"
                    autocapitalize="off"
                    spellcheck="false"
                    maxlength="200"
                    bind:value=text
                    on:keydown=pressed
                />
                <button type="button" class="b ghost icon" aria-label="Close" on:click=move |_| open.set(false)>
                    <Glyph icon=icondata::LuX />
                </button>
            </div>
            {move || match loaded.get() {
                None => view! { <Loading rows=6 /> }.into_any(),
                Some(()) => Suspend::new(async { list().await.unwrap_or_else(|_| not_loaded()) }).into_any(),
            }}
        </div>
    }
}

fn not_loaded() -> AnyView {
    view! {
        <p class="banner stop" role="alert">
            "The commands could not be loaded: the server could not be reached, or it has a newer version of the console."
        </p>
    }
    .into_any()
}

/// Whether a key opens the palette. Where a dialog is open, and in the middle of a character that takes several keys, it
/// stays the browser's: on a Mac, Ctrl+K deletes the rest of a line.
fn opens(event: &KeyboardEvent) -> bool {
    let (held, other) =
        if is_mac() { (event.meta_key(), event.ctrl_key()) } else { (event.ctrl_key(), event.meta_key()) };
    let is_chord = held && !other && !event.alt_key() && !event.shift_key();
    let is_used = event.default_prevented() || event.repeat() || event.is_composing();
    let below = || document().query_selector("dialog[open]").ok().flatten().is_some();
    is_chord && key_of(event).eq_ignore_ascii_case("k") && !is_used && !below()
}
