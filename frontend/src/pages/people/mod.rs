//! For admins, people and their roles. For everybody, their own tokens, deputies, remembered approvals, notifications,
//! password, sessions and second factor.

mod confirm_session;
mod confirmed;
mod deputies;
mod grants;
mod notifications;
mod roles;
mod rows;
mod security;
mod this_browser;
mod token_form;
mod token_table;
mod tokens;
mod user_form;
mod users;

use leptos::html;
use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use shared::access::Act;
use shared::error::Problem;

use self::confirm_session::ConfirmSession;
use self::deputies::Deputies;
use self::grants::Grants;
use self::notifications::NotificationsTab;
use self::security::Security;
use self::tokens::Tokens;
use self::users::Users;
use crate::client::Session;
use crate::components::arrival;
use crate::components::listeners::while_shown;
use crate::state::verdict::is_at;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PeopleTab {
    Users,
    Tokens,
    Deputies,
    Grants,
    Notifications,
    Security,
}

#[component]
pub fn PeoplePage() -> impl IntoView {
    let session = expect_context::<Session>();
    let query = use_query_map();
    let manages = Memo::new(move |_| session.may(Act::ManagePeople));
    let tab = Memo::new(move |_| match query.with(|query| query.get("tab")).as_deref() {
        Some("you") => PeopleTab::Deputies,
        Some("approvals") => PeopleTab::Grants,
        Some("notifications") => PeopleTab::Notifications,
        Some("security") => PeopleTab::Security,
        Some("tokens") => PeopleTab::Tokens,
        _ if manages.get() => PeopleTab::Users,
        _ => PeopleTab::Tokens,
    });
    let name = move || if manages.get() { "People" } else { "You" };
    arrival::title(move || name().to_owned());
    let heading = arrival::heading::<html::H1>();
    let adding = RwSignal::new(false);
    let link = move |to: PeopleTab, href: &'static str, words: &'static str| {
        view! { <a href=href aria-current=move || (tab.get() == to).then_some("page")>{words}</a> }
    };
    view! {
        <section class="page people">
            <header>
                <h1 node_ref=heading tabindex="-1">{name}</h1>
                <nav class="tabs" aria-label="Sections">
                    {move || manages.get().then(|| link(PeopleTab::Users, "/people", "People"))}
                    {link(PeopleTab::Tokens, "/people?tab=tokens", "Your tokens")}
                    {link(PeopleTab::Deputies, "/people?tab=you", "Out of office")}
                    {link(PeopleTab::Grants, "/people?tab=approvals", "Remembered approvals")}
                    {link(PeopleTab::Notifications, "/people?tab=notifications", "Notifications")}
                    {link(PeopleTab::Security, "/people?tab=security", "Security")}
                </nav>
                <span class="grow"></span>
                <button class="b primary" hidden=move || !matches!(tab.get(), PeopleTab::Users | PeopleTab::Tokens) on:click=move |_| adding.set(true)>
                    {move || if tab.get() == PeopleTab::Tokens { "Create token" } else { "Add a person" }}
                </button>
            </header>
            <div class="in">
                {move || match tab.get() {
                    PeopleTab::Users => view! { <Users adding/> }.into_any(),
                    PeopleTab::Tokens => view! { <Tokens adding/> }.into_any(),
                    PeopleTab::Deputies => view! { <Deputies/> }.into_any(),
                    PeopleTab::Grants => view! { <Grants/> }.into_any(),
                    PeopleTab::Notifications => view! { <NotificationsTab/> }.into_any(),
                    PeopleTab::Security => view! { <Security/> }.into_any(),
                }}
                <ConfirmSession/>
            </div>
        </section>
    }
}

/// The messages of a refusal for a place and those inside it; `None` if there are none.
fn mistakes(problem: &Problem, path: &str) -> Option<String> {
    let here = problem.errors.iter().filter(|one| is_at(one, path));
    let words: Vec<_> = here.map(|one| one.message.clone()).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The messages of the current refusal for one field.
fn mistake_at(
    problem: RwSignal<Option<Problem>>,
    path: &'static str,
) -> impl Fn() -> Option<String> + Copy + Send + Sync + 'static {
    move || problem.with(|problem| mistakes(problem.as_ref()?, path))
}

/// The current refusal as text, if it concerns none of these fields.
fn elsewhere(
    problem: RwSignal<Option<Problem>>,
    paths: &'static [&'static str],
) -> impl Fn() -> Option<String> + Copy + Send + Sync + 'static {
    move || {
        problem.with(|problem| {
            let problem = problem.as_ref()?;
            let placed = problem.errors.iter().any(|one| paths.iter().any(|path| one.path.starts_with(path)));
            (!placed).then(|| problem.to_string())
        })
    }
}

/// A text field of a form, with the messages of a refusal.
#[component]
fn Field(
    label: &'static str,
    #[prop(optional)] hint: &'static str,
    /// The `type` of the input.
    #[prop(default = "text")]
    kind: &'static str,
    /// The value of `autocomplete`.
    #[prop(default = "off")]
    complete: &'static str,
    value: RwSignal<String>,
    problem: RwSignal<Option<Problem>>,
    /// The JSON pointer of the field in a refusal.
    path: &'static str,
    #[prop(optional)] placeholder: Option<&'static str>,
) -> impl IntoView {
    let wrong = mistake_at(problem, path);
    view! {
        <label class="field">
            <span class="label">{label}</span>
            {(!hint.is_empty()).then(|| view! { <span class="hint">{hint}</span> })}
            <input class="input" type=kind autocomplete=complete autocapitalize="off" spellcheck="false" placeholder=placeholder bind:value=value aria-invalid=move || wrong().is_some().to_string()/>
            <span class="mistake" aria-live="polite">{wrong}</span>
        </label>
    }
}

/// A check box with a name, and what it means.
#[component]
fn CheckBox(
    #[prop(into)] label: String,
    hint: &'static str,
    /// Whether it is shown as a switch, which acts at once.
    #[prop(optional)]
    switch: bool,
    #[prop(into)] on: Signal<bool>,
    /// Called with whether it is ticked now.
    #[prop(into)]
    set: Callback<bool>,
) -> impl IntoView {
    view! {
        <label class="role">
            <input type="checkbox" role=switch.then_some("switch") prop:checked=on
                on:change=while_shown(move |event| set.run(event_target_checked(&event)))/>
            <span><b>{label}</b>{(!hint.is_empty()).then(|| view! { <span class="hint">{hint}</span> })}</span>
        </label>
    }
}
