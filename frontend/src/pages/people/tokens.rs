//! The person's tokens: the purpose, roles and expiry of each.

use leptos::prelude::*;
use shared::api::Token;

use super::roles::role_tags;
use super::token_form::TokenForm;
use crate::client::{Live, use_api};
use crate::components::confirm::Confirm;
use crate::components::dialog::Dialog;
use crate::components::inert::inert;
use crate::components::notice::Notifier;
use crate::components::states::{Empty, Loaded};
use crate::components::time::{Ago, full};
use crate::state::words;

/// The list of tokens. `adding` opens the form for a new one.
#[component]
pub fn Tokens(adding: RwSignal<bool>) -> impl IntoView {
    let api = use_api();
    let live = Live::expect();
    let notices = Notifier::expect();
    let tokens = LocalResource::new(move || async move { api.tokens().await.map(|page| page.items) });
    let revoking = RwSignal::new(None::<Token>);
    let asking = RwSignal::new(false);
    let revoke = Action::new_local(move |token: &Token| {
        let (id, name) = (token.id, token.name.clone());
        async move {
            match api.revoke_token(id).await {
                Ok(()) => notices.good(format!("Token “{name}” revoked.")),
                Err(problem) => notices.bad(format!("Not revoked. {problem}")),
            }
            asking.set(false);
            tokens.refetch();
        }
    });
    let row = move |token: Token| {
        let expires = token.expires_at;
        let until = move || {
            let Some(at) = expires else { return view! { <span class="muted">"never"</span> }.into_any() };
            match words::left(live.now.get(), at) {
                Some(left) => view! { <span title=full(at)>"in "{left}</span> }.into_any(),
                None => view! { <span class="tag stop">"expired"</span> }.into_any(),
            }
        };
        let (name, asked) = (token.name.clone(), token.clone());
        view! {
            <tr>
                <td class="person-name"><b>{inert(&token.name)}</b><span class="sub mono">{token.id.to_string()}</span></td>
                <td><span class="role-tags">{role_tags(&token.roles)}{token.roles.is_empty().then(|| view! { <span class="muted">"none"</span> })}</span></td>
                <td class="soft nowrap" data-label="created"><Ago at=token.created_at/></td>
                <td class="soft nowrap" data-label="expires">{until}</td>
                <td class="num"><button class="b sm stop" aria-label=format!("Revoke {name}") on:click=move |_| { revoking.set(Some(asked.clone())); asking.set(true); }>"Revoke"</button></td>
            </tr>
        }
    };
    // Whether the open dialog shows the secret of a new token.
    let is_made = RwSignal::new(false);
    Effect::new(move |_| {
        if !adding.get() {
            is_made.set(false);
        }
    });
    let creating = RwSignal::new(false);
    let confirmed = Callback::new(move |()| {
        if let Some(token) = revoking.get_untracked() {
            revoke.dispatch_local(token);
        }
    });
    let title = Signal::derive(move || if is_made.get() { "Token created" } else { "Create token" }.to_owned());
    let made = Callback::new(move |()| {
        is_made.set(true);
        tokens.refetch();
    });
    view! {
        <p class="soft lead">"A program with a token acts as you, with the roles that you give it. Send it as "<code>"Authorization: Bearer …"</code>"."</p>
        <Loaded from=tokens failed="Your tokens could not be loaded" rows=4 let:tokens>
            {if tokens.is_empty() {
                view! {
                    <Empty icon=icondata::LuKeyRound title="You have no tokens">
                        <p>"Create one for each program, so that you can revoke one without stopping the others."</p>
                        <button class="b primary" on:click=move |_| adding.set(true)>"Create token"</button>
                    </Empty>
                }
                .into_any()
            } else {
                view! {
                    <div class="card"><table class="table people-table">
                        <thead><tr><th>"For"</th><th>"Roles"</th><th>"Created"</th><th>"Expires"</th><th><span class="sr">"Revoke"</span></th></tr></thead>
                        <tbody>{tokens.into_iter().map(row).collect_view()}</tbody>
                    </table></div>
                }
                .into_any()
            }}
        </Loaded>
        <Dialog open=adding title=title stay=creating><TokenForm open=adding creating made/></Dialog>
        <Confirm open=asking title="Revoke this token?" keep="Keep it" act="Revoke" busy=revoke.pending() confirmed>
            <p>{move || revoking.get().map(|token| format!("Programs that use “{}” are refused from now on. This cannot be undone.", token.name))}</p>
        </Confirm>
    }
}
