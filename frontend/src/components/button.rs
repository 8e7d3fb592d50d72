//! A button that keeps the focus while it cannot be pressed. The browser would take the focus from a disabled one, and
//! who presses a button with a key would have to find their way back to it.

use leptos::prelude::*;
use leptos::text_prop::TextProp;

/// A button that stays in the order of focus while it is `off`, when pressing it does nothing.
#[component]
pub fn Button(
    /// Whether it cannot be pressed now, for example while a request is pending.
    #[prop(into)]
    off: Signal<bool>,
    #[prop(into)] class: TextProp,
    /// Called when it is pressed; without it, the button submits its form.
    #[prop(optional, into)]
    press: Option<Callback<()>>,
    #[prop(optional, into)] title: MaybeProp<String>,
    /// The `aria-label`, if the content is no name.
    #[prop(optional, into)]
    label: MaybeProp<String>,
    children: Children,
) -> impl IntoView {
    let click = move |event: web_sys::MouseEvent| {
        if off.get_untracked() {
            // Enter in a field of the form arrives here, too.
            event.prevent_default();
        } else if let Some(press) = press {
            press.run(());
        }
    };
    view! {
        <button
            type=if press.is_some() { "button" } else { "submit" }
            class=move || class.get()
            title=move || title.get()
            aria-label=move || label.get()
            aria-disabled=move || off.get().to_string()
            on:click=click
        >
            {children()}
        </button>
    }
}
