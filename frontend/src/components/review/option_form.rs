//! The form of an option with fields, which is filled in before the decision.

use leptos::prelude::*;
use serde_json::Value;
use shared::review::ReviewOption;

use super::form::DraftForm;
use super::pane::Pane;
use crate::components::focus::{FIELD, focus_on};
use crate::components::inert::{inert, named};
use crate::components::schema_form::SchemaForm;
use crate::state::option_fields::{FIELDS_PATH, unparsed_place};
use crate::state::schema::initial;
use crate::state::verdict::Intent;

impl Pane {
    /// Handles a button or key: opens the form of an option with fields, and decides anything else.
    pub fn press(self, intent: &Intent) {
        let opens = |id: &String| {
            let takes = |option: &ReviewOption| option.id == *id && option.fields.is_some();
            self.review.with_untracked(|review| review.options.iter().any(takes))
        };
        match intent {
            Intent::Choose(id) if opens(id) && untrack(move || self.is_open()) => {
                self.mistakes.set(Vec::new());
                self.filling.set(Some(id.clone()));
                focus_on(format!(".option-form {FIELD}"));
            }
            intent => self.decide(intent),
        }
    }

    /// Closes the form. What was typed stays in the draft.
    pub fn close_form(self) {
        self.mistakes.set(Vec::new());
        self.filling.set(None);
        focus_on(".acts button");
    }
}

#[component]
pub fn OptionForm(pane: Pane) -> impl IntoView {
    let option = Memo::new(move |_| pane.filled());
    move || option.get().map(|option| view! { <Form pane=pane option=option /> })
}

#[component]
fn Form(pane: Pane, option: ReviewOption) -> impl IntoView {
    let ReviewOption { id, label, description, fields, .. } = option;
    let schema = fields.unwrap_or_default();
    // A form with its initial values is no draft; one that was emptied is.
    let untouched = initial(&schema);
    let starts = untouched.clone();
    let (of, own) = (id.clone(), id.clone());
    let DraftForm { value, flaw, unparsed } = pane.form(
        &unparsed_place(&id),
        move |draft| draft.fields.get(&of).map_or_else(|| starts.clone(), |fields| Value::Object(fields.clone())),
        move |draft, value| match value {
            value if value == untouched => draft.fill(&own, None),
            Value::Object(fields) => draft.fill(&own, Some(fields)),
            _ => {}
        },
    );
    // The heading names the form, but a single field of JSON needs a label.
    let name = if schema.get("properties").is_some() { "" } else { "Values" };
    let keys = move |event: web_sys::KeyboardEvent| match event.key().as_str() {
        "Enter" if event.ctrl_key() || event.meta_key() => {
            event.prevent_default();
            pane.decide(&Intent::Choose(id.clone()));
        }
        "Escape" => {
            // The page would leave the review, too.
            event.prevent_default();
            pane.close_form();
        }
        _ => {}
    };
    view! {
        <section class="option-form" aria-label=format!("Values for “{}”", named(&label)) on:keydown=keys>
            <p><b>{inert(&label)}</b>{description.map(|text| view! { <span class="muted small">{inert(&text)}</span> })}</p>
            <SchemaForm
                schema=schema
                value=value
                errors=pane.mistakes
                base=FIELDS_PATH
                label=name
                flaw unparsed
            />
        </section>
    }
}
