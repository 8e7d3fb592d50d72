//! The scroll positions of pages, restored by the browser's Back and Forward. The parts of pages that scroll are not
//! the document, so neither the browser nor the router restores them.

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::hooks::use_location;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;

/// A selector for the part of a page that scrolls; in the inbox, its list.
const PART: &str = ".page > .in, .inbox .rows";
/// The maximum number of positions that are kept, the latest ones: as many as a browser's history has.
const MAX_KEPT: usize = 50;
/// How often a page that is still loading is checked, and the pause in between in milliseconds: 12 s in all, as a list
/// may need on a slow connection.
const LOOKS: usize = 400;
const PAUSE: u32 = 30;

/// The scroll positions by address, and the address to which Back or Forward has just led.
#[derive(Debug, Clone, Copy)]
struct ScrollPositions {
    left: StoredValue<Vec<(String, i32)>>,
    back: StoredValue<Option<String>>,
    /// The current address, if Back or Forward led to it.
    came: StoredValue<Option<String>>,
}

/// Provides and records the positions. Must be called before there is a router, which handles Back and Forward as soon
/// as it learns of them.
pub fn provide_scroll_positions() {
    let positions =
        ScrollPositions { left: StoredValue::default(), back: StoredValue::default(), came: StoredValue::default() };
    provide_context(positions);
    window_event_listener(leptos::ev::popstate, move |_| {
        positions.back.set_value(Some(here()));
        positions.came.set_value(Some(here()));
    });
    let scrolled = Closure::<dyn Fn(web_sys::Event)>::new(move |event: web_sys::Event| {
        let part = event.target().and_then(|target| target.dyn_into::<web_sys::Element>().ok());
        if let Some(part) = part.filter(|part| part.matches(PART).unwrap_or(false)) {
            let here = here();
            positions.left.update_value(|left| {
                left.retain(|(address, _)| *address != here);
                left.push((here, part.scroll_top()));
                left.drain(..left.len().saturating_sub(MAX_KEPT));
            });
        }
    });
    // Scroll events do not bubble, so they are captured. Listening to a known event cannot fail, and lasts as long as
    // the page.
    let scrolled = scrolled.into_js_value();
    drop(document().add_event_listener_with_callback_and_bool("scroll", scrolled.unchecked_ref(), true));
}

/// Restores positions when the address changes. Must be called inside the router.
pub fn restore_scroll_positions() {
    let ScrollPositions { left, back, came } = expect_context();
    let location = use_location();
    Effect::new(move |before: Option<()>| {
        // The router knows the new address before the browser does.
        let to = format!("{}?{}", location.pathname.get(), location.search.get());
        let is_back = back.try_update_value(Option::take).flatten().as_ref() == Some(&to);
        if !is_back {
            came.set_value(None);
        }
        match left.with_value(|left| left.iter().find(|(address, _)| *address == to).map(|(_, position)| *position)) {
            Some(position) if is_back => spawn_local(scroll_to(to, position)),
            // A page that is opened by a link begins at the top.
            _ if before.is_some() => left.update_value(|left| left.retain(|(address, _)| *address != to)),
            _ => {}
        }
    });
}

/// Whether Back or Forward has led to the page that is being created. Must be called inside the router.
pub fn came_back() -> bool {
    let ScrollPositions { came, .. } = expect_context();
    let location = use_location();
    let to = format!("{}?{}", location.pathname.get_untracked(), location.search.get_untracked());
    came.with_value(|came| came.as_ref() == Some(&to))
}

/// Scrolls to a position as soon as the page is long enough, unless the person has left or scrolled meanwhile.
async fn scroll_to(address: String, position: i32) {
    for look in 0..LOOKS {
        TimeoutFuture::new(PAUSE).await;
        if here() != address {
            return;
        }
        let Some(part) = document().query_selector(PART).ok().flatten() else { continue };
        if part.scroll_top() != 0 {
            return;
        }
        if part.scroll_height() - part.client_height() >= position || look + 1 == LOOKS {
            part.set_scroll_top(position);
            return;
        }
    }
}

/// The path and query of the page.
fn here() -> String {
    let location = window().location();
    let search = location.search().unwrap_or_default();
    format!("{}?{}", location.pathname().unwrap_or_default(), search.trim_start_matches('?'))
}
