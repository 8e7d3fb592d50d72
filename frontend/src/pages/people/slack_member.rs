//! The member ID in Slack of another person, which only admins set: nothing proves whose it is, and what the member
//! presses counts as the person's decision.

use leptos::prelude::*;
use shared::error::Problem;
use shared::id::Username;
use shared::notification::{Channel, Notifications};

use super::{Field, elsewhere};
use crate::client::use_api;
use crate::components::button::Button;
use crate::components::notice::Notifier;
use crate::components::states::Loaded;

/// The field, with a button of its own. Shows nothing if the server has no Slack.
#[component]
pub fn SlackMember(person: Username) -> impl IntoView {
    let api = use_api();
    let asked = person.clone();
    let known = LocalResource::new(move || {
        let person = asked.clone();
        async move { api.notifications(Some(&person)).await }
    });
    let field = move |known: Notifications| {
        known.available.contains(&Channel::Slack).then(|| view! { <MemberId person=person.clone() known/> })
    };
    view! { <Loaded from=known failed="Their member ID in Slack could not be loaded" rows=1 children=field/> }
}

#[component]
fn MemberId(person: Username, known: Notifications) -> impl IntoView {
    let api = use_api();
    let notices = Notifier::expect();
    let id = RwSignal::new(known.slack_user_id.unwrap_or_default());
    let problem = RwSignal::new(None::<Problem>);
    let save = Action::new_local(move |(): &()| {
        let person = person.clone();
        let slack_user_id = Some(id.get_untracked());
        problem.set(None);
        async move {
            // The settings are saved as a whole, and the person may have changed theirs since.
            let save = async {
                let now = api.notifications(Some(&person)).await?;
                api.choose_notifications(Some(&person), &Notifications { slack_user_id, ..now }).await
            };
            match save.await {
                Ok(_) => notices.good(format!("The member ID of {person} is saved.")),
                Err(refused) => problem.set(Some(refused)),
            }
        }
    });
    let other = elsewhere(problem, &["/slack_user_id"]);
    view! {
        <form class="in" on:submit=move |event| { event.prevent_default(); save.dispatch_local(()); } novalidate>
        <details class="fold"><summary>"Slack"<span class="muted">"who decides there in their name"</span></summary>
            <Field label="Member ID" hint="From their profile in Slack, such as U024BE7LH. If empty, they cannot decide there." value=id problem path="/slack_user_id"/>
            {move || other().map(|why| view! { <p class="banner stop" role="alert">{why}</p> })}
            <Button class="b" off=save.pending()>"Save the member ID"</Button>
        </details>
        </form>
    }
}
