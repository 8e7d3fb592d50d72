//! The arguments of an action: as requested, the form to edit them, and the edits.

use leptos::prelude::*;
use serde_json::{Value, json};
use shared::definition::{ActionKind, ContentType};
use shared::review::{Action, ActionType};

use super::super::form::DraftForm;
use super::super::hidden::HiddenWarning;
use super::super::request::request;
use super::super::value;
use super::shown::ShownAction;
use crate::components::diff::Diff;
use crate::components::listeners::while_shown;
use crate::components::schema_form::SchemaForm;
use crate::state::drafts::Draft;
use crate::state::drafts::chosen::arguments_place;
use crate::state::hidden::{hidden_in, remove_hidden};
use crate::state::schema::declared;
use crate::state::{action_words, extent};

/// The arguments as requested, and the request that is sent with them. The arguments are hidden while they are edited.
#[component]
pub fn Arguments(shown: ShownAction) -> impl IntoView {
    let hidden = move || shown.open.get() && shown.chosen.get() == Some(ActionKind::Edit);
    shown.action.with_value(|action| {
        let arguments = Value::Object(action.arguments.clone());
        // Only tool calls send a request; other actions take effect inside the run.
        let sent = action.request.as_ref().filter(|_| action.action_type == ActionType::Tool);
        view! {
            <div class:json=!action_words::is_read(action.action_type) hidden=hidden>{asked(action)}</div>
            {sent.map(|sent| request(sent, &arguments, shown.over.into()))}
        }
    })
}

/// The arguments as requested.
pub fn asked(action: &Action) -> AnyView {
    match action.arguments.is_empty() {
        true => view! { <p class="none">{action_words::nothing(action.action_type)}</p> }.into_any(),
        false if action_words::is_read(action.action_type) => value::texts(&action.arguments),
        false => value::json(&Value::Object(action.arguments.clone())),
    }
}

#[component]
pub fn EditForm(shown: ShownAction) -> impl IntoView {
    view! {
        <Show when=move || shown.open.get() && shown.chosen.get() == Some(ActionKind::Edit)>
            <div class="edit" on:focusout=while_shown(move |_| shown.pane.check())><Fields shown /></div>
        </Show>
    }
}

/// The changes to the arguments: those of the draft, or those that were approved.
#[component]
pub fn Edited(shown: ShownAction) -> impl IntoView {
    let edited = Memo::new(move |_| shown.edited());
    let says = move || if shown.over.get() { "Changes made before approval" } else { "Your changes" };
    move || {
        let new = edited.get()?;
        Some(view! {
            <p class="describes"><b>{says}</b></p>
            <Diff content_type=ContentType::Json old=Value::Object(shown.arguments()) new=Value::Object(new) />
        })
    }
}

#[component]
fn Fields(shown: ShownAction) -> impl IntoView {
    let asked = shown.arguments();
    let read = {
        let (id, asked) = (shown.id(), asked.clone());
        move |draft: &Draft| {
            let typed = draft.actions.get(&id).and_then(|own| own.arguments.clone());
            Value::Object(typed.unwrap_or_else(|| asked.clone()))
        }
    };
    let current = read(&shown.pane.workspace.draft_now(shown.pane.id));
    if let Some(reason) = extent::too_large_to_send(&current) {
        return view! { <p class="banner warn">{reason}</p> }.into_any();
    }
    let any = json!({ "type": "object" });
    let schema = shown
        .action
        .with_value(|action| declared(Some(action.schema.as_ref().unwrap_or(&any)), &Value::Object(asked.clone())));
    let write = {
        let (id, asked) = (shown.id(), asked.clone());
        move |draft: &mut Draft, value: Value| {
            if let Value::Object(arguments) = value {
                let changed = (arguments != asked).then_some(arguments);
                draft.actions.entry(id.clone()).or_default().arguments = changed;
            }
        }
    };
    let base = shown.action.with_value(|action| arguments_place(&action.id));
    let DraftForm { value, flaw, unparsed } = shown.pane.edit_form(&base, Value::Object(asked), read, write);
    let count = Signal::derive(move || value.with(hidden_in));
    let remove = move |()| value.update(remove_hidden);
    view! {
        <HiddenWarning count remove />
        <SchemaForm schema=schema value=value errors=shown.pane.mistakes base=base flaw=flaw unparsed=unparsed />
    }
    .into_any()
}
