//! Arriving at a page: sets the title of the tab, announces it to screen readers, and moves the focus to its heading.

use leptos::html::ElementType;
use leptos::prelude::*;
use leptos_router::hooks::use_location;
use wasm_bindgen::JsCast;

use super::focus::focus_without_scrolling;
use crate::client::GlobalSignal;

/// The arrival at a page: whether its heading still has to get the focus, and the last name that was announced.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    under_way: StoredValue<bool>,
    /// Whether the next page must leave the focus where it is.
    stay: StoredValue<bool>,
    said: GlobalSignal<String>,
}

/// Provides the [`Arrival`] and watches the path. Must be called inside the router.
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
        // The browser itself announces the first page.
        if before.is_some_and(|before| before != path) {
            arrival.under_way.set_value(!arrival.stay.get_value());
            arrival.stay.set_value(false);
        }
        path
    });
}

impl Arrival {
    /// Leaves the focus where it is at the next change of the path, for a person who walks through a list.
    pub fn keep_focus(self) {
        self.stay.set_value(true);
    }
}

/// Sets the title of the tab while the calling component exists: `Runs` makes it `Runs · Countersign`.
pub fn title(name: impl Fn() -> String + 'static) {
    counted_title(|| 0, name);
}

/// Sets the title of the tab, with a count of waiting items before the name. The count is not announced.
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

/// Creates the node reference of a page's heading, which gets the focus when a person follows a link to the page. The
/// element needs `tabindex="-1"`.
pub fn heading<E>() -> NodeRef<E>
where
    E: ElementType + 'static,
    E::Output: JsCast + Clone + 'static,
{
    let node = NodeRef::<E>::new();
    focus_on_arrival(node);
    node
}

/// Focuses a heading on arrival, also one that another page created: that of the list, when a person returns to it.
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
        // A person who has begun to type keeps the focus.
        if document()
            .active_element()
            .is_some_and(|element| element.matches("input, textarea, select").unwrap_or(false))
        {
            return;
        }
        focus_without_scrolling(heading.unchecked_ref());
    });
}

/// Announces the name of each page on arrival, for screen readers.
#[component]
pub fn Announcer() -> impl IntoView {
    let arrival = expect_context::<Arrival>();
    view! { <p class="sr" role="status" aria-live="polite" aria-atomic="true">{move || arrival.said.get()}</p> }
}
