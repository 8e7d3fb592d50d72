//! Moves the focus to the element that a person needs next, and keeps it in the page. A form around it is scrolled into
//! view: on a small screen, it may have opened out of sight.

use std::borrow::Cow;

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{Element, FocusOptions, HtmlElement, ScrollBehavior, ScrollIntoViewOptions, ScrollLogicalPosition};

/// A selector for the first field marked as invalid, which may be out of sight. A list has a button to add what it
/// lacks.
pub const MISTAKE: &str = "[aria-invalid=true], .list.bad > button";

/// A selector for a field of a form; for a list without rows, the button that adds one.
pub const FIELD: &str = ":is(input, select, textarea, .list > button)";

/// A selector for elements that can have the focus.
const FOCUSABLE: &str = "input, select, textarea, button, a[href], summary, [tabindex]";

/// Selectors for the form around a field: with its buttons, then smaller parts for when that is too high.
const FORMS: [&str; 3] = [".decide", "form, .option-form, .edit", ".field"];

/// The largest part of the window's height that a form may fill to be shown as a whole.
const WHOLE: f64 = 0.75;

/// Focuses the first element that a selector finds, or the first focusable element inside it, once the page is drawn.
/// Folded parts around it are opened.
pub fn focus_on(selector: impl Into<Cow<'static, str>>) {
    focus_later(|| document().document_element(), selector.into());
}

/// Like [`focus_on`], within a known element. Elements around it are no part of what the selector describes.
pub fn focus_within(element: &Element, selector: &str) {
    let element = element.clone();
    focus_later(|| Some(element), format!(":scope {selector}").into());
}

/// Keeps the focus in the page while the calling component exists: a pressed button may be removed, at once or with the
/// answer, and the focus with it. An element that was only moved, as by a list whose rows change places, gets it back.
/// If a person leaves an element themselves, nothing happens.
pub fn keep_focus() {
    let last = StoredValue::new_local(None::<Element>);
    let came = window_event_listener(leptos::ev::focusin, move |event| {
        last.set_value(event.target().and_then(|target| target.dyn_into().ok()));
    });
    let left = window_event_listener(leptos::ev::focusout, move |_| {
        spawn_local(async move {
            TimeoutFuture::new(0).await;
            let is_there = |last: &Option<Element>| last.as_ref().is_some_and(|last| last.is_connected());
            if is_lost() && last.try_with_value(is_there) == Some(true) {
                last.set_value(None);
            }
        });
    });
    let changed = Closure::<dyn Fn(js_sys::Array)>::new(move |records: js_sys::Array| {
        let taken = last.try_update_value(|last| last.take_if(|last| !last.is_connected()));
        if taken.flatten().is_some() {
            keep_focus_in_page();
            return;
        }
        let moved = last.try_with_value(|last| last.clone().filter(|last| is_lost() && is_removed(last, &records)));
        if let Some(moved) = moved.flatten() {
            focus_without_scrolling(&moved);
        }
    });
    on_cleanup(move || {
        came.remove();
        left.remove();
    });
    // It fails only if the argument is no function, or if there is no page.
    let Ok(observer) = web_sys::MutationObserver::new(changed.as_ref().unchecked_ref()) else { return };
    let what = web_sys::MutationObserverInit::new();
    what.set_child_list(true);
    what.set_subtree(true);
    drop(observer.observe_with_options(&document(), &what));
    let observer = StoredValue::new_local((observer, changed));
    on_cleanup(move || observer.with_value(|(observer, _)| observer.disconnect()));
}

/// Whether an element was removed by one of these mutations, alone or with what it is in.
fn is_removed(element: &Element, records: &js_sys::Array) -> bool {
    let records = records.iter().filter_map(|record| record.dyn_into::<web_sys::MutationRecord>().ok());
    records.map(|record| record.removed_nodes()).any(|removed| {
        let mut nodes = (0..removed.length()).filter_map(|at| removed.item(at));
        nodes.any(|node| node.contains(Some(element)))
    })
}

/// If nothing has the focus any more, gives it to the open review or to the heading of the page, so that keys and
/// screen readers continue from there. Nothing is scrolled.
pub fn keep_focus_in_page() {
    spawn_local(async move {
        TimeoutFuture::new(0).await;
        if !is_lost() {
            return;
        }
        let find = |selector| document().query_selector(selector).ok().flatten();
        let found = find(".read:not(.idle)").or_else(|| find("#content h1"));
        if let Some(found) = found {
            focus_without_scrolling(&found);
        }
    });
}

/// Whether nothing has the focus.
fn is_lost() -> bool {
    document().active_element().is_none_or(|element| element.tag_name() == "BODY")
}

/// Focuses an element without scrolling. One that cannot have the focus leaves it where it is.
pub fn focus_without_scrolling(element: &Element) {
    let options = FocusOptions::new();
    options.set_prevent_scroll(true);
    drop(element.dyn_ref::<HtmlElement>().map(|element| element.focus_with_options(&options)));
}

/// The focusable elements inside `element` that are not inside its descendant `end`, in order.
pub fn focusable_before(element: &Element, end: &Element) -> Vec<Element> {
    let all = element.query_selector_all(FOCUSABLE).ok();
    let all = all.iter().flat_map(|all| (0..all.length()).filter_map(|at| all.item(at)));
    let elements = all.filter_map(|node| node.dyn_into::<Element>().ok());
    elements.filter(|element| !end.contains(Some(element))).collect()
}

fn focus_later(within: impl FnOnce() -> Option<Element> + 'static, selector: Cow<'static, str>) {
    spawn_local(async move {
        TimeoutFuture::new(0).await;
        let found = within().and_then(|within| within.query_selector(&selector).ok().flatten());
        if let Some(found) = found {
            focus(found);
        }
    });
}

fn focus(found: Element) {
    while let Some(folded) = found.closest("details:not([open])").ok().flatten() {
        // Setting this attribute cannot fail; the check prevents an endless loop.
        if folded.set_attribute("open", "").is_err() {
            break;
        }
    }
    let takes_it = found.matches(FOCUSABLE).unwrap_or(false);
    let inside = if takes_it { None } else { found.query_selector(FOCUSABLE).ok().flatten() };
    let Ok(place) = inside.unwrap_or(found).dyn_into::<HtmlElement>() else { return };
    let Some(form) = form_around(&place) else { return drop(place.focus()) };
    focus_without_scrolling(&place);
    bring_into_view(&form);
}

/// The largest part of the form around a field that fits into the window.
fn form_around(field: &Element) -> Option<Element> {
    let most = window().inner_height().ok()?.as_f64()? * WHOLE;
    let fits = |part: &Element| part.get_bounding_client_rect().height() <= most;
    let parts = || FORMS.iter().filter_map(|part| field.closest(part).ok().flatten());
    parts().find(fits).or_else(|| parts().next_back())
}

/// Scrolls an element into view, no farther than needed, and without animation if the person prefers reduced motion.
pub fn bring_into_view(element: &Element) {
    let calm = window().match_media("(prefers-reduced-motion: reduce)").ok().flatten();
    let calm = calm.is_some_and(|query| query.matches());
    let options = ScrollIntoViewOptions::new();
    options.set_block(ScrollLogicalPosition::Nearest);
    options.set_inline(ScrollLogicalPosition::Nearest);
    options.set_behavior(if calm { ScrollBehavior::Instant } else { ScrollBehavior::Smooth });
    element.scroll_into_view_with_scroll_into_view_options(&options);
}
