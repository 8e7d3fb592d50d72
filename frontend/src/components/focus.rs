//! Moves the focus to the next thing that a person does. If it is in a form, the form is scrolled into view: on a small
//! screen, it may have opened out of sight.

use std::borrow::Cow;

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement, ScrollBehavior, ScrollIntoViewOptions, ScrollLogicalPosition};

/// Where to look for the first field that is marked as wrong: it may be out of sight. A list has a button to add what it
/// lacks.
pub const MISTAKE: &str = "[aria-invalid=true], .list.bad > button";

/// A field of a form; of a list without rows, the button that adds one.
pub const FIELD: &str = ":is(input, select, textarea, .list > button)";

/// What can have the focus.
const FOCUSABLE: &str = "input, select, textarea, button, a[href], summary, [tabindex]";

/// The form around a field, with what sends it; and less and less of it, where all of it is too high.
const FORMS: [&str; 3] = [".decide", "form, .option-form, .edit", ".field"];

/// How much of the window a form may fill to be shown as a whole.
const WHOLE: f64 = 0.75;

/// Gives the focus to the first place that a selector finds, or to the first thing in it that can have it, once the page
/// is drawn. What is folded away around it is opened.
pub fn focus_on(selector: impl Into<Cow<'static, str>>) {
    focus_later(|| document().document_element(), selector.into());
}

/// The same within an element that is known.
pub fn focus_within(element: &Element, selector: impl Into<Cow<'static, str>>) {
    let element = element.clone();
    focus_later(|| Some(element), selector.into());
}

/// Gives the focus to what is read, or to the heading of the page, where nothing has it any more: keys and screen readers
/// go on from there.
pub fn keep_focus_in_page() {
    spawn_local(async move {
        TimeoutFuture::new(0).await;
        if document().active_element().is_none_or(|element| element.tag_name() == "BODY") {
            let find = |selector| document().query_selector(selector).ok().flatten();
            if let Some(found) = find(".read:not(.idle)").or_else(|| find("#content h1")) {
                focus(found);
            }
        }
    });
}

/// What can have the focus in an element before its child `end`, in order.
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
        // Without it there is no way in; to open it cannot fail.
        if folded.set_attribute("open", "").is_err() {
            break;
        }
    }
    let takes_it = found.matches(FOCUSABLE).unwrap_or(false);
    let inside = if takes_it { None } else { found.query_selector(FOCUSABLE).ok().flatten() };
    let Ok(place) = inside.unwrap_or(found).dyn_into::<HtmlElement>() else { return };
    let Some(form) = form_around(&place) else { return drop(place.focus()) };
    let options = web_sys::FocusOptions::new();
    options.set_prevent_scroll(true);
    drop(place.focus_with_options(&options));
    bring_into_view(&form);
}

/// The most of the form around a field that can be seen at once.
fn form_around(field: &Element) -> Option<Element> {
    let most = window().inner_height().ok()?.as_f64()? * WHOLE;
    let fits = |part: &Element| part.get_bounding_client_rect().height() <= most;
    let parts = || FORMS.iter().filter_map(|part| field.closest(part).ok().flatten());
    parts().find(fits).or_else(|| parts().next_back())
}

/// Scrolls no farther than it must, and jumps for whoever wants no movement.
fn bring_into_view(element: &Element) {
    let calm = window().match_media("(prefers-reduced-motion: reduce)").ok().flatten();
    let calm = calm.is_some_and(|query| query.matches());
    let options = ScrollIntoViewOptions::new();
    options.set_block(ScrollLogicalPosition::Nearest);
    options.set_inline(ScrollLogicalPosition::Nearest);
    options.set_behavior(if calm { ScrollBehavior::Instant } else { ScrollBehavior::Smooth });
    element.scroll_into_view_with_scroll_into_view_options(&options);
}
