//! The person's tokens, and for admins those of somebody else.

use leptos::prelude::*;
use shared::id::Username;

use super::token_form::TokenForm;
use super::token_table::TokenTable;
use crate::client::use_api;
use crate::components::dialog::Dialog;
use crate::components::states::{Empty, Loaded};

/// The list of tokens. `adding` opens the form for a new one.
#[component]
pub fn Tokens(adding: RwSignal<bool>) -> impl IntoView {
    let api = use_api();
    let tokens = LocalResource::new(move || async move { api.tokens().await.map(|page| page.items) });
    let read_again = Callback::new(move |()| tokens.refetch());
    // Whether the open dialog shows the secret of a new token.
    let is_made = RwSignal::new(false);
    Effect::new(move |_| {
        if !adding.get() {
            is_made.set(false);
        }
    });
    let creating = RwSignal::new(false);
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
                view! { <TokenTable tokens revoked=read_again/> }.into_any()
            }}
        </Loaded>
        <Dialog open=adding title=title stay=creating><TokenForm open=adding creating made/></Dialog>
    }
}

/// The tokens of another person, for admins.
#[component]
pub fn TokensOf(owner: Username) -> impl IntoView {
    let api = use_api();
    let owner = StoredValue::new(owner);
    let tokens =
        LocalResource::new(move || async move { api.tokens_of(&owner.get_value()).await.map(|page| page.items) });
    let read_again = Callback::new(move |()| tokens.refetch());
    view! {
        <Loaded from=tokens failed="The tokens could not be loaded" rows=2 let:tokens>
            {if tokens.is_empty() {
                view! { <p class="muted small">"No tokens."</p> }.into_any()
            } else {
                view! { <TokenTable tokens revoked=read_again/> }.into_any()
            }}
        </Loaded>
    }
}
