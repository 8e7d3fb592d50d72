//! Logging in: with a password, with the one-time secret of a link (`/login#token=…`), or by the identity provider.

mod fields;
mod refusal;

use leptos::html;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_location, use_navigate, use_query_map};
use leptos_router::location::Location;
use shared::api::{LoginRequest, User};
use shared::error::{Code, Problem};
use shared::single_sign_on::{BEGIN, Trouble, is_own_page};

use self::fields::Fields;
use self::refusal::{LINK_USED, why_not, why_refused};
use crate::client::{Session, Workspace, insist, use_api};
use crate::components::arrival;
use crate::components::button::Button;
use crate::components::focus::focus_on;
use crate::components::glyph::Glyph;
use crate::state::drafts::Drafts;
use crate::state::reconnect::is_passing;

/// The page `/login`: password, second factor, and single sign-on if the server offers it.
#[component]
pub fn LoginPage() -> impl IntoView {
    let api = use_api();
    let session = expect_context::<Session>();
    arrival::title(|| "Log in".to_owned());
    let navigate = use_navigate();
    let query = use_query_map();
    let location = use_location();
    let ended = query.with_untracked(|query| query.get("ended")).is_some();
    // After a session has ended, the username is filled in; somebody else may replace it.
    let workspace = expect_context::<Workspace>();
    let known = workspace.owner().filter(|_| ended).map(|owner| owner.to_string());
    let username = RwSignal::new(known.unwrap_or_default());
    let password = RwSignal::new(String::new());
    let refused = query.with_untracked(|query| query.get("trouble")).and_then(|word| Trouble::of_word(&word));
    let error = RwSignal::new(refused.map(|error| why_refused(error).to_owned()));
    // The label of the identity provider; `None` without single sign-on.
    let provider = RwSignal::new(None::<String>);
    spawn_local(async move {
        if let Ok(ways) = insist(async || api.login_ways().await, |_| !provider.is_disposed()).await {
            // Does nothing if the page is gone.
            let _ = provider.try_set(ways.single_sign_on);
        }
    });
    let first = NodeRef::<html::Input>::new();
    let now = RwSignal::new(None::<User>);
    let next = move || next_page(query.with_untracked(|query| query.get("next")));

    // The secret of the login link with its owner, and the code of the second factor once it is asked for.
    let linked = RwSignal::new(None::<(String, User)>);
    let code = RwSignal::new(None::<String>);
    let owner = move || linked.with(|linked| linked.as_ref().map(|(_, owner)| owner.clone()));
    let enter = {
        let navigate = navigate.clone();
        Action::new_local(move |(): &()| {
            error.set(None);
            let code_now = code.get_untracked();
            let asked = code_now.is_some();
            let login = if let Some((token, _)) = linked.get_untracked() {
                LoginRequest::Link { token, code: code_now }
            } else {
                let (username, password) = (username.get_untracked().trim().to_owned(), password.get_untracked());
                LoginRequest::Password { username, password, code: code_now }
            };
            let link = matches!(login, LoginRequest::Link { .. });
            let (navigate, next) = (navigate.clone(), next());
            async move {
                match api.login(&login).await {
                    Ok(user) => {
                        session.entered(user);
                        navigate(&next, NavigateOptions { replace: true, ..NavigateOptions::default() });
                    }
                    Err(problem) if problem.code == Code::SecondFactorRequired => code.set(Some(String::new())),
                    Err(problem) => error.set(Some(why_not(&problem, asked, link))),
                }
            }
        })
    };
    let busy = enter.pending();

    let secret = take_secret(&location);
    let opening = RwSignal::new(secret.is_some());
    if let Some(token) = secret {
        // Somebody else may have sent the link, so the page names its owner and asks for confirmation.
        spawn_local(async move {
            let goes_on = |problem: &Problem| error.try_set(Some(problem.to_string())).is_none();
            match insist(async || api.link_owner(token.clone()).await, goes_on).await {
                Ok(owner) => {
                    error.set(None);
                    linked.set(Some((token, owner)));
                }
                Err(problem) if is_passing(&problem) => return,
                Err(_) => error.set(Some(LINK_USED.to_owned())),
            }
            if let Some(Ok(user)) = session.ask(api).await {
                now.set(Some(user));
            }
            opening.set(false);
        });
    } else {
        // A person who is logged in already is sent on.
        let next = next();
        spawn_local(async move {
            // `ask` returns `None` for an answer from before a login on this page.
            if !session.signed_out.get_untracked()
                && let Ok(Some(user)) =
                    insist(async || session.ask(api).await.transpose(), |_| !error.is_disposed()).await
                // The page may have been left during the last pause.
                && !error.is_disposed()
            {
                session.entered(user);
                navigate(&next, NavigateOptions { replace: true, ..NavigateOptions::default() });
            }
        });
    }
    Effect::new(move |_| match first.get() {
        Some(field) if username.with_untracked(String::is_empty) => drop(field.focus()),
        Some(_) => focus_on("#password"),
        None => {}
    });
    let how_ended = move || match (workspace.left.get(), workspace.drafts.with(Drafts::count)) {
        (true, _) => "You logged out in another tab.",
        (false, 0) => "Your session has ended. Log in to continue where you were.",
        (false, _) => "Your session has ended. Your drafts are kept: log in to continue where you were.",
    };
    let words = move || match (busy.get(), owner()) {
        (true, _) => "Logging in…".to_owned(),
        (false, Some(owner)) => format!("Log in as {}", owner.username),
        (false, None) => "Log in".to_owned(),
    };
    view! {
        <main class="login">
            <form class="card" on:submit=move |event| { event.prevent_default(); enter.dispatch_local(()); } aria-busy=move || busy.get().to_string()>
                <span class="mark" aria-hidden="true"></span>
                <h1>"Countersign"</h1>
                <Show when=move || error.with(Option::is_some)>
                    <p class="banner stop" role="alert">
                        <Glyph icon=icondata::LuTriangleAlert />
                        <span>{error}</span>
                    </p>
                </Show>
                <Show
                    when=move || !opening.get()
                    fallback=|| view! { <p class="soft" role="status">"Opening your link…"</p> }
                >
                    <Show when=move || ended && error.with(Option::is_none)>
                        <p class="banner warn" role="status">
                            <Glyph icon=icondata::LuInfo />
                            <span>{how_ended}</span>
                        </p>
                    </Show>
                    <Fields code linked now first username password />
                    <Button class="b primary" off=busy>
                        {words}
                    </Button>
                    {move || provider.get().map(|label| {
                        // Not a page of the console, so the browser must load it.
                        let begin = format!("{BEGIN}?next={}", js_sys::encode_uri_component(&next()));
                        view! { <a class="b" href=begin target="_self" rel="external">{format!("Log in with {label}")}</a> }
                    })}
                </Show>
            </form>
        </main>
    }
}

/// Takes the secret of a login link out of the address. It is in the fragment, which browsers never send.
fn take_secret(location: &Location) -> Option<String> {
    let fragment = location.hash.get_untracked();
    let secret = fragment.trim_start_matches('#').split('&').find_map(|pair| pair.strip_prefix("token="))?;
    if let Ok(history) = window().history() {
        let search = location.search.get_untracked();
        let mark = if search.is_empty() { "" } else { "?" };
        let clean = format!("{}{mark}{search}", location.pathname.get_untracked());
        drop(history.replace_state_with_url(&wasm_bindgen::JsValue::NULL, "", Some(&clean)));
    }
    Some(secret.to_owned())
}

/// The path to go to after logging in: a page of this console, never another site.
fn next_page(next: Option<String>) -> String {
    next.filter(|next| is_own_page(next)).unwrap_or_else(|| "/inbox".to_owned())
}

#[cfg(test)]
mod tests {
    use super::next_page;

    #[test]
    fn logging_in_leads_to_no_other_site() {
        for bad in ["//evil.example", "https://evil.example", "/\\evil.example", "/login?next=/x"] {
            assert_eq!(next_page(Some(bad.into())), "/inbox", "{bad}");
        }
        assert_eq!(next_page(Some("/reviews/1".into())), "/reviews/1");
    }
}
