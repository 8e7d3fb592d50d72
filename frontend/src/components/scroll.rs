//! The scroll positions of pages: returning to an address with the browser's Back or Forward restores it. Lists scroll
//! in a part of the page, which neither the browser nor the router restores.

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::hooks::use_location;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;

/// The part of a page that scrolls: of pages, and of the inbox its list.
const PART: &str = ".page > .in, .inbox .rows";
/// How many places are kept, those that were left last: as many as a browser goes back.
const KEPT: usize = 50;
/// How often a page that is still loading is looked at, and how long it is waited in between, in milliseconds: 12 s in
/// all, as a list may take on a slow connection.
const LOOKS: usize = 400;
const PAUSE: u32 = 30;

/// The places by address, and where Back or Forward has just led.
#[derive(Debug, Clone, Copy)]
struct Places {
    left: StoredValue<Vec<(String, i32)>>,
    back: StoredValue<Option<String>>,
    /// The address that is shown, where Back or Forward led there.
    came: StoredValue<Option<String>>,
}

/// Keeps the places. To be called before there is a router, which follows Back and Forward as soon as it hears of them.
pub fn provide_places() {
    let places = Places { left: StoredValue::default(), back: StoredValue::default(), came: StoredValue::default() };
    provide_context(places);
    window_event_listener(leptos::ev::popstate, move |_| {
        places.back.set_value(Some(here()));
        places.came.set_value(Some(here()));
    });
    let scrolled = Closure::<dyn Fn(web_sys::Event)>::new(move |event: web_sys::Event| {
        let part = event.target().and_then(|target| target.dyn_into::<web_sys::Element>().ok());
        if let Some(part) = part.filter(|part| part.matches(PART).unwrap_or(false)) {
            let here = here();
            places.left.update_value(|left| {
                left.retain(|(address, _)| *address != here);
                left.push((here, part.scroll_top()));
                left.drain(..left.len().saturating_sub(KEPT));
            });
        }
    });
    // These events do not bubble. Listening to a known event cannot fail, and ends with the page.
    let scrolled = scrolled.into_js_value();
    drop(document().add_event_listener_with_callback_and_bool("scroll", scrolled.unchecked_ref(), true));
}

/// Follows the address. To be called inside the router.
pub fn follow_places() {
    let Places { left, back, came } = expect_context();
    let location = use_location();
    Effect::new(move |before: Option<()>| {
        // The router says where one goes before the browser does.
        let to = format!("{}?{}", location.pathname.get(), location.search.get());
        let is_back = back.try_update_value(Option::take).flatten().as_ref() == Some(&to);
        if !is_back {
            came.set_value(None);
        }
        match left.with_value(|left| left.iter().find(|(address, _)| *address == to).map(|(_, place)| *place)) {
            Some(place) if is_back => spawn_local(scroll_to(to, place)),
            // Who comes by a link begins at the top.
            _ if before.is_some() => left.update_value(|left| left.retain(|(address, _)| *address != to)),
            _ => {}
        }
    });
}

/// Whether Back or Forward has led to the page that is being made. To be called inside the router.
pub fn came_back() -> bool {
    let Places { came, .. } = expect_context();
    let location = use_location();
    let to = format!("{}?{}", location.pathname.get_untracked(), location.search.get_untracked());
    came.with_value(|came| came.as_ref() == Some(&to))
}

/// Scrolls to a place as soon as the page is long enough, unless somebody has gone on or scrolled meanwhile.
async fn scroll_to(address: String, place: i32) {
    for look in 0..LOOKS {
        TimeoutFuture::new(PAUSE).await;
        if here() != address {
            return;
        }
        let Some(part) = document().query_selector(PART).ok().flatten() else { continue };
        if part.scroll_top() != 0 {
            return;
        }
        if part.scroll_height() - part.client_height() >= place || look + 1 == LOOKS {
            part.set_scroll_top(place);
            return;
        }
    }
}

/// Path and query of the page.
fn here() -> String {
    let location = window().location();
    let search = location.search().unwrap_or_default();
    format!("{}?{}", location.pathname().unwrap_or_default(), search.trim_start_matches('?'))
}
