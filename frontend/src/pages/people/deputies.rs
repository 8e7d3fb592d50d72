//! The person's deputies while they are out of office.

use leptos::prelude::*;
use shared::deputy::{Deputyship, NewDeputy};
use shared::error::Problem;
use shared::id::DeputyId;
use shared::time::Timestamp;

use super::rows::{row, table};
use crate::client::{to_show, use_api, use_post};
use crate::components::button::Button;
use crate::components::inert::{inert_code, named};
use crate::components::listeners::while_shown;
use crate::components::states::Loaded;
use crate::components::time::day;
use crate::state::words;

#[component]
pub fn Deputies() -> impl IntoView {
    let api = use_api();
    // If they cannot be loaded, the menu is empty; the lists below show the error.
    let names = LocalResource::new(move || async move {
        let page = api.reviewers(None).await.ok()?;
        Some(page.items.iter().map(|user| (user.username.to_string(), words::user(user))).collect::<Vec<_>>())
    });
    let deputies = LocalResource::new(move || async move { api.deputies().await.map(|page| page.items) });
    let problem = RwSignal::new(None::<Problem>);
    let deputy = RwSignal::new(String::new());
    let from = RwSignal::new(String::new());
    let until = RwSignal::new(String::new());
    let (name, busy) = use_post("deputy", move |new: NewDeputy, key| async move {
        let answer = api.name_deputy(&new, Some(&key)).await;
        problem.set(answer.as_ref().err().cloned().and_then(to_show));
        if answer.is_ok() {
            // The form is emptied, so that a second click adds nothing.
            for field in [deputy, from, until] {
                field.set(String::new());
            }
        }
        deputies.refetch();
        answer
    });
    let lacks = Memo::new(move |_| deputy.with(String::is_empty) || until.with(String::is_empty));
    let remove = Action::new_local(move |&id: &DeputyId| async move {
        problem.set(api.remove_deputy(id).await.err());
        deputies.refetch();
    });
    let hint = Signal::derive(move || lacks.get().then(|| "Choose a person and an end date first".to_owned()));
    let send = move || {
        if let (Ok(deputy), Some(until)) = (deputy.get_untracked().parse(), local(&until.get_untracked())) {
            name.run(NewDeputy { person: None, deputy, from: local(&from.get_untracked()), until, note: None });
        }
    };
    let time = |label: &'static str, text: RwSignal<String>| {
        view! {
            <label class="field"><span class="label">{label}</span>
                <input class="input" type="datetime-local" bind:value=text/>
            </label>
        }
    };
    let of_deputies = move |deputies: Vec<Deputyship>| {
        let rows = deputies
            .into_iter()
            .map(|span| {
                let remove = move |_| {
                    remove.dispatch_local(span.id);
                };
                row(
                    format!("{} decides for {}", span.deputy, span.person),
                    format!("{} – {}", day(span.from), day(span.until)),
                    "b sm stop",
                    "Remove",
                    remove,
                )
            })
            .collect();
        table(rows, "No deputies.")
    };
    view! {
        {move || problem.get().map(|problem| view! { <p class="banner stop" role="alert">{inert_code(&problem.to_string())}</p> })}
        <p class="soft lead">"While you are away, your deputy can see and decide what you can. The audit log records on whose behalf."</p>
        <form class="deputy-form" on:submit=move |event| { event.prevent_default(); send(); }>
            <label class="field"><span class="label">"Deputy"</span>
                <select class="select" prop:value=deputy on:change=while_shown(move |event| deputy.set(event_target_value(&event)))>
                    <option value="">"Choose a person"</option>
                    {move || names.get().flatten().unwrap_or_default().into_iter().map(|(name, shown)| view! { <option value=name>{named(&shown)}</option> }).collect_view()}
                </select>
            </label>
            {time("From (now, if empty)", from)}
            {time("Until", until)}
            <Button class="b primary" title=hint off=Signal::derive(move || busy.get() || lacks.get())>
                "Add deputy"
            </Button>
        </form>
        <Loaded from=deputies failed="Your deputies could not be loaded" rows=2 children=of_deputies/>
    }
}

/// Parses the value of a date and time input, in the person's time zone.
fn local(text: &str) -> Option<Timestamp> {
    let millis = js_sys::Date::parse(text);
    #[expect(clippy::cast_possible_truncation, reason = "milliseconds since 1970")]
    millis.is_finite().then(|| Timestamp(millis as i64 * 1000))
}
