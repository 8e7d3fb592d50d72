//! Text fields that grow with their text.

use leptos::html;
use leptos::prelude::*;

/// Makes a text field as high as its text on the next frame: until it is in the page, it has no height.
pub fn grow_once_shown(field: NodeRef<html::Textarea>) {
    if let Some(field) = field.get() {
        request_animation_frame(move || grow(&field));
    }
}

fn grow(field: &web_sys::HtmlTextAreaElement) {
    let style = web_sys::HtmlElement::style(field);
    // Setting a known property to a valid value cannot fail.
    drop(style.set_property("height", "auto"));
    drop(style.set_property("height", &format!("{}px", field.scroll_height() + 2)));
}
