//! Adds or changes a user.

use std::collections::BTreeSet;

use leptos::prelude::*;
use shared::account::MIN_PASSWORD;
use shared::api::{NewUser, User, UserPatch};
use shared::error::{Code, Mistake, Problem};
use shared::id::Username;
use shared::notification::Channel;

use super::roles::{OwnRoles, RoleSubset, SYSTEM};
use super::{CheckBox, Field, elsewhere, mistake_at};
use crate::client::{Session, to_show, use_api};
use crate::components::button::Button;
use crate::components::notice::Notifier;
use crate::components::states::Loaded;

/// The form. `user` is the person to change; `None` for a new one.
#[component]
pub fn UserForm(
    user: Option<User>,
    #[prop(into)] known: Signal<BTreeSet<String>>,
    done: Callback<User>,
    /// Asks whether to remove the person's second factor.
    #[prop(into)]
    remove_factor: Callback<()>,
    #[prop(into)] show_tokens: Callback<()>,
) -> impl IntoView {
    let api = use_api();
    let session = expect_context::<Session>();
    let notices = expect_context::<Notifier>();
    let text = |value: Option<String>| RwSignal::new(value.unwrap_or_default());
    let username = text(user.as_ref().map(|user| user.username.to_string()));
    let display_name = text(user.as_ref().and_then(|user| user.display_name.clone()));
    let email = text(user.as_ref().and_then(|user| user.email.clone()));
    let slack = text(user.as_ref().and_then(|user| user.slack_user_id.clone()));
    let password = text(None);
    let first_roles =
        user.as_ref().map_or_else(|| vec![shared::access::REVIEWER.to_owned()], |user| user.roles.clone());
    let roles = RwSignal::new(first_roles.into_iter().collect::<BTreeSet<String>>());
    let active = RwSignal::new(user.as_ref().is_none_or(|user| user.active));
    let problem = RwSignal::new(None::<Problem>);
    let new = user.is_none();
    let me = untrack(move || session.username());
    let own = me.is_some() && user.as_ref().map(|user| user.username.clone()) == me;
    let user = StoredValue::new(user);

    let save = Action::new_local(move |(name, secret): &(Username, String)| {
        let (name, secret) = (name.clone(), secret.clone());
        problem.set(None);
        let roles: Vec<String> = roles.get_untracked().into_iter().collect();
        let before = user.get_value();
        let (display_name, email) = (display_name.get_untracked(), email.get_untracked());
        let filled = |text: &String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let (new_display, new_email) = (filled(&display_name), filled(&email));
        let (active, slack) = (active.get_untracked(), slack.get_untracked());
        async move {
            let answer = if let Some(before) = before {
                // Only changed fields are sent, so that two admins do not undo each other's changes.
                let differs = |now: &str, before: Option<&String>| before.map_or("", String::as_str) != now;
                let patch = UserPatch {
                    password: Some(secret).filter(|secret| !secret.is_empty()),
                    display_name: differs(&display_name, before.display_name.as_ref()).then_some(display_name),
                    email: differs(&email, before.email.as_ref()).then_some(email),
                    roles: (before.roles.iter().cloned().collect::<BTreeSet<_>>() != roles.iter().cloned().collect())
                        .then_some(roles),
                    active: (before.active != active).then_some(active),
                    slack_user_id: differs(&slack, before.slack_user_id.as_ref()).then_some(slack),
                };
                api.update_user(&name, &patch).await
            } else {
                api.create_user(&NewUser {
                    username: name,
                    password: secret,
                    display_name: new_display,
                    email: new_email,
                    roles,
                })
                .await
            };
            match answer {
                Ok(user) => {
                    notices.good(format!("{} is saved.", user.username));
                    // Does nothing if the page is gone.
                    done.try_run(user);
                }
                Err(refused) => problem.set(to_show(refused)),
            }
        }
    });
    let busy = save.pending();
    let send = move || {
        let secret = password.get_untracked();
        let mut mistakes = Vec::new();
        let name = username.get_untracked().trim().parse::<Username>();
        if let Err(wrong) = &name {
            mistakes.push(Mistake::new("/username", "invalid", format!("A username is {}.", wrong.rule)));
        }
        if (new || !secret.is_empty()) && secret.chars().count() < MIN_PASSWORD {
            mistakes.push(Mistake::new("/password", "invalid", format!("At least {MIN_PASSWORD} characters.")));
        }
        let (Ok(name), true) = (name, mistakes.is_empty()) else {
            problem.set(Some(Problem::new(Code::Invalid).errors(mistakes)));
            return;
        };
        save.dispatch_local((name, secret));
    };
    let other = elsewhere(problem, &["/username", "/password", "/display_name", "/email", "/roles", "/slack_user_id"]);
    let wrong_roles = mistake_at(problem, "/roles");
    view! {
        <form class="in" on:submit=move |event| { event.prevent_default(); send(); } novalidate>
            {new.then(|| view! { <Field label="Username" hint="Cannot be changed later: a-z, 0-9, and . _ - inside." value=username problem path="/username"/> })}
            <div class="two">
                <Field label="Name" value=display_name problem path="/display_name"/>
                <Field label="E-mail" kind="email" value=email problem path="/email"/>
            </div>
            <RoleSubset legend="System roles" offered=SYSTEM.map(|(role, _)| role.to_owned()).into() roles/>
            <OwnRoles roles known/>
            <span class="mistake">{wrong_roles}</span>
            {if new {
                view! { <Field label="Password" hint="At least 12 characters. Give it to them in person." kind="password" complete="new-password" value=password problem path="/password"/> }.into_any()
            } else {
                view! {
                    <details class="fold"><summary>"New password"<span class="muted">"ends all their sessions and tokens"</span></summary>
                        <Field label="New password" hint="At least 12 characters." kind="password" complete="new-password" value=password problem path="/password"/></details>
                    <details class="fold"><summary>"Second factor"<span class="muted">"when their device is lost"</span></summary>
                        <button type="button" class="b" on:click=move |_| remove_factor.run(())>"Remove it…"</button></details>
                    <details class="fold"><summary>"Tokens"<span class="muted">"of their programs"</span></summary>
                        <button type="button" class="b" on:click=move |_| show_tokens.run(())>"Show them…"</button></details>
                    {(!own).then(|| view! { <SlackMember value=slack problem/> })}
                    <CheckBox label="May log in"
                        hint=if own { "This is your own account: you would lock yourself out." } else { "If you turn it off, their sessions and tokens end. Their decisions stay in the audit log." }
                        on=active set=move |on| active.set(on)/>
                }.into_any()
            }}
            {move || other().map(|why| view! { <p class="banner stop" role="alert">{why}</p> })}
            <div class="actions"><Button class="b primary" off=busy>{move || if busy.get() { "Saving…" } else if new { "Add" } else { "Save" }}</Button></div>
        </form>
    }
}

/// The member ID in Slack of another person. Only admins set it: nothing proves whose it is, and what the member presses
/// counts as the person's decision. Shows nothing if the server has no Slack.
#[component]
fn SlackMember(value: RwSignal<String>, problem: RwSignal<Option<Problem>>) -> impl IntoView {
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
