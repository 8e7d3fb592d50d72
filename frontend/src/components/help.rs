//! The help overlay, which `?` and the menu open: all keyboard shortcuts of the console.

use leptos::prelude::*;

use super::dialog::Dialog;
use super::shortcuts::is_free;

const KEYS: &[(&str, &[(&str, &str)])] = &[
    (
        "The list",
        &[
            ("j  k", "next, previous review"),
            ("Enter", "read the review"),
            ("x", "select it, to decide several together"),
            ("/", "search"),
            ("Esc", "back to the list"),
        ],
    ),
    (
        "The review",
        &[
            ("a", "approve; in a critical review, go to the button"),
            ("1 … 9", "choose that option"),
            ("r", "reject; in a critical review, go to the button"),
            ("e", "edit"),
            ("d", "delegate"),
            ("c", "write a note or a correction"),
            ("Ctrl Enter", "send the open form, the choices or what you wrote"),
            ("u", "undo, until it is sent"),
        ],
    ),
    ("Everywhere", &[("?", "this help")]),
];

/// The help overlay, open while `open` is true, which `?` sets.
#[component]
pub fn Help(open: RwSignal<bool>) -> impl IntoView {
    let keys = window_event_listener(leptos::ev::keydown, move |event| {
        if event.key() == "?" && is_free(&event) {
            event.prevent_default();
            open.set(true);
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
