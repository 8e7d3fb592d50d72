//! A modal dialog: the browser's own `<dialog>`, which keeps the focus inside and closes on Escape.

use leptos::html;
use leptos::prelude::*;

use super::focus::{focus_on, keep_focus_in_page};
use super::glyph::Glyph;

/// A modal dialog, open while `open` is true. Its children are created at each opening.
#[component]
pub fn Dialog(
    /// Whether it is open; closing it sets this to false.
    open: RwSignal<bool>,
    #[prop(into)] title: Signal<String>,
    /// The content of the dialog.
    children: ChildrenFn,
) -> impl IntoView {
    let node = NodeRef::<html::Dialog>::new();
    Effect::new(move |_| {
        let Some(dialog) = node.get() else { return };
        match (open.get(), dialog.open()) {
            // Showing fails only for a dialog that has left the page.
            (true, false) => {
                drop(dialog.show_modal());
                focus_on("dialog[open] .in :is(input, select, textarea, button)");
            }
            (false, true) => dialog.close(),
            _ => {}
        }
    });
    // The browser returns the focus to the element that had it before, which may be gone.
    let closed = move |_| {
        open.set(false);
        keep_focus_in_page();
    };
    view! {
        <dialog class="dialog" node_ref=node aria-label=title on:close=closed>
            <header>
                <h2>{title}</h2>
                <button class="b ghost icon" aria-label="Close" on:click=move |_| open.set(false)>
                    <Glyph icon=icondata::LuX />
                </button>
            </header>
            <Show when=move || open.get()>{children()}</Show>
        </dialog>
    }
}
