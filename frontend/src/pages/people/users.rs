//! The list of users.

use std::collections::BTreeSet;

use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::api::User;

use super::confirmed::{Erase, RemoveFactor};
use super::roles::role_tags;
use super::tokens::TokensOf;
use super::user_form::UserForm;
use crate::client::{Session, use_api};
use crate::components::dialog::Dialog;
use crate::components::inert::inert;
use crate::components::states::Loaded;
use crate::components::time::Ago;

/// The list of users. `adding` opens the form for a new one.
#[component]
pub fn Users(adding: RwSignal<bool>) -> impl IntoView {
    let api = use_api();
    let session = expect_context::<Session>();
    let users = LocalResource::new(move || async move { api.users().await.map(|page| page.items) });
    let editing = RwSignal::new(None::<User>);
    let open = RwSignal::new(false);
    let (removing_factor, showing_tokens) = (RwSignal::new(false), RwSignal::new(false));
    let (erasing, asking) = (RwSignal::new(None::<User>), RwSignal::new(false));
    Effect::new(move |_| {
        if adding.get() {
            adding.set(false);
            editing.set(None);
            open.set(true);
        }
    });
    let known = Memo::new(move |_| -> BTreeSet<String> {
        users.with(|users| users.iter().flatten().flatten().flat_map(|user| user.roles.clone()).collect())
    });
    let done = Callback::new(move |user: User| {
        open.set(false);
        if session.me.with_untracked(|me| me.as_ref().is_some_and(|me| me.username == user.username)) {
            spawn_local(session.refresh(api));
        }
        users.refetch();
    });
    let row = move |user: User| {
        let (edited, gone) = (user.clone(), user.clone());
        // A user must be deactivated before being erased, and nobody is erased twice.
        let erase = (!user.active && !user.username.starts_with("erased-")).then(|| {
            view! { <button class="b sm stop" aria-label=format!("Erase personal data of {}", user.username) on:click=move |_| { erasing.set(Some(gone.clone())); asking.set(true); }>"Erase personal data…"</button>" " }
        });
        let name = user.display_name.clone().filter(|name| !name.is_empty());
        view! {
            <tr class:inactive=!user.active>
                <td class="person-name"><b>{inert(&name.unwrap_or_else(|| user.username.to_string()))}</b><span class="sub">{user.username.to_string()}{user.email.clone().filter(|email| !email.is_empty()).map(|email| format!(" · {email}"))}</span></td>
                <td><span class="role-tags">{role_tags(&user.roles)}</span></td>
                <td>{if user.active { view! { <span class="tag go">"active"</span> } } else { view! { <span class="tag">"deactivated"</span> } }}</td>
                <td class="soft nowrap" data-label="added"><Ago at=user.created_at/></td>
                <td class="num">{erase}<button class="b sm" aria-label=format!("Edit {}", user.username) on:click=move |_| { editing.set(Some(edited.clone())); open.set(true); }>"Edit"</button></td>
            </tr>
        }
    };
    let title = Signal::derive(move || {
        editing.with(|user| {
            user.as_ref().map_or_else(|| "Add a person".to_owned(), |user| format!("Edit {}", user.username))
        })
    });
    let tokens_title = Signal::derive(move || {
        editing.with(|user| user.as_ref().map_or_else(String::new, |user| format!("Tokens of {}", user.username)))
    });
    view! {
        <Loaded from=users failed="The list of people could not be loaded" let:users>
            <div class="card"><table class="table people-table">
                <thead><tr><th>"Name"</th><th>"Roles"</th><th>"Status"</th><th>"Added"</th><th><span class="sr">"Edit"</span></th></tr></thead>
                <tbody>{users.into_iter().map(row).collect_view()}</tbody>
            </table></div>
        </Loaded>
        <Dialog open title><UserForm user=editing.get_untracked() known done remove_factor=move |()| removing_factor.set(true) show_tokens=move |()| showing_tokens.set(true)/></Dialog>
        <Dialog open=showing_tokens title=tokens_title>
            <div class="in">{move || editing.get().map(|user| view! { <TokensOf owner=user.username/> })}</div>
        </Dialog>
        <RemoveFactor open=removing_factor who=editing/>
        <Erase open=asking who=erasing done=Callback::new(move |()| users.refetch())/>
    }
}
