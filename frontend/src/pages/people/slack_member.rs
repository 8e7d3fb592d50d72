//! The member ID in Slack of another person, which only admins set: nothing proves whose it is, and what the member
//! presses counts as the person's decision.

use leptos::prelude::*;
use shared::error::Problem;
use shared::notification::Channel;

use super::Field;
use crate::client::use_api;
use crate::components::states::Loaded;

/// The field in the form of a person. Shows nothing if the server has no Slack.
#[component]
pub fn SlackMember(value: RwSignal<String>, problem: RwSignal<Option<Problem>>) -> impl IntoView {
    let api = use_api();
    let channels = LocalResource::new(move || async move { api.notifications(None).await.map(|own| own.available) });
    let field = move |channels: Vec<Channel>| {
        channels.contains(&Channel::Slack).then(|| view! {
            <details class="fold"><summary>"Slack"<span class="muted">"who decides there in their name"</span></summary>
                <Field label="Member ID" hint="From their profile in Slack, such as U024BE7LH. If empty, they cannot decide there." value problem path="/slack_user_id"/>
            </details>
        })
    };
    view! { <Loaded from=channels failed="Their member ID in Slack could not be loaded" rows=1 children=field/> }
}
