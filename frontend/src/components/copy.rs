//! A button that copies a text, and says whether that worked.

use gloo_timers::callback::Timeout;
use leptos::html;
use leptos::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::glyph::Glyph;
use crate::client::Notifier;

/// How long the button shows that the text is copied, in milliseconds.
const SAID: u32 = 2000;

/// A button that copies `text`. If the browser does not allow that, it selects the text on the page instead and says
/// so.
#[component]
pub fn CopyButton(
    #[prop(into)] text: Signal<String>,
    class: &'static str,
    /// The name of the copied text, for a button that shows only an icon.
    #[prop(optional, into)]
    name: Option<String>,
    /// A selector for the element around the button and the text.
    around: &'static str,
    /// A selector for the text inside that element.
    shown: &'static str,
) -> impl IntoView {
    let notifier = expect_context::<Notifier>();
    let button = NodeRef::<html::Button>::new();
    let copied = RwSignal::new(false);
    // The timer of an earlier click, which must not end the message of this one.
    let timer = StoredValue::new_local(None::<Timeout>);
    let copy = Action::new_local(move |(): &()| {
        // Started at once: some browsers allow it only while the click is handled.
        let writing = text.with_untracked(|text| write(text));
        async move {
            let is_copied = match writing {
                Some(writing) => JsFuture::from(writing).await.is_ok(),
                None => false,
            };
            if is_copied {
                // These fail only if the component is gone.
                let _ = copied.try_set(true);
                let over = move || {
                    let _ = copied.try_set(false);
                };
                let _ = timer.try_set_value(Some(Timeout::new(SAID, over)));
            } else {
                select(button.try_get_untracked().flatten(), around, shown);
                notifier.bad("This browser does not allow copying here. The text is selected: copy it from there.");
            }
        }
    });
    let icon = Signal::derive(move || if copied.get() { icondata::LuCheck } else { icondata::LuCopy });
    let words = move || if copied.get() { "Copied" } else { "Copy" };
    let label = name.map(|name| move || format!("{} {name}", words()));
    let words = label.is_none().then_some(words);
    view! {
        <button
            node_ref=button
            type="button"
            class=class
            title=label.is_some().then_some("Copy")
            aria-label=label
            on:click=move |_| { copy.dispatch_local(()); }
        >
            <Glyph icon />
            {words}
        </button>
        <span class="sr" role="status">{move || copied.get().then_some("Copied")}</span>
    }
}

/// Starts copying a text. `None` if the page has no clipboard, which browsers offer only over TLS or on localhost.
fn write(text: &str) -> Option<js_sys::Promise> {
    let navigator = window().navigator();
    let clipboard = js_sys::Reflect::get(&navigator, &"clipboard".into()).ok()?;
    (!clipboard.is_undefined()).then(|| navigator.clipboard().write_text(text))
}

/// Selects the text that is shown beside a button.
fn select(button: Option<web_sys::HtmlButtonElement>, around: &str, shown: &str) {
    let text = button.and_then(|button| button.closest(around).ok()??.query_selector(shown).ok()?);
    if let (Some(text), Ok(Some(selection))) = (text, window().get_selection()) {
        drop(selection.select_all_children(&text));
    }
}
