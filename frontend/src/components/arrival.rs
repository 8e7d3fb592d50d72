//! Arriving at a page: sets the title of the tab, announces it to screen readers, and moves the focus to its heading.

use leptos::html::ElementType;
use leptos::prelude::*;
use leptos_router::hooks::use_location;
use wasm_bindgen::JsCast;

use crate::client::GlobalSignal;

/// Whether somebody is on their way to a page whose heading is not there yet, and what was said of the last one.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    under_way: StoredValue<bool>,
    /// The next page takes the focus of nobody.
    stay: StoredValue<bool>,
    said: GlobalSignal<String>,
}

/// Follows the address. To be called inside the router.
pub fn provide_arrival() {
    let arrival = Arrival {
        under_way: StoredValue::new(false),
        stay: StoredValue::new(false),
        said: GlobalSignal::new(String::new()),
    };
    provide_context(arrival);
    let path = use_location().pathname;
    Effect::new(move |before: Option<String>| {
        let path = path.get();
        // The browser itself says what is loaded first.
        if before.is_some_and(|before| before != path) {
            arrival.under_way.set_value(!arrival.stay.get_value());
            arrival.stay.set_value(false);
        }
        path
    });
}

impl Arrival {
    /// The one of the console. To be asked for while a component is made: listeners of the window have no context.
    pub fn expect() -> Self {
        expect_context()
    }

    /// Leaves the focus where it is at the next change of the address, for who walks through a list.
    pub fn keep_focus(self) {
        self.stay.set_value(true);
    }
}

/// Names the page that calls it, for as long as it is shown: `Runs` makes the tab `Runs · Countersign`.
pub fn title(name: impl Fn() -> String + 'static) {
    counted_title(|| 0, name);
}

/// Names a page, with a count of what waits there before its name. The count is not read out.
pub fn counted_title(count: impl Fn() -> u64 + 'static, name: impl Fn() -> String + 'static) {
    let arrival = expect_context::<Arrival>();
    Effect::new(move |_| {
        let (count, name) = (count(), name());
        let mark = if count > 0 { format!("({count}) ") } else { String::new() };
        document().set_title(&format!("{mark}{name} · Countersign"));
        if arrival.said.with_untracked(|said| *said != name) {
            arrival.said.set(name);
        }
    });
}

/// The place of a page's heading, which takes the focus of whoever came by a link. It wants `tabindex="-1"`.
pub fn heading<E>() -> NodeRef<E>
where
    E: ElementType + 'static,
    E::Output: JsCast + Clone + 'static,
{
    let node = NodeRef::<E>::new();
    focus_on_arrival(node);
    node
}

/// Gives the focus to a heading that another page may have made: the list's, when one comes back to it.
pub fn focus_on_arrival<E>(node: NodeRef<E>)
where
    E: ElementType + 'static,
    E::Output: JsCast + Clone + 'static,
{
    let arrival = expect_context::<Arrival>();
    Effect::new(move |_| {
        let Some(heading) = node.get() else { return };
        if !arrival.under_way.get_value() {
            return;
        }
        arrival.under_way.set_value(false);
        // Who has begun to type goes on typing.
        if document()
            .active_element()
            .is_some_and(|element| element.matches("input, textarea, select").unwrap_or(false))
        {
            return;
        }
        let options = web_sys::FocusOptions::new();
        options.set_prevent_scroll(true);
        // What cannot have the focus leaves it where it is.
        drop(heading.unchecked_ref::<web_sys::HtmlElement>().focus_with_options(&options));
    });
}

/// Says the name of each page that one comes to.
#[component]
pub fn Announcer() -> impl IntoView {
    let arrival = expect_context::<Arrival>();
    view! { <p class="sr" role="status" aria-live="polite" aria-atomic="true">{move || arrival.said.get()}</p> }
}
