//! Edits an item: a text field for text, otherwise a form made from its schema.

use leptos::html;
use leptos::prelude::*;
use serde_json::Value;
use shared::definition::ContentType;
use shared::error::pointer;
use shared::review::Item;

use crate::components::autosize::grow_once_shown;
use crate::components::focus::{FIELD, focus_within};
use crate::components::review::form::DraftForm;
use crate::components::review::hidden::HiddenWarning;
use crate::components::review::pane::Pane;
use crate::components::schema_form::SchemaForm;
use crate::state::drafts::Draft;
use crate::state::hidden::{hidden_in, remove_hidden, without_hidden};
use crate::state::schema::declared;
use crate::state::unparsed::Unparsed;
use crate::state::verdict::is_at;
use crate::state::{extent, invisible_characters};

/// The editor of an item: a text field for text, otherwise a form made from its schema.
#[component]
pub fn Edit(pane: Pane, item: Item, focus: StoredValue<bool>) -> impl IntoView {
    let (key, proposed) = (item.key.clone(), item.value.clone());
    let read = move |draft: &Draft| draft.edits.get(&key).unwrap_or(&proposed).clone();
    let draft = pane.workspace.draft_now(pane.id);
    let current = read(&draft);
    if let Some(reason) = extent::too_large_to_send(&current) {
        return view! { <p class="banner warn">{reason}</p> }.into_any();
    }
    let form = NodeRef::<html::Div>::new();
    Effect::new(move |_| {
        // If there are mistakes, the focus moves to those instead.
        let opened = focus.get_value() && pane.mistakes.with_untracked(Vec::is_empty);
        if let (Some(form), true) = (form.get(), opened) {
            focus_within(&form, FIELD);
        }
    });
    let path = pointer(["edits", item.key.as_str()]);
    let plain = item.schema.as_ref().is_none_or(|schema| {
        schema.get("type").and_then(Value::as_str) == Some("string")
            && schema.get("enum").is_none()
            && schema.get("format").is_none()
    });
    let at = path.clone();
    let wrong = Memo::new(move |_| pane.mistakes.with(|mistakes| mistakes.iter().any(|one| is_at(one, &at))));
    let (key, proposed) = (item.key.clone(), item.value.clone());
    let write = move |draft: &mut Draft, value: Value| draft.edit(&key, value, &proposed);
    // A number that is half typed is text too, and only the form shows text that cannot be read.
    let is_text = current.is_string() && item.value.is_string() && !draft.unparsed.has(&path);
    if is_text && plain {
        let code = item.content_type == ContentType::Code;
        let node = NodeRef::<html::Textarea>::new();
        let (key, proposed) = (item.key.clone(), item.value.clone());
        let text = Memo::new(move |_| {
            pane.workspace.drafts.with(|drafts| {
                let edit = drafts.review(pane.id).and_then(|draft| draft.edits.get(&key));
                edit.unwrap_or(&proposed).as_str().unwrap_or_default().to_owned()
            })
        });
        Effect::new(move |_| {
            text.with(|_| ());
            grow_once_shown(node);
        });
        let typed = StoredValue::new(move |now: String| {
            pane.workspace.write(&pane.review.get_untracked(), |draft| {
                // Another tab may have left one, which nothing here shows.
                draft.unparsed.set(&path, Unparsed::default());
                write(draft, Value::String(now));
            });
        });
        let count = Signal::derive(move || text.with(|text| invisible_characters::count(text)));
        let remove = move |()| typed.with_value(|typed| typed(text.with_untracked(|text| without_hidden(text))));
        view! {
            <div class="edit" node_ref=form>
                <HiddenWarning count remove />
                <textarea
                    node_ref=node
                    class="textarea"
                    class:mono=code
                    aria-label=format!("Edit {}", item.label.as_deref().unwrap_or(&item.key))
                    aria-invalid=move || wrong.get().to_string()
                    prop:value=text
                    spellcheck=if code { "false" } else { "true" }
                    on:input=move |event| typed.with_value(|typed| typed(event_target_value(&event)))
                ></textarea>
            </div>
        }
        .into_any()
    } else {
        let schema = declared(item.schema.as_ref(), &item.value);
        let DraftForm { value, flaw, unparsed } = pane.edit_form(&path, item.value.clone(), read, write);
        let label = item.label.clone().unwrap_or_else(|| item.key.clone());
        let count = Signal::derive(move || value.with(hidden_in));
        let remove = move |()| value.update(remove_hidden);
        view! {
            <div class="edit" node_ref=form>
                <HiddenWarning count remove />
                <SchemaForm schema value errors=pane.mistakes base=path label flaw unparsed />
            </div>
        }
        .into_any()
    }
}
