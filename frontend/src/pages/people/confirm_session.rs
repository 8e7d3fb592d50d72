//! Asks people to confirm that it is they, where the server says that their login is too long ago.

use leptos::prelude::*;
use shared::api::SessionConfirmation;
use shared::error::{ConfirmWith, Problem};
use shared::single_sign_on::BEGIN;

use super::{Field, elsewhere};
use crate::client::{Session, use_api};
use crate::components::button::Button;
use crate::components::dialog::Dialog;
use crate::components::notice::Notifier;

const WHY: &str = "This change needs a recent login, and yours was some time ago.";

/// The dialog that opens when the server refuses a request until the person has confirmed that it is they.
#[component]
pub fn ConfirmSession() -> impl IntoView {
    let session = expect_context::<Session>();
    let open = RwSignal::new(false);
    let with = RwSignal::new(ConfirmWith::Password);
    Effect::new(move |_| {
        if let Some(asked) = session.unconfirmed.get() {
            session.unconfirmed.set(None);
            with.set(asked);
            open.set(true);
        }
    });
    // An answer that comes after the page was left belongs to a form that is gone.
    on_cleanup(move || session.unconfirmed.set(None));
    view! {
        <Dialog open title="Confirm that it is you">
            {move || match with.get() {
                ConfirmWith::Password => view! { <ConfirmForm open has_code=false/> }.into_any(),
                ConfirmWith::PasswordAndCode => view! { <ConfirmForm open has_code=true/> }.into_any(),
                ConfirmWith::SingleSignOn => view! { <SignInAgain/> }.into_any(),
                ConfirmWith::Link => view! { <NoPassword open/> }.into_any(),
            }}
        </Dialog>
    }
}

#[component]
fn ConfirmForm(open: RwSignal<bool>, has_code: bool) -> impl IntoView {
    let api = use_api();
    let notices = expect_context::<Notifier>();
    let (password, code) = (RwSignal::new(String::new()), RwSignal::new(String::new()));
    let problem = RwSignal::new(None::<Problem>);
    let confirm = Action::new_local(move |(): &()| {
        problem.set(None);
        let code = has_code.then(|| code.get_untracked());
        let given = SessionConfirmation { password: password.get_untracked(), code };
        async move {
            match api.confirm_session(&given).await {
                Ok(()) => {
                    notices.good("Confirmed. You can continue now.");
                    // The page may have been left meanwhile.
                    let _ = open.try_set(false);
                }
                Err(refused) => problem.set(Some(refused)),
            }
        }
    });
    let other = elsewhere(problem, if has_code { &["/password", "/code"] } else { &["/password"] });
    view! {
        <form class="in" on:submit=move |event| { event.prevent_default(); confirm.dispatch_local(()); } novalidate>
            <p>{WHY}</p>
            <Field label="Your password" kind="password" complete="current-password" value=password problem path="/password"/>
            {has_code.then(|| view! {
                <Field label="Code of your second factor" hint="Or one of your recovery codes." complete="one-time-code" value=code problem path="/code"/>
            })}
            {move || other().map(|why| view! { <p class="banner stop" role="alert">{why}</p> })}
            <div class="actions"><Button class="b primary" off=confirm.pending()>"Confirm"</Button></div>
        </form>
    }
}

/// For people who log in with an identity provider, which asks them again who they are.
#[component]
fn SignInAgain() -> impl IntoView {
    let location = window().location();
    let here = [location.pathname(), location.search()].map(Result::unwrap_or_default).concat();
    let begin = format!("{BEGIN}?again=true&next={}", js_sys::encode_uri_component(&here));
    view! {
        <div class="in">
            <p>{WHY} " You come back to this page afterwards; what you have typed in it is not kept."</p>
            <div class="actions"><a class="b primary" href=begin target="_self" rel="external">"Log in again"</a></div>
        </div>
    }
}

/// For people who have no password: they log in by links only.
#[component]
fn NoPassword(open: RwSignal<bool>) -> impl IntoView {
    let session = expect_context::<Session>();
    let name = session.username().map(|name| name.to_string()).unwrap_or_default();
    view! {
        <div class="in">
            <p>{WHY} " You have no password to confirm with."</p>
            <p>"Open a new login link, which this command prints on the server:"</p>
            <p><code>{format!("countersign user link {name}")}</code></p>
            <p>"Or set a password, so that you need no link next time:"</p>
            <p><code>{format!("countersign user password {name} ")}<span class="nowrap">"--password-stdin"</span></code></p>
            <div class="actions"><button class="b" type="button" on:click=move |_| open.set(false)>"Close"</button></div>
        </div>
    }
}
