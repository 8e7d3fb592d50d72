//! The person's password, sessions and second factor.

use leptos::prelude::*;
use shared::api::{NewPassword, NewSecondFactor, SecondFactorState, SessionInfo};
use shared::error::Problem;
use shared::id::SessionId;

use super::rows::{row, table};
use super::{CheckBox, Field, elsewhere};
use crate::client::{Session, to_show, use_api};
use crate::components::button::Button;
use crate::components::copy::CopyButton;
use crate::components::dialog::Dialog;
use crate::components::notice::Notifier;
use crate::components::states::Loaded;
use crate::components::time::day;

/// The tab with the person's password, second factor and sessions.
#[component]
pub fn Security() -> impl IntoView {
    let session = expect_context::<Session>();
    let has_none = Memo::new(move |_| session.me.with(|me| me.as_ref().is_some_and(|me| me.single_sign_on)));
    view! {
        <div class="security">
            <Show when=move || has_none.get() fallback=PasswordForm>
                <h2>"Password"</h2>
                <p>"You log in with your organisation's account, and have no password here."</p>
            </Show>
            <SecondFactor/>
            <Sessions/>
        </div>
    }
}

/// The browser and the operating system of a user agent, in a few words; unknown parts are left out.
fn short_agent(agent: &str) -> String {
    let named = |names: &[(&str, &str)]| {
        names.iter().find(|(mark, _)| agent.contains(mark)).map(|(_, name)| (*name).to_owned())
    };
    // The order matters, since most browsers include the names of older ones.
    let browser = named(&[
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
        ("curl/", "curl"),
    ]);
    let system = named(&[
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Windows", "Windows"),
        ("Mac OS X", "macOS"),
        ("Linux", "Linux"),
    ]);
    match (browser, system) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => "Another program".to_owned(),
    }
}

#[component]
fn PasswordForm() -> impl IntoView {
    let api = use_api();
    let notices = expect_context::<Notifier>();
    let (current, new) = (RwSignal::new(String::new()), RwSignal::new(String::new()));
    // Someone who changes their password because others may know it would otherwise forget the tokens.
    let end_tokens = RwSignal::new(true);
    let problem = RwSignal::new(None::<Problem>);
    let change = Action::new_local(move |(): &()| {
        problem.set(None);
        let end_tokens = end_tokens.get_untracked();
        let password = NewPassword { current: current.get_untracked(), new: new.get_untracked(), end_tokens };
        async move {
            match api.change_password(&password).await {
                Ok(()) => {
                    current.set(String::new());
                    new.set(String::new());
                    notices.good(if end_tokens {
                        "Your password was changed. Your other sessions and your tokens have ended."
                    } else {
                        "Your password was changed. Your other sessions have ended."
                    });
                }
                Err(refused) => problem.set(Some(refused)),
            }
        }
    });
    let other = elsewhere(problem, &["/current", "/new"]);
    view! {
        <h2>"Password"</h2>
        <form class="narrow" on:submit=move |event| { event.prevent_default(); change.dispatch_local(()); } novalidate>
            <Field label="Current password" kind="password" complete="current-password" value=current problem path="/current"/>
            <Field label="New password" hint="At least 12 characters. Several words in a row work well." kind="password" complete="new-password" value=new problem path="/new"/>
            <CheckBox label="End my tokens too" hint="Programs that use them are refused until you give them new ones."
                on=end_tokens set=move |on| end_tokens.set(on)/>
            {move || other().map(|why| view! { <p class="banner stop" role="alert">{why}</p> })}
            <div class="actions"><Button class="b" off=change.pending()>"Change password"</Button></div>
        </form>
    }
}

/// A step of setting up the second factor.
#[derive(Clone)]
enum SetupStep {
    Confirm(NewSecondFactor),
    Recovery(Vec<String>),
}

#[component]
fn SecondFactor() -> impl IntoView {
    let api = use_api();
    let session = expect_context::<Session>();
    let has_password = Memo::new(move |_| session.me.with(|me| me.as_ref().is_none_or(|me| !me.single_sign_on)));
    let known = LocalResource::new(move || async move { api.second_factor().await });
    // The current step; `None` unless it is being set up.
    let step = RwSignal::new(None::<SetupStep>);
    let (code, password) = (RwSignal::new(String::new()), RwSignal::new(String::new()));
    let problem = RwSignal::new(None::<Problem>);
    let take = move |answer: Result<Option<SetupStep>, Problem>| match answer {
        Ok(next) => {
            code.set(String::new());
            password.set(String::new());
            if next.is_none() {
                known.refetch();
            }
            step.set(next);
        }
        Err(refused) => problem.set(to_show(refused)),
    };
    // Confirms or removes the second factor with the typed code.
    let with_code = Action::new_local(move |confirm: &bool| {
        problem.set(None);
        let (confirm, typed) = (*confirm, code.get_untracked());
        async move {
            take(if confirm {
                api.confirm_second_factor(typed).await.map(|codes| Some(SetupStep::Recovery(codes.recovery_codes)))
            } else {
                api.remove_second_factor(typed).await.map(|()| None)
            });
        }
    });
    let begin = Action::new_local(move |(): &()| {
        problem.set(None);
        // Somebody without a password, such as the first admin, leaves the field empty.
        let typed = Some(password.get_untracked()).filter(|typed| !typed.is_empty());
        async move { take(api.begin_second_factor(typed).await.map(|new| Some(SetupStep::Confirm(new)))) }
    });
    let form = move |confirm: bool, words: &'static str, hint: &'static str| {
        view! {
            <form class="narrow" on:submit=move |event| { event.prevent_default(); with_code.dispatch_local(confirm); } novalidate>
                <Field label="Code" hint complete="one-time-code" value=code problem path="/code"/>
                <div class="actions"><Button class="b" off=with_code.pending()>{words}</Button></div>
            </form>
        }
        .into_any()
    };
    let other = elsewhere(problem, &["/code", "/password"]);
    let state = move |known: SecondFactorState| {
        if known.enabled {
            return view! {
                <p>{format!("On. You are asked for a code from your app when you log in. {} recovery codes are left.", known.recovery_codes_left)}</p>
                {form(false, "Turn off", "The code that your app shows now, or a recovery code.")}
            }
            .into_any();
        }
        view! {
            <p>{if known.required { "This server requires a second factor. Set it up to continue." } else { "Off. With a second factor, a stolen password is not enough to log in." }}</p>
            <form class="narrow" on:submit=move |event| { event.prevent_default(); begin.dispatch_local(()); } novalidate>
                <Show when=move || has_password.get()>
                    <Field label="Your password" kind="password" complete="current-password" value=password problem path="/password"/>
                </Show>
                <div class="actions"><Button class="b primary" off=begin.pending()>"Set up"</Button></div>
            </form>
        }
        .into_any()
    };
    let body = move || match step.get() {
        None => view! { <Loaded from=known failed="Your second factor could not be loaded" rows=2 children=state/> }
            .into_any(),
        Some(SetupStep::Confirm(new)) => {
            let picture = format!("data:image/svg+xml,{}", js_sys::encode_uri_component(&new.qr_svg));
            view! {
                <p>"Scan this with an authenticator app, or type the secret into it. Then type the code that it shows."</p>
                <img class="qr" src=picture alt="QR code of the secret"/>
                <div class="secret">
                    <code>{new.secret.clone()}</code>
                    <CopyButton text=new.secret class="b" around=".secret" shown="code"/>
                </div>
                {form(true, "Turn on", "Six digits.")}
            }
            .into_any()
        }
        Some(SetupStep::Recovery(codes)) => {
            view! { <RecoveryCodes codes=codes.join("\n") stored=move |()| take(Ok(None))/> }.into_any()
        }
    };
    view! {
        <h2>"Second factor"</h2>
        {body}
        {move || other().map(|why| view! { <p class="banner stop" role="alert">{why}</p> })}
    }
}

/// The recovery codes, one a line, in a dialog that stays until the person has stored them: nothing can show them again.
#[component]
fn RecoveryCodes(codes: String, #[prop(into)] stored: Callback<()>) -> impl IntoView {
    let address = format!("data:text/plain;charset=utf-8,{}", js_sys::encode_uri_component(&codes));
    view! {
        <Dialog open=RwSignal::new(true) stay=Signal::stored(true) title="Your recovery codes">
            <div class="in">
                <p>"Your second factor is on. Each of these codes works once in place of your app. They are shown only now: keep them where you can find them without your device."</p>
                <div class="secret">
                    <pre>{codes.clone()}</pre>
                    <CopyButton text=codes.clone() class="b" around=".secret" shown="pre"/>
                    <a class="b" href=address.clone() download="countersign-recovery-codes.txt">"Download"</a>
                </div>
                <div class="actions">
                    <button class="b primary" on:click=move |_| stored.run(())>"I have stored them"</button>
                </div>
            </div>
        </Dialog>
    }
}

#[component]
fn Sessions() -> impl IntoView {
    let api = use_api();
    let notices = expect_context::<Notifier>();
    let sessions = LocalResource::new(move || async move { api.sessions().await.map(|page| page.items) });
    let end = Action::new_local(move |&id: &Option<SessionId>| async move {
        if let Err(problem) = api.end_sessions(id).await {
            notices.bad(format!("Not ended. {problem}"));
        }
        sessions.refetch();
    });
    let list = move |sessions: Vec<SessionInfo>| {
        let others = sessions.len() > 1;
        let rows = sessions.into_iter().map(|one| {
            let what = one.agent.as_deref().map_or_else(|| "Unknown".to_owned(), short_agent);
            let what = if one.current { format!("{what} (this one)") } else { what };
            let used = format!("last used {}", day(one.last_used_at));
            let from = one.address.into_iter().chain([used]).collect::<Vec<_>>().join(" · ");
            row(what, from, "b", "End", move |_| {
                end.dispatch_local(Some(one.id));
            })
        });
        view! {
            {table(rows.collect(), "You have no sessions.")}
            {others.then(|| view! { <div class="actions"><button class="b" on:click=move |_| { end.dispatch_local(None); }>"End all others"</button></div> })}
        }
    };
    view! {
        <h2>"Sessions"</h2>
        <Loaded from=sessions failed="Your sessions could not be loaded" rows=2 children=list/>
    }
}

#[cfg(test)]
mod tests {
    use super::short_agent;

    #[test]
    fn a_browser_is_called_as_people_call_it() {
        let chrome =
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36";
        assert_eq!(short_agent(chrome), "Chrome on Linux");
        assert_eq!(short_agent(&chrome.replace("Safari/537.36", "Safari/537.36 Edg/156.0")), "Edge on Linux");
        let phone =
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Safari/604.1";
        assert_eq!(short_agent(phone), "Safari on iPhone");
        assert_eq!(short_agent("curl/8.5.0"), "curl");
        assert_eq!(short_agent("x"), "Another program");
    }
}
