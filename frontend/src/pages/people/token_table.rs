//! Tokens as a table, of the person or, for admins, of somebody else: the purpose, roles, last use and expiry of each,
//! and a button that revokes it.

use leptos::prelude::*;
use shared::api::Token;

use super::roles::role_tags;
use crate::client::{Live, use_api};
use crate::components::confirm::Confirm;
use crate::components::inert::inert;
use crate::components::notice::Notifier;
use crate::components::time::{Ago, full};
use crate::state::words;

#[component]
pub fn TokenTable(
    tokens: Vec<Token>,
    /// Called once a token was revoked, or could not be.
    revoked: Callback<()>,
) -> impl IntoView {
    let api = use_api();
    let live = expect_context::<Live>();
    let notices = expect_context::<Notifier>();
    let revoking = RwSignal::new(None::<Token>);
    let asking = RwSignal::new(false);
    let revoke = move || {
        let token = revoking.get_untracked();
        async move {
            let Some(Token { id, name, .. }) = token else { return Ok(()) };
            let answer = api.revoke_token(id).await;
            if answer.is_ok() {
                notices.good(format!("Token “{name}” revoked."));
            }
            // The page may have been left meanwhile.
            revoked.try_run(());
            answer
        }
    };
    let row = move |token: Token| {
        let expires = token.expires_at;
        let until = move || {
            let Some(at) = expires else { return view! { <span class="muted">"never"</span> }.into_any() };
            match words::left(live.now.get(), at) {
                Some(left) => view! { <span title=full(at)>"in "{left}</span> }.into_any(),
                None => view! { <span class="tag stop">"expired"</span> }.into_any(),
            }
        };
        let used = match token.last_used_at {
            Some(at) => view! { <Ago at/> }.into_any(),
            None => view! { <span class="muted">"never"</span> }.into_any(),
        };
        let (name, asked) = (token.name.clone(), token.clone());
        view! {
            <tr>
                <td class="person-name"><b>{inert(&token.name)}</b><span class="sub mono">{token.id.to_string()}</span></td>
                <td><span class="role-tags">{role_tags(&token.roles)}{token.roles.is_empty().then(|| view! { <span class="muted">"none"</span> })}</span></td>
                <td class="soft nowrap" data-label="created"><Ago at=token.created_at/></td>
                <td class="soft nowrap" data-label="last used">{used}</td>
                <td class="soft nowrap" data-label="expires">{until}</td>
                <td class="num"><button class="b sm stop" aria-label=format!("Revoke {name}") on:click=move |_| { revoking.set(Some(asked.clone())); asking.set(true); }>"Revoke"</button></td>
            </tr>
        }
    };
    view! {
        <div class="card"><table class="table people-table">
            <thead><tr><th>"For"</th><th>"Roles"</th><th>"Created"</th><th>"Last used"</th><th>"Expires"</th><th><span class="sr">"Revoke"</span></th></tr></thead>
            <tbody>{tokens.into_iter().map(row).collect_view()}</tbody>
        </table></div>
        <Confirm open=asking title="Revoke this token?" keep="Keep it" act="Revoke" failed="Not revoked." does=revoke>
            <p>{move || revoking.get().map(|token| format!("Programs that use “{}” are refused from now on. This cannot be undone.", token.name))}</p>
        </Confirm>
    }
}
