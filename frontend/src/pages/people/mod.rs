//! People and their roles, for admins; tokens for programs, for everybody.

mod roles;
mod token_form;
mod tokens;
mod user_form;
mod users;

use crate::client::address::use_query_map;
use leptos::prelude::*;
use shared::access::Act;
use shared::error::Problem;

use self::tokens::Tokens;
use self::users::Users;
use crate::client::Session;

/// The page `/people`.
#[component]
pub fn PeoplePage() -> impl IntoView {
    let session = Session::expect();
    let query = use_query_map();
    let manages = Memo::new(move |_| session.may(Act::ManagePeople));
    let tokens =
        Memo::new(move |_| !manages.get() || query.with(|query| query.get("tab").as_deref() == Some("tokens")));
    let adding = RwSignal::new(false);
    view! {
        <section class="page people">
            <header>
                <h1>{move || if manages.get() { "People" } else { "Your tokens" }}</h1>
                <Show when=move || manages.get() fallback=|| view! { <span class="grow"></span> }>
                    <nav class="tabs" aria-label="What is shown">
                        <a href="/people" aria-current=move || (!tokens.get()).then_some("page")>"People"</a>
                        <a href="/people?tab=tokens" aria-current=move || tokens.get().then_some("page")>"Your tokens"</a>
                    </nav>
                    <span class="grow"></span>
                </Show>
                <button class="b primary" on:click=move |_| adding.set(true)>{move || if tokens.get() { "Make a token" } else { "Add a person" }}</button>
            </header>
            <div class="in">
                {move || if tokens.get() { view! { <Tokens adding/> }.into_any() } else { view! { <Users adding/> }.into_any() }}
            </div>
        </section>
    }
}

/// What a refusal says of one field.
fn mistake_at(
    problem: RwSignal<Option<Problem>>,
    path: &'static str,
) -> impl Fn() -> Option<String> + Copy + Send + Sync + 'static {
    move || {
        problem.with(|problem| {
            let here = |one: &&shared::error::Mistake| {
                one.path == path || one.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
            };
            let words: Vec<_> = problem.as_ref()?.errors.iter().filter(here).map(|one| one.message.clone()).collect();
            (!words.is_empty()).then(|| words.join(" "))
        })
    }
}

/// What a refusal says beside the given fields.
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
