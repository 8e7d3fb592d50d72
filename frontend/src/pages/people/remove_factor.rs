//! Asks whether to remove the second factor of another person.

use leptos::prelude::*;
use shared::api::User;

use crate::client::use_api;
use crate::components::confirm::Confirm;
use crate::components::notice::Notifier;

/// The dialog, open while `open` is true, that asks whether to remove the second factor of `who`.
#[component]
pub fn RemoveFactor(open: RwSignal<bool>, who: RwSignal<Option<User>>) -> impl IntoView {
    let api = use_api();
    let notices = Notifier::expect();
    let name = move || who.with(|who| who.as_ref().map(|user| user.username.to_string()).unwrap_or_default());
    let remove = Action::new_local(move |name: &String| {
        let name = name.clone();
        async move {
            match api.reset_second_factor(&name).await {
                Ok(()) => notices.good(format!("{name} can log in without a second factor.")),
                Err(problem) => notices.bad(format!("Not removed. {problem}")),
            }
            // The page may have been left meanwhile.
            let _ = open.try_set(false);
        }
    });
    let title = Signal::derive(move || format!("Remove the second factor of {}?", name()));
    let confirmed = Callback::new(move |()| {
        remove.dispatch_local(untrack(name));
    });
    view! {
        <Confirm open title keep="Keep it" act="Remove it" busy=remove.pending() confirmed>
            <p>"Until they set up another one, their password alone is enough to log in. Make sure that it is they who ask for it."</p>
        </Confirm>
    }
}
