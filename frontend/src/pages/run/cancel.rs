//! Asks for a reason and cancels the run.

use leptos::prelude::*;
use shared::api::Reason;

use super::data::RunData;
use crate::client::{key, use_api};
use crate::components::button::Button;
use crate::components::dialog::Dialog;
use crate::components::notice::Notifier;

/// The dialog that cancels a run.
#[component]
pub fn CancelDialog(data: RunData, open: RwSignal<bool>) -> impl IntoView {
    let api = use_api();
    let notices = Notifier::expect();
    let reason = RwSignal::new(String::new());
    let cancel = Action::new_local(move |(): &()| {
        let reason = reason.get_untracked().trim().to_owned();
        let reason = Reason { reason: Some(reason).filter(|reason| !reason.is_empty()) };
        async move {
            let answer = api.cancel(data.id, &reason, Some(&key())).await;
            if answer.is_ok() {
                open.set(false);
                notices.good("The run is cancelled.");
            }
            data.load();
            answer.map(drop)
        }
    });
    let busy = cancel.pending();
    let answer = cancel.value();
    let problem = move || answer.with(|answer| answer.as_ref()?.as_ref().err().map(ToString::to_string));
    let send = move || {
        if !busy.get_untracked() {
            cancel.dispatch_local(());
        }
    };
    view! {
        <Dialog open title="Cancel this run?">
            <form class="in" on:submit=move |event| { event.prevent_default(); send(); }>
                <p>"All branches end, pending reviews are withdrawn, and the results of calls in progress are discarded. This cannot be undone."</p>
                <label class="field">
                    <span class="label">"Reason (recorded)"</span>
                    <textarea class="textarea" rows="3" bind:value=reason></textarea>
                </label>
                {move || problem().map(|problem| view! { <p class="mistake" role="alert">{problem}</p> })}
                <div class="actions">
                    <button type="button" class="b" on:click=move |_| open.set(false)>"Keep running"</button>
                    <Button class="b stop" off=busy>{move || if busy.get() { "Cancelling…" } else { "Cancel the run" }}</Button>
                </div>
            </form>
        </Dialog>
    }
}
