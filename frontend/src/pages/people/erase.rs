//! Asks whether to erase a person, and explains what is removed and what stays.

use leptos::prelude::*;
use shared::api::User;

use crate::client::use_api;
use crate::components::confirm::Confirm;
use crate::components::notice::Notifier;

/// The dialog, open while `open` is true, that asks whether to erase `who`.
#[component]
pub fn Erase(open: RwSignal<bool>, who: RwSignal<Option<User>>, done: Callback<()>) -> impl IntoView {
    let api = use_api();
    let notices = Notifier::expect();
    let name = move || who.with(|who| who.as_ref().map(|user| user.username.to_string()).unwrap_or_default());
    let erase = Action::new_local(move |name: &String| {
        let name = name.clone();
        async move {
            match api.erase_person(&name).await {
                Ok(erasure) => {
                    let archived = match erasure.archived_runs {
                        0 => String::new(),
                        1 => " The archive still names them in 1 run.".to_owned(),
                        count => format!(" The archive still names them in {count} runs."),
                    };
                    let rest =
                        if erasure.done { "" } else { " Everything else that names them is erased within minutes." };
                    notices.good(format!("{name} is now {}.{rest}{archived}", erasure.username));
                    // The page may have been left meanwhile.
                    done.try_run(());
                }
                Err(problem) => notices.bad(format!("Not erased. {problem}")),
            }
            let _ = open.try_set(false);
        }
    });
    let title = Signal::derive(move || format!("Erase the personal data of {}?", name()));
    let confirmed = Callback::new(move |()| {
        erase.dispatch_local(untrack(name));
    });
    view! {
        <Confirm open title keep="Keep them" act="Erase personal data" busy=erase.pending() confirmed>
            <p>"Gone for good: their name, e-mail address, logins and settings, and what they wrote in comments, reasons and feedback. A pseudonym replaces their name."</p>
            <p>"What stays: what they decided, edited and started, under the pseudonym, and the proof that nothing else in the audit log was changed. Flow files, archive files, backups and anything sent from the server still name them."</p>
        </Confirm>
    }
}
