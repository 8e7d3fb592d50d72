//! The note that goes with a decision: a text field, and details for later steps.

use leptos::html;
use leptos::prelude::*;
use serde_json::{Value, json};

use super::form::DraftForm;
use super::pane::Pane;
use crate::components::autosize::grow_once_shown;
use crate::components::focus::focus_on;
use crate::components::glyph::Glyph;
use crate::components::schema_form::SchemaForm;
use crate::state::effects;
use crate::state::verdict::METADATA;

/// A selector for the text field.
pub const NOTE: &str = ".say textarea";

#[component]
pub fn NoteField(pane: Pane) -> impl IntoView {
    let node = NodeRef::<html::Textarea>::new();
    let text = Memo::new(move |_| pane.with_draft(|draft| draft.text.clone()));
    let placeholder = move || pane.review.with(|review| effects::note_label(review, pane.filled().is_some()));
    Effect::new(move |_| {
        text.track();
        grow_once_shown(node);
    });
    let send = move |event: web_sys::KeyboardEvent| {
        if event.key() == "Enter" && (event.ctrl_key() || event.meta_key()) {
            event.prevent_default();
            pane.send();
        }
        if event.key() == "Escape" {
            event.prevent_default();
            focus_on(".read");
        }
    };
    view! {
        <div class="note">
            <label class="say">
                <span class="sr">{placeholder}</span>
                <textarea
                    node_ref=node
                    rows="1"
                    placeholder=placeholder
                    aria-invalid=move || pane.mistakes.with(|all| all.iter().any(|one| matches!(one.path.as_str(), "/comment" | "/verdict/text"))).to_string()
                    prop:value=text
                    on:keydown=send
                    on:input=move |event| {
                        let text = event_target_value(&event);
                        pane.workspace.write(&pane.review.get_untracked(), |draft| draft.text = text);
                    }
                ></textarea>
                <kbd aria-hidden="true">"c"</kbd>
            </label>
            <Metadata pane=pane />
        </div>
    }
}

/// A field for the metadata of the decision, as JSON, which later steps can read. It is folded, as most decisions need
/// none.
#[component]
fn Metadata(pane: Pane) -> impl IntoView {
    let of_run = pane.review.with_untracked(|review| review.run_id.is_some());
    let DraftForm { value, flaw, unparsed } = pane.form(
        METADATA,
        |draft| Value::Object(draft.metadata.clone()),
        |draft, value| {
            if let Value::Object(metadata) = value {
                draft.metadata = metadata;
            }
        },
    );
    // It stays open if it has content, and while its content is being deleted.
    let opened = Memo::new(move |before: Option<&bool>| {
        before == Some(&true) || value.with(|value| *value != json!({})) || unparsed.with(|texts| !texts.is_empty())
    });
    of_run.then(|| {
        view! {
            <details class="fold metadata" open=opened>
                // On a phone, the button has only the icon.
                <summary title="Details for later steps">
                    <Glyph icon=icondata::LuBraces />
                    <span class="words">"Details for later steps"</span>
                </summary>
                <p class="hint">"An object, such as {\"ticket\": 42}. It is kept in the run's context."</p>
                <SchemaForm schema=json!({ "type": "object" }) value=value errors=pane.mistakes base=METADATA label="Details" flaw unparsed />
            </details>
        }
    })
}
