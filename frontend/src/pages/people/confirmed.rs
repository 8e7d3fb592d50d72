//! What an admin does to another person only after a question: removing their second factor, and erasing their data.

use leptos::prelude::*;
use shared::api::User;

use crate::client::use_api;
use crate::components::confirm::Confirm;
use crate::components::notice::Notifier;

fn name_of(who: RwSignal<Option<User>>) -> String {
    who.with(|who| who.as_ref().map(|user| user.username.to_string()).unwrap_or_default())
}

/// The dialog, open while `open` is true, that asks whether to remove the second factor of `who`.
#[component]
pub fn RemoveFactor(open: RwSignal<bool>, who: RwSignal<Option<User>>) -> impl IntoView {
    let api = use_api();
    let notices = expect_context::<Notifier>();
    let remove = move || {
        let name = untrack(|| name_of(who));
        async move {
            let removed = api.reset_second_factor(&name).await;
            if removed.is_ok() {
                notices.good(format!("{name} can log in without a second factor."));
            }
            removed
        }
    };
    let title = Signal::derive(move || format!("Remove the second factor of {}?", name_of(who)));
    view! {
        <Confirm open title keep="Keep it" act="Remove it" failed="Not removed." does=remove>
            <p>"Until they set up another one, their password alone is enough to log in. Check that the request really comes from them."</p>
        </Confirm>
    }
}

/// The dialog, open while `open` is true, that asks whether to erase `who`, and explains what is removed and what stays.
#[component]
pub fn Erase(open: RwSignal<bool>, who: RwSignal<Option<User>>, done: Callback<()>) -> impl IntoView {
    let api = use_api();
    let notices = expect_context::<Notifier>();
    let erase = move || {
        let name = untrack(|| name_of(who));
        async move {
            api.erase_person(&name).await.map(|erasure| {
                let archived = match erasure.archived_runs {
                    0 => String::new(),
                    1 => " The archive still names them in 1 run.".to_owned(),
                    count => format!(" The archive still names them in {count} runs."),
                };
                let rest = if erasure.done { "" } else { " Everything else that names them is erased within minutes." };
                notices.good(format!("{name} is now {}.{rest}{archived}", erasure.username));
                // The page may have been left meanwhile.
                done.try_run(());
            })
        }
    };
    let title = Signal::derive(move || format!("Erase the personal data of {}?", name_of(who)));
    view! {
        <Confirm open title keep="Keep them" act="Erase personal data" failed="Not erased." does=erase>
            <p>"Gone for good: their name, e-mail address, logins and settings, and what they wrote in comments, reasons and feedback. A pseudonym replaces their name."</p>
            <p>"What stays: what they decided, edited and launched, under the pseudonym, and the proof that nothing else in the audit log was changed. Flow files, archive files, backups and anything sent from the server still name them."</p>
        </Confirm>
    }
}
