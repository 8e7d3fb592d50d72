//! How far the record is sealed, and whether what is sealed holds.

use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{Live, use_api};
use crate::components::time::{clock, full};

/// One quiet line; it is loud only where something does not hold.
#[component]
pub fn Seal() -> impl IntoView {
    let api = use_api();
    let live = Live::expect();
    let words = RwSignal::new(String::new());
    let bad = RwSignal::new(false);
    spawn_local(async move {
        if let Ok(seal) = api.seal().await {
            words.update(|words| *words = format!("Sealed up to {}", full(seal.sealed_at)));
        }
    });
    let verify = move |_| {
        words.set("Verifying every entry …".to_owned());
        spawn_local(async move {
            let said = match api.verify_audit().await {
                Ok(check) => {
                    bad.update(|bad| *bad = !check.valid);
                    match check.first_bad {
                        Some(bad) => format!("The record does not hold: {}", bad.message),
                        None => format!("{} entries hold · checked at {}", check.sealed, clock(live.server_now())),
                    }
                }
                Err(problem) => problem.to_string(),
            };
            words.update(|words| *words = said);
        });
    };
    view! {
        <p class="hint audit-seal" class:mistake=move || bad.get() role="status">
            {move || words.get()}" "
            <button class="b sm ghost" on:click=verify>"Verify"</button>
        </p>
    }
}
