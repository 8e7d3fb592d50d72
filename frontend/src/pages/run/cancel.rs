//! Asks for a reason and cancels the run.

use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::api::Reason;

use super::data::RunData;
use crate::client::{key, use_api};
use crate::components::dialog::Dialog;
use crate::components::notice::Notifier;

/// The dialog that cancels a run.
#[component]
pub fn CancelDialog(data: RunData, open: RwSignal<bool>) -> impl IntoView {
    let api = use_api();
    let notices = Notifier::expect();
    let reason = RwSignal::new(String::new());
    let busy = RwSignal::new(false);
    let problem = RwSignal::new(None::<String>);
    let send = move || {
        if busy.get_untracked() {
            return;
        }
        busy.set(true);
        problem.set(None);
        let reason = reason.get_untracked().trim().to_owned();
        let reason = Reason { reason: Some(reason).filter(|reason| !reason.is_empty()) };
        spawn_local(async move {
            match api.cancel(data.id, &reason, Some(&key())).await {
                Ok(_) => {
                    open.set(false);
                    notices.good("The run is cancelled.");
                }
                Err(refused) => problem.set(Some(refused.to_string())),
            }
            busy.set(false);
            data.load();
        });
    };
    view! {
        <Dialog open title="Cancel this run?">
            <form class="in" on:submit=move |event| { event.prevent_default(); send(); }>
                <p>"All its branches end. Pending reviews are withdrawn, and what is under way has no effect any more. This cannot be undone."</p>
                <label class="field">
                    <span class="label">"Reason, for the record"</span>
                    <textarea class="textarea" rows="3" prop:value=move || reason.get()
                        on:input=move |event| reason.set(event_target_value(&event))></textarea>
                </label>
                {move || problem.get().map(|problem| view! { <p class="mistake" role="alert">{problem}</p> })}
                <div class="actions">
                    <button type="button" class="b" on:click=move |_| open.set(false)>"Keep it going"</button>
                    <button class="b stop" disabled=move || busy.get()>{move || if busy.get() { "Cancelling…" } else { "Cancel the run" }}</button>
                </div>
            </form>
        </Dialog>
    }
}
