//! The overlay that `?` opens: every key of the console.

use leptos::prelude::*;
use wasm_bindgen::JsCast;

use super::dialog::Dialog;
use crate::client::storage;

/// Under which name the browser keeps whether somebody wants no shortcuts of one key.
const STORAGE_KEY: &str = "countersign.shortcuts";

/// Whether keys without a modifier do something.
pub fn are_on() -> bool {
    storage::read(STORAGE_KEY).unwrap_or(true)
}

/// Switches them on or off in this browser.
pub fn switch(on: bool) {
    storage::write(STORAGE_KEY, &on);
}

const KEYS: &[(&str, &[(&str, &str)])] = &[
    (
        "The list",
        &[
            ("j  k", "next, previous review"),
            ("Enter", "read the review"),
            ("/", "search"),
            ("Esc", "back to the list"),
        ],
    ),
    (
        "The review",
        &[
            ("a", "accept, or approve all; of a critical review, go to that button"),
            ("1 … 9", "choose that option"),
            ("r", "stop, or reject all; of a critical review, go to that button"),
            ("e", "edit"),
            ("d", "delegate"),
            ("c", "write a note or a correction"),
            ("Ctrl Enter", "send the open form, the choices or what you wrote"),
            ("u", "undo, until it is sent"),
        ],
    ),
    ("Everywhere", &[("?", "this help")]),
];

/// The overlay that `?` opens.
#[component]
pub fn Help() -> impl IntoView {
    let open = RwSignal::new(false);
    let keys = window_event_listener(leptos::ev::keydown, move |event| {
        if event.key() == "?" && is_free(&event) {
            event.prevent_default();
            open.update(|open| *open = !*open);
        }
    });
    on_cleanup(move || keys.remove());
    view! {
        <Dialog open=open title="Keyboard shortcuts">
            <div class="in keys">
                {KEYS
                    .iter()
                    .map(|(title, keys)| {
                        view! {
                            <section>
                                <h3 class="sub">{*title}</h3>
                                <dl>
                                    {keys
                                        .iter()
                                        .map(|(key, does)| {
                                            let caps = key
                                                .split(' ')
                                                .filter(|cap| !cap.is_empty())
                                                .map(|cap| view! { <kbd>{cap}</kbd>" " })
                                                .collect_view();
                                            view! { <dt>{caps}</dt><dd>{*does}</dd> }
                                        })
                                        .collect_view()}
                                </dl>
                            </section>
                        }
                    })
                    .collect_view()}
            </div>
        </Dialog>
    }
}

/// Whether a key is meant for the page: nothing is being typed, no dialog or menu is above it, no other key is held, and
/// the person has not switched shortcuts off (WCAG 2.1.4).
pub fn is_free(event: &web_sys::KeyboardEvent) -> bool {
    if event.ctrl_key() || event.meta_key() || event.alt_key() || event.default_prevented() {
        return false;
    }
    let Some(target) = event.target().and_then(|target| target.dyn_into::<web_sys::Element>().ok()) else {
        return true;
    };
    let typing = target.closest("input, textarea, select, [contenteditable], dialog").ok().flatten().is_some();
    let above = document().query_selector("dialog[open], #account").ok().flatten().is_some();
    !typing && !above && are_on()
}
