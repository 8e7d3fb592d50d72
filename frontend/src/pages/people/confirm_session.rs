//! Asks people to confirm that it is they, where the server says that their login is too long ago.

use leptos::prelude::*;
use shared::error::Problem;
use shared::single_sign_on::BEGIN;

use super::{Field, elsewhere};
use crate::client::{Session, use_api};
use crate::components::button::Button;
use crate::components::dialog::Dialog;
use crate::components::notice::Notifier;

/// The dialog that opens when the server refuses a request until the person has confirmed that it is they.
#[component]
pub fn ConfirmSession() -> impl IntoView {
    let session = expect_context::<Session>();
    let open = RwSignal::new(false);
    Effect::new(move |_| {
        if session.unconfirmed.get() {
            session.unconfirmed.set(false);
            open.set(true);
        }
    });
    view! {
        <Dialog open title="Confirm that it is you">
            <ConfirmForm open/>
        </Dialog>
    }
}

#[component]
fn ConfirmForm(open: RwSignal<bool>) -> impl IntoView {
    let api = use_api();
    let session = expect_context::<Session>();
    let notices = expect_context::<Notifier>();
    let password = RwSignal::new(String::new());
    let problem = RwSignal::new(None::<Problem>);
    let confirm = Action::new_local(move |(): &()| {
        problem.set(None);
        let typed = password.get_untracked();
        async move {
            match api.confirm_session(typed).await {
                Ok(()) => {
                    notices.good("Confirmed. You can continue now.");
                    // The page may have been left meanwhile.
                    let _ = open.try_set(false);
                }
                Err(refused) => problem.set(Some(refused)),
            }
        }
    });
    let other = elsewhere(problem, &["/password"]);
    let why = "This gives a person or a program access, and you logged in some time ago.";
    if session.me.with_untracked(|me| me.as_ref().is_some_and(|me| me.single_sign_on)) {
        let location = window().location();
        let here = [location.pathname(), location.search()].map(Result::unwrap_or_default).concat();
        let begin = format!("{BEGIN}?next={}", js_sys::encode_uri_component(&here));
        return view! {
            <div class="in">
                <p>{why}</p>
                <div class="actions"><a class="b primary" href=begin target="_self" rel="external">"Log in again"</a></div>
            </div>
        }
        .into_any();
    }
    view! {
        <form class="in" on:submit=move |event| { event.prevent_default(); confirm.dispatch_local(()); } novalidate>
            <p>{why}</p>
            <Field label="Your password" kind="password" complete="current-password" value=password problem path="/password"/>
            {move || other().map(|why| view! { <p class="banner stop" role="alert">{why}</p> })}
            <div class="actions"><Button class="b primary" off=confirm.pending()>"Confirm"</Button></div>
        </form>
    }
    .into_any()
}
