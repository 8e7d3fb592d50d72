//! The fields of the page `/login`: username and password, a confirmation for a login link, or a code.

use leptos::html;
use leptos::prelude::*;
use shared::api::User;

/// The fields of the current step.
#[component]
pub fn Fields(
    /// The code of the second factor; `None` until it is asked for.
    code: RwSignal<Option<String>>,
    /// The secret of the login link that was followed, and its owner.
    linked: RwSignal<Option<(String, User)>>,
    /// The person who is logged in already, if any.
    now: RwSignal<Option<User>>,
    /// The first field, for the focus.
    first: NodeRef<html::Input>,
    username: RwSignal<String>,
    password: RwSignal<String>,
) -> impl IntoView {
    // A memo, so that the field is not created again while its text changes.
    let asks_code = Memo::new(move |_| code.with(Option::is_some));
    move || {
        if asks_code.get() {
            return view! {
                <div class="field">
                    <label for="code">"Confirmation code"</label>
                    <p class="hint">"From your authenticator app, or one of your recovery codes."</p>
                    <input id="code" class="input" autocomplete="one-time-code" autofocus required
                        prop:value=move || code.get().unwrap_or_default()
                        on:input=move |event| code.set(Some(event_target_value(&event)))/>
                </div>
            }
            .into_any();
        }
        match linked.with(|linked| linked.as_ref().map(|(_, owner)| owner.clone())) {
            Some(owner) => {
                let name = owner.display_name.unwrap_or_else(|| owner.username.to_string());
                let before = now.get().filter(|me| me.username != owner.username).map(|me| {
                    view! { <p class="banner stop">{format!("You are logged in as {} now. This link logs you in as somebody else.", me.username)}</p> }
                });
                view! { <p>{format!("This link logs you in as {name} ({}).", owner.username)}</p>{before} }.into_any()
            }
            None => password_fields(first, username, password),
        }
    }
}

fn password_fields(first: NodeRef<html::Input>, username: RwSignal<String>, password: RwSignal<String>) -> AnyView {
    view! {
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
                bind:value=username
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
                bind:value=password
            />
        </div>
    }
    .into_any()
}
