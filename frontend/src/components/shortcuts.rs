//! Single-key shortcuts: when a key counts as one, and whether the person wants them.

use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{Element, KeyboardEvent};

use crate::client::Notifier;
use crate::client::storage;

/// The storage key of the setting that switches single-key shortcuts off.
const STORAGE_KEY: &str = "countersign.shortcuts";

/// A selector for fields that take text.
const TEXT: &str =
    "textarea, [contenteditable], input:not([type=checkbox], [type=radio], [type=submit], [type=button])";

/// The message for a person who goes on typing after the field has gone.
const CLOSED: &str = "The field you were typing in has closed. Press Esc or click anywhere to use keyboard shortcuts.";

/// Whether this is a Mac, where ⌘ takes the place of Ctrl.
pub fn is_mac() -> bool {
    window().navigator().platform().is_ok_and(|platform| platform.contains("Mac"))
}

/// Whether keys without a modifier are shortcuts in this browser.
pub fn are_on() -> bool {
    storage::read(STORAGE_KEY).unwrap_or(true)
}

/// Switches single-key shortcuts on or off in this browser.
pub fn switch(on: bool) {
    storage::write(STORAGE_KEY, &on);
}

/// Tells how to undo a held decision by a key, as the end of a sentence; empty if shortcuts are off.
pub fn undo_hint() -> &'static str {
    if are_on() { ", press u to undo" } else { "" }
}

/// Whether a key is a shortcut: it is meant for the page, and the person has not switched shortcuts off (WCAG 2.1.4).
pub fn is_free(event: &KeyboardEvent) -> bool {
    is_for_page(event) && are_on()
}

/// Whether a key is meant for the page: nothing is being typed, no dialog or menu is open, and Ctrl, Alt and Meta are
/// not held.
pub fn is_for_page(event: &KeyboardEvent) -> bool {
    if event.ctrl_key() || event.meta_key() || event.alt_key() || event.default_prevented() {
        return false;
    }
    let typing = closest(event, "input, textarea, select, [contenteditable], dialog").is_some();
    let above = document().query_selector("dialog[open], #account").ok().flatten().is_some();
    !typing && !above
}

/// The key of an event. On a layout without Latin letters, the one at the same place of a Latin layout.
pub fn key_of(event: &KeyboardEvent) -> String {
    latin(event.key(), &event.code())
}

fn latin(key: String, code: &str) -> String {
    // Letters up to U+024F are Latin, with or without marks.
    let mut letters = key.chars().filter(|letter| letter.is_alphabetic() && *letter > '\u{24f}');
    match (letters.next(), code.strip_prefix("Key")) {
        (Some(letter), Some(place)) if letter.is_uppercase() => place.to_uppercase(),
        (Some(_), Some(place)) => place.to_lowercase(),
        _ => key,
    }
}

/// Swallows keys typed after a text field was removed, for example because somebody else decides the review. Letters
/// meant for the field would otherwise be shortcuts, and decide another review. A click, Tab or Esc ends that. Must be
/// called before other listeners are registered, so that it runs first.
pub fn swallow_typing_on(notifier: Notifier) {
    let typed_in = StoredValue::new_local(None::<Element>);
    let keys = window_event_listener(leptos::ev::keydown, move |event| {
        let key = event.key();
        if let Some(field) = closest(&event, TEXT) {
            // After leaving a field or sending its content, a person expects it to close.
            let with_modifier = event.ctrl_key() || event.meta_key();
            let ends = match key.as_str() {
                "Tab" | "Escape" => true,
                "Enter" => with_modifier || field.tag_name() != "TEXTAREA",
                _ => false,
            };
            typed_in.set_value((!ends).then_some(field));
        } else if typed_in.with_value(|field| field.as_ref().is_some_and(is_gone)) {
            if matches!(key.as_str(), "Tab" | "Escape") {
                typed_in.set_value(None);
            }
            let is_chord = event.ctrl_key() || event.meta_key() || event.alt_key();
            if key == "Tab" || is_chord || ["Shift", "Control", "Alt", "Meta"].contains(&key.as_str()) {
                return;
            }
            event.prevent_default();
            if key != "Escape" && !notifier.shows(CLOSED) {
                notifier.say(CLOSED);
            }
        }
    });
    let clicks = window_event_listener(leptos::ev::pointerdown, move |_| typed_in.set_value(None));
    on_cleanup(move || {
        keys.remove();
        clicks.remove();
    });
}

/// Makes a held Enter press nothing: it may have moved the focus to a button that decides, and presses this only once it
/// has been released.
pub fn ignore_held_enter() {
    let keys = window_event_listener(leptos::ev::keydown, |event| {
        if event.key() == "Enter" && event.repeat() && closest(&event, "button, a, summary").is_some() {
            event.prevent_default();
        }
    });
    on_cleanup(move || keys.remove());
}

/// Whether a field can no longer be typed in.
fn is_gone(field: &Element) -> bool {
    let bounds = field.get_bounding_client_rect();
    let is_drawn = bounds.width() > 0.0 && bounds.height() > 0.0;
    !field.is_connected() || !is_drawn || field.matches(":disabled").unwrap_or(false)
}

/// The element that had the focus when a key was pressed, or the closest one around it, that a selector finds.
pub fn closest(event: &KeyboardEvent, selector: &str) -> Option<Element> {
    event.target()?.dyn_into::<Element>().ok()?.closest(selector).ok()?
}

#[cfg(test)]
mod tests {
    use super::latin;

    #[test]
    fn a_letter_of_another_script_counts_as_the_latin_one_at_its_place() {
        let cases =
            [("a", "KeyQ", "a"), ("ф", "KeyA", "a"), ("Ф", "KeyA", "A"), ("ع", "KeyU", "u"), ("ж", "Semicolon", "ж")];
        for (key, code, expected) in cases {
            assert_eq!(latin(key.to_owned(), code), expected, "{key}");
        }
        assert_eq!(latin("Enter".to_owned(), "Enter"), "Enter");
    }
}
