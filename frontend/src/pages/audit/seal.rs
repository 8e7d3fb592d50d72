//! How far the audit log is sealed, and whether the sealed entries are valid.

use leptos::prelude::*;

use crate::client::{Live, use_api};
use crate::components::button::Button;
use crate::components::inert::inert_code;
use crate::components::time::{clock, day, full};

/// One line about the seals, which stands out only if a check fails.
#[component]
pub fn Seal() -> impl IntoView {
    let api = use_api();
    let live = expect_context::<Live>();
    let sealed = LocalResource::new(move || async move { api.seal().await.ok() });
    let verify = Action::new_local(move |(): &()| async move {
        match api.verify_audit().await {
            Ok(check) => match check.first_bad {
                Some(bad) => (true, format!("Verification failed: {}", bad.message)),
                None => (
                    !check.valid,
                    format!("{} entries verified · checked at {}", check.sealed, clock(live.server_now())),
                ),
            },
            Err(problem) => (false, problem.to_string()),
        }
    });
    let (busy, checked) = (verify.pending(), verify.value());
    let bad = move || checked.with(|checked| checked.as_ref().is_some_and(|(bad, _)| *bad));
    let words = move || match checked.get() {
        _ if busy.get() => "Verifying every entry …".to_owned(),
        Some((_, words)) => words,
        None => {
            let seal = sealed.get().flatten();
            seal.map(|seal| format!("Sealed up to {}", day(seal.sealed_at))).unwrap_or_default()
        }
    };
    let sealed_at = move || sealed.get().flatten().map(|seal| full(seal.sealed_at));
    view! {
        <p class="hint audit-seal" class:mistake=bad role="status">
            <span title=sealed_at>{move || inert_code(&words())}</span>" "
            <Button class="b sm ghost" off=busy press=move |()| { verify.dispatch_local(()); }>"Verify"</Button>
        </p>
    }
}
