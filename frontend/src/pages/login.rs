//! Logging in: with a password, or with the one-time secret of a link (`/login#token=…`).

use crate::client::address::{NavigateOptions, use_location, use_navigate, use_query_map};
use leptos::html;
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::api::LoginRequest;
use shared::error::Code;

use crate::client::{Session, use_api};
use crate::components::glyph::Glyph;

/// What somebody reads whose session ended while they worked.
const ENDED: &str = "Your session has ended. What you wrote is kept: log in, and go on where you were.";

/// Logging in.
#[component]
pub fn LoginPage() -> impl IntoView {
    let api = use_api();
    let session = Session::expect();
    let navigate = use_navigate();
    let query = use_query_map();
    let location = use_location();
    let username = RwSignal::new(String::new());
    let password = RwSignal::new(String::new());
    let busy = RwSignal::new(false);
    let ended = query.with_untracked(|query| query.get("ended"));
    let trouble = RwSignal::new(ended.map(|_| ENDED.to_owned()));
    let first = NodeRef::<html::Input>::new();
    let next = move || next_page(query.with_untracked(|query| query.get("next")));

    let enter = move |login: LoginRequest| {
        busy.set(true);
        trouble.set(None);
        let link = matches!(login, LoginRequest::Link { .. });
        spawn_local(async move {
            match api.login(&login).await {
                Ok(user) => {
                    session.entered(user);
                    navigate(&next(), NavigateOptions { replace: true, scroll: true });
                }
                Err(problem) => trouble.set(Some(match problem.code {
                    Code::Unauthenticated if link => {
                        "This link was used before, or is too old. Ask for a new one.".to_owned()
                    }
                    Code::Unauthenticated => "The name or the password is not right.".to_owned(),
                    _ => problem.to_string(),
                })),
            }
            busy.set(false);
        });
    };

    // The secret stands in the fragment, which is never sent; it is redeemed here and taken out of the address.
    let fragment = location.hash.get_untracked();
    let secret =
        fragment.trim_start_matches('#').split('&').find_map(|pair| pair.strip_prefix("token=")).map(str::to_owned);
    let linked = secret.is_some();
    if let Some(token) = secret {
        if let Ok(history) = window().history() {
            let search = location.search.get_untracked();
            let mark = if search.is_empty() { "" } else { "?" };
            let clean = format!("{}{mark}{search}", location.pathname.get_untracked());
            drop(history.replace_state_with_url(&wasm_bindgen::JsValue::NULL, "", Some(&clean)));
        }
        enter(LoginRequest::Link { token });
    } else {
        let navigate = use_navigate();
        // Somebody who is logged in already has nothing to do here.
        spawn_local(async move {
            if let (false, Ok(user)) = (session.signed_out.get_untracked(), api.me().await) {
                session.entered(user);
                navigate(&next(), NavigateOptions { replace: true, scroll: true });
            }
        });
    }
    Effect::new(move |_| {
        if let Some(field) = first.get() {
            drop(field.focus());
        }
    });
    let submit = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        if !busy.get_untracked() {
            let (username, password) = (username.get_untracked().trim().to_owned(), password.get_untracked());
            enter(LoginRequest::Password { username, password });
        }
    };
    let opening = move || linked && busy.get();
    view! {
        <main class="login">
            <form class="card" on:submit=submit aria-busy=move || busy.get().to_string()>
                <span class="mark" aria-hidden="true"></span>
                <h1>"Countersign"</h1>
                <Show
                    when=move || !opening()
                    fallback=|| view! { <p class="soft" role="status">"Opening your link…"</p> }
                >
                    <Show when=move || trouble.with(Option::is_some)>
                        <p class="banner stop" role="alert">
                            <Glyph icon=icondata::LuTriangleAlert />
                            <span>{move || trouble.get()}</span>
                        </p>
                    </Show>
                    <div class="field">
                        <label for="username">"Username"</label>
                        <input
                            node_ref=first
                            id="username"
                            class="input"
                            autocomplete="username"
                            autocapitalize="none"
                            spellcheck="false"
                            required
                            prop:value=move || username.get()
                            on:input=move |event| username.set(event_target_value(&event))
                        />
                    </div>
                    <div class="field">
                        <label for="password">"Password"</label>
                        <input
                            id="password"
                            type="password"
                            class="input"
                            autocomplete="current-password"
                            required
                            prop:value=move || password.get()
                            on:input=move |event| password.set(event_target_value(&event))
                        />
                    </div>
                    <button class="b primary" disabled=move || busy.get()>
                        {move || if busy.get() { "Logging in…" } else { "Log in" }}
                    </button>
                </Show>
            </form>
        </main>
    }
}

/// Where to go after logging in: a page of this console, never another site.
fn next_page(next: Option<String>) -> String {
    let own = |next: &String| {
        next.starts_with('/') && !next.starts_with("//") && !next.contains('\\') && !next.starts_with("/login")
    };
    next.filter(own).unwrap_or_else(|| "/inbox".to_owned())
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
