//! The arguments of an action: as requested, the changes since the last view, the form to edit them, and the edits.

use leptos::prelude::*;
use serde_json::Value;
use shared::JsonMap;
use shared::definition::{ActionKind, ContentType};
use shared::review::ActionType;

use super::super::hidden::HiddenWarning;
use super::super::request::request;
use super::super::value::{json, texts};
use super::shown::ShownAction;
use crate::components::diff::Diff;
use crate::components::listeners::while_shown;
use crate::components::schema_form::SchemaForm;
use crate::state::hidden::{hidden_in, remove_hidden};
use crate::state::{action_words, extent};

/// All of them as they were asked for, and the request that is sent with them. Out of sight while they are edited.
#[component]
pub fn Arguments(shown: ShownAction) -> impl IntoView {
    let hidden = move || shown.open.get() && shown.chosen.get() == Some(ActionKind::Edit);
    shown.action.with_value(|action| {
        let is_read = action_words::is_read(action.action_type);
        let arguments = Value::Object(action.arguments.clone());
        // What is made or changed in the run itself sends nothing to anybody.
        let sent = action.request.as_ref().filter(|_| action.action_type == ActionType::Tool);
        view! {
            <div class:json=!is_read hidden=hidden>
                {match action.arguments.is_empty() {
                    true => view! { <p class="none">{action_words::words(action.action_type).nothing}</p> }.into_any(),
                    false if is_read => texts(&action.arguments),
                    false => json(&arguments),
                }}
            </div>
            {sent.map(|sent| request(sent, &arguments, shown.over))}
        }
    })
}

/// What is different from the revision that one saw before.
#[component]
pub fn ChangedSince(shown: ShownAction) -> impl IntoView {
    let before = Memo::new(move |_| shown.before());
    move || {
        let (revision, old) = before.get()?;
        Some(view! {
            <p class="describes"><b>{format!("Changed since revision {revision}")}</b></p>
            {difference(old, shown.arguments())}
        })
    }
}

/// The form in which they are edited.
#[component]
pub fn EditForm(shown: ShownAction) -> impl IntoView {
    view! {
        <Show when=move || shown.open.get() && shown.chosen.get() == Some(ActionKind::Edit)>
            <div class="edit" on:focusout=while_shown(move |_| shown.pane.check())><Fields shown /></div>
        </Show>
    }
}

/// What somebody has changed here, or had changed when it was approved.
#[component]
pub fn Edited(shown: ShownAction) -> impl IntoView {
    let edited = Memo::new(move |_| shown.edited());
    let says = move || if shown.over.get() { "Changes made before approval" } else { "Your changes" };
    move || {
        let new = edited.get()?;
        Some(view! {
            <p class="describes"><b>{says}</b></p>
            {difference(shown.arguments(), new)}
        })
    }
}

fn difference(old: JsonMap, new: JsonMap) -> impl IntoView {
    view! { <Diff content_type=ContentType::Json old=Value::Object(old) new=Value::Object(new) /> }
}

#[component]
fn Fields(shown: ShownAction) -> impl IntoView {
    let asked = shown.arguments();
    let current = Value::Object(shown.typed.get_untracked().arguments.unwrap_or_else(|| asked.clone()));
    if let Some(reason) = extent::too_large_to_send(&current) {
        return view! { <p class="banner warn">{reason}</p> }.into_any();
    }
    let schema = shown.action.with_value(|action| action.schema.clone());
    let schema = schema.unwrap_or_else(|| Value::Object(JsonMap::new()));
    let value = RwSignal::new(current);
    let sound = RwSignal::new(true);
    let flaw = RwSignal::new(None);
    // What was asked for may be wrong, too: only an edit is sent.
    let asked_for = Value::Object(asked.clone());
    shown.pane.watch_edit(move || flaw.get().filter(|_| !sound.get() || value.with(|value| *value != asked_for)));
    Effect::new(move |previous: Option<()>| {
        let value = value.get();
        let (true, Value::Object(arguments)) = (previous.is_some() && sound.get(), value) else { return };
        let changed = (arguments != asked).then_some(arguments);
        shown.write(|own| own.arguments = changed);
    });
    let mistakes = Signal::derive(move || shown.pane.mistakes.get());
    let base = format!("{}/arguments", shown.pointer());
    let count = Signal::derive(move || value.with(hidden_in));
    let remove = move |()| value.update(remove_hidden);
    view! {
        <HiddenWarning count remove />
        <SchemaForm schema=schema value=value errors=mistakes base=base sound=sound flaw=flaw />
    }
    .into_any()
}
