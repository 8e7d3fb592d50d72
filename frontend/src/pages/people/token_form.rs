//! Creates a token, and shows its secret once.

use std::collections::BTreeSet;
use std::time::Duration;

use leptos::prelude::*;
use shared::access::{ASKER, Act, Principal, access};
use shared::api::{NewToken, Token};
use shared::error::Problem;

use super::roles::RoleSubset;
use super::{Field, elsewhere, mistake_at};
use crate::client::{Live, Session, to_show, use_api};
use crate::components::button::Button;
use crate::components::copy::CopyButton;
use crate::components::menu::menu;

/// The lifetimes of a token: label and days, or `None` for no expiry.
const TERMS: [(&str, Option<u64>); 4] =
    [("30 days", Some(30)), ("90 days", Some(90)), ("1 year", Some(365)), ("until it is revoked", None)];

/// The form, and after that the secret.
#[component]
pub fn TokenForm(
    open: RwSignal<bool>,
    /// Set to whether a token is being created, whose secret will be shown here.
    creating: RwSignal<bool>,
    /// Called once a token was created.
    made: Callback<()>,
) -> impl IntoView {
    let api = use_api();
    let live = expect_context::<Live>();
    let session = expect_context::<Session>();
    let name = RwSignal::new(String::new());
    let roles = RwSignal::new(BTreeSet::<String>::new());
    let term = RwSignal::new(1_usize);
    let problem = RwSignal::new(None::<Problem>);
    let token = RwSignal::new(None::<Token>);
    let create = Action::new_local(move |request: &NewToken| {
        let request = request.clone();
        problem.set(None);
        creating.set(true);
        async move {
            let answer = api.create_token(&request).await;
            // Does nothing if the page is gone.
            let _ = creating.try_set(false);
            match answer {
                Ok(answer) => {
                    token.set(Some(answer));
                    // Does nothing if the page is gone.
                    made.try_run(());
                }
                Err(refused) => problem.set(to_show(refused)),
            }
        }
    });
    // A token may have the roles that another one includes without that one.
    let offered: BTreeSet<String> = untrack(|| session.principal()).map_or_else(BTreeSet::new, |me| {
        let included = me.included_roles().iter().map(|&role| role.to_owned());
        me.roles.iter().cloned().chain(included).collect()
    });
    // A token without a role is of no use, so the only one is ticked. Most programs of people who may ask only ask.
    let only = offered.first().filter(|_| offered.len() == 1);
    roles.set(offered.get(ASKER).or(only).cloned().into_iter().collect());
    let offered: Vec<String> = offered.into_iter().collect();
    let send = move || {
        let name = name.get_untracked().trim().to_owned();
        if name.is_empty() {
            problem.set(Some(Problem::invalid("/name", "Say what it is for.")));
            return;
        }
        if roles.with_untracked(BTreeSet::is_empty) {
            problem
                .set(Some(Problem::invalid("/roles", "Choose at least one: without a role, a token may do nothing.")));
            return;
        }
        let days = TERMS.get(term.get_untracked()).and_then(|(_, days)| *days);
        let expires_at = days.map(|days| live.server_now().after(Duration::from_secs(days * 86_400)));
        let request = NewToken { name, roles: roles.get_untracked().into_iter().collect(), expires_at };
        create.dispatch_local(request);
    };
    let wrong_roles = mistake_at(problem, "/roles");
    let other = elsewhere(problem, &["/name", "/roles"]);
    let offered = StoredValue::new(offered);
    let form = move || {
        view! {
            <form class="in" on:submit=move |event| { event.prevent_default(); send(); }>
                <Field label="What is it for?" placeholder="for example nightly import" value=name problem path="/name"/>
                <RoleSubset legend="Roles" offered=offered.get_value() roles/>
                <span class="mistake">{wrong_roles}</span>
                {menu("Expires", TERMS.map(|(words, _)| words), term.get_untracked(), move |at| term.set(at))}
                {move || other().map(|why| view! { <p class="banner stop" role="alert">{why}</p> })}
                <div class="actions"><Button class="b primary" off=create.pending()>"Create token"</Button></div>
            </form>
        }
    };
    move || match token.get() {
        Some(token) => view! { <Secret token open/> }.into_any(),
        None => form().into_any(),
    }
}

/// A first request with a token, ready for a terminal, after what it does. Not every program may ask people.
fn first_request(origin: &str, secret: &str, may_ask: bool) -> (&'static str, String) {
    let send = |url: &str| format!("curl \"{origin}{url}\" \\\n  -H \"Authorization: Bearer {secret}\"");
    if !may_ask {
        return ("Try it in a terminal: this lists what waits for a decision.", send("/api/v1/reviews?status=pending"));
    }
    let question = r#"{"kind": "clarification", "question": "Can you read this?", "options": [{"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"}]}"#;
    let asks = format!("{} -H \"Content-Type: application/json\" \\\n  -d '{question}'", send("/api/v1/reviews"));
    ("Try it in a terminal: this asks your first question, which then appears in the inbox.", asks)
}

/// The secret of the new token, with a button to copy it, and a first request with it.
#[component]
fn Secret(token: Token, open: RwSignal<bool>) -> impl IntoView {
    let secret = token.secret.unwrap_or_default();
    let origin = window().location().origin().unwrap_or_default();
    let principal = Principal::new(token.owner.clone(), token.roles.iter().cloned().collect());
    let may_ask = access(&principal, Act::Ask).is_allowed();
    let (does, request) = first_request(&origin, &secret, may_ask);
    let shown = request.clone();
    view! {
        <div class="in">
            <p>"This is the secret of "<b>{token.name}</b>". It is shown only now: copy it to where it is needed."</p>
            <div class="secret">
                <code>{secret.clone()}</code>
                <CopyButton text=secret class="b" around=".secret" shown="code"/>
            </div>
            <p>{does}</p>
            <div class="secret first">
                <pre>{shown}</pre>
                <CopyButton text=request class="b" around=".secret.first" shown="pre"/>
            </div>
            <p class="hint"><a href="/api/openapi.json" target="_blank" rel="noopener">"Every request of this server"</a>", as OpenAPI"</p>
            <div class="actions"><button class="b primary" on:click=move |_| open.set(false)>"Done"</button></div>
        </div>
    }
}
