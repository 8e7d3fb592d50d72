//! People and their roles, for admins; tokens for programs, for everybody.

mod place;
mod roles;
mod token_form;
mod tokens;
mod user_form;
mod users;

use crate::client::address::use_query_map;
use leptos::prelude::*;
use shared::access::Act;
use shared::error::Problem;

use self::place::Place;
use self::tokens::Tokens;
use self::users::Users;
use crate::client::Session;

/// The page `/people`.
#[component]
pub fn PeoplePage() -> impl IntoView {
    let session = Session::expect();
    let query = use_query_map();
    let manages = Memo::new(move |_| session.may(Act::ManagePeople));
    let tab = Memo::new(move |_| query.with(|query| query.get("tab")));
    let place = Memo::new(move |_| tab.get().as_deref() == Some("you"));
    let tokens = Memo::new(move |_| !place.get() && (!manages.get() || tab.get().as_deref() == Some("tokens")));
    let adding = RwSignal::new(false);
    view! {
        <section class="page people">
            <header>
                <h1>{move || if manages.get() { "People" } else { "You" }}</h1>
                <nav class="tabs" aria-label="What is shown">
                    <Show when=move || manages.get()>
                        <a href="/people" aria-current=move || (!tokens.get() && !place.get()).then_some("page")>"People"</a>
                    </Show>
                    <a href="/people?tab=tokens" aria-current=move || tokens.get().then_some("page")>"Your tokens"</a>
                    <a href="/people?tab=you" aria-current=move || place.get().then_some("page")>"Away and allowed"</a>
                </nav>
                <span class="grow"></span>
                <button class="b primary" hidden=move || place.get() on:click=move |_| adding.set(true)>{move || if tokens.get() { "Make a token" } else { "Add a person" }}</button>
            </header>
            <div class="in">
                {move || if place.get() { view! { <Place/> }.into_any() } else if tokens.get() { view! { <Tokens adding/> }.into_any() } else { view! { <Users adding/> }.into_any() }}
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
