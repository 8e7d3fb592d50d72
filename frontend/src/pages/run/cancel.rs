//! Asks for a reason and cancels the run.

use leptos::prelude::*;
use shared::api::Reason;

use super::data::RunData;
use crate::client::{use_api, use_post};
use crate::components::button::Button;
use crate::components::dialog::Dialog;
use crate::components::inert::inert_code;
use crate::components::notice::Notifier;

#[component]
pub fn CancelDialog(data: RunData, open: RwSignal<bool>) -> impl IntoView {
    let api = use_api();
    let notices = expect_context::<Notifier>();
    let reason = RwSignal::new(String::new());
    let problem = RwSignal::new(None::<String>);
    let (cancel, busy) = use_post(format!("cancelling of {}", data.id), move |reason: Reason, key| {
        problem.set(None);
        async move {
            let answer = api.cancel(data.id, &reason, Some(&key)).await.map(drop);
            match &answer {
                Ok(()) => {
                    open.set(false);
                    notices.good("The run is cancelled.");
                }
                Err(refused) => problem.set(Some(refused.to_string())),
            }
            data.load();
            answer
        }
    });
    let send = move || {
        let reason = reason.get_untracked().trim().to_owned();
        cancel.run(Reason { reason: Some(reason).filter(|reason| !reason.is_empty()) });
    };
    view! {
        <Dialog open title="Cancel this run?">
            <form class="in" on:submit=move |event| { event.prevent_default(); send(); }>
                <p>"All branches end, pending reviews are withdrawn, and the results of calls in progress are discarded. This cannot be undone."</p>
                <label class="field">
                    <span class="label">"Reason (recorded)"</span>
                    <textarea class="textarea" rows="3" bind:value=reason></textarea>
                </label>
                {move || problem.get().map(|problem| view! { <p class="mistake" role="alert">{inert_code(&problem)}</p> })}
                <div class="actions">
                    <button type="button" class="b" on:click=move |_| open.set(false)>"Keep running"</button>
                    <Button class="b stop" off=busy>{move || if busy.get() { "Cancelling…" } else { "Cancel the run" }}</Button>
                </div>
            </form>
        </Dialog>
    }
}
