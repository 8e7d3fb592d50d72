//! Checks a flow's text while it is typed, and shows the result as a status and a list.

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::api::Validation;
use shared::error::{Mistake, Problem};

use crate::client::{Live, use_api};
use crate::components::glyph::Glyph;
use crate::components::inert::{inert, inert_code};
use crate::state::words;

/// The delay between the last change and the check, in milliseconds.
const PAUSE_MS: u32 = 350;

#[derive(Clone, Copy)]
pub struct Checks {
    /// The latest result; `None` until the first answer.
    pub checked: RwSignal<Option<Validation>>,
    /// Why the check failed to run, if it did.
    pub error: RwSignal<Option<Problem>>,
    /// Whether the current text is not checked yet.
    pub checking: RwSignal<bool>,
    /// The number of the last check; answers to older ones are dropped.
    turn: StoredValue<u64>,
    again: Trigger,
}

impl Checks {
    /// Takes in a result for the current text that came with another answer of the server.
    pub fn take(self, validation: Validation) {
        self.turn.update_value(|turn| *turn += 1);
        self.checking.set(false);
        self.error.set(None);
        self.checked.set(Some(validation));
    }

    /// Checks the text again if the last check failed to run.
    pub fn retry(self) {
        if self.error.with_untracked(Option::is_some) {
            self.again.notify();
        }
    }
}

/// Checks `text` after each change, unless `denied` has a reason why the person may not.
pub fn use_checks(text: Signal<String>, denied: Memo<Option<&'static str>>) -> Checks {
    let api = use_api();
    let checked = RwSignal::new(None::<Validation>);
    let error = RwSignal::new(None::<Problem>);
    let checking = RwSignal::new(false);
    let turn = StoredValue::new(0_u64);
    let again = Trigger::new();
    Effect::new(move |_| {
        let typed = text.get();
        again.track();
        // A person who may not save flows may not have them checked either.
        if denied.get().is_some() {
            return;
        }
        turn.update_value(|turn| *turn += 1);
        let mine = turn.get_value();
        checking.set(true);
        spawn_local(async move {
            TimeoutFuture::new(PAUSE_MS).await;
            // The text has changed again, or the page is gone.
            if turn.try_get_value() != Some(mine) {
                return;
            }
            let answer = api.validate_flow(&typed).await;
            if turn.try_get_value() != Some(mine) {
                return;
            }
            checking.set(false);
            match answer {
                Ok(validation) => {
                    error.set(None);
                    checked.set(Some(validation));
                }
                Err(problem) => error.set(Some(problem)),
            }
        });
    });
    let checks = Checks { checked, error, checking, turn, again };
    expect_context::<Live>().on_return(move || checks.retry());
    checks
}

/// Whether the text is valid, as a status.
#[component]
pub fn Status(checked: RwSignal<Option<Validation>>, error: RwSignal<Option<Problem>>) -> impl IntoView {
    move || {
        if let Some(problem) = error.get() {
            return view! { <span class="stop"><Glyph icon=icondata::LuTriangleAlert/>"Could not be checked: "{inert_code(&problem.to_string())}</span> }.into_any();
        }
        match checked.get() {
            None => view! { <span class="muted">"Checking…"</span> }.into_any(),
            Some(one) if one.valid => view! {
                <span class="go"><Glyph icon=icondata::LuCircleCheck/>{match one.warnings.len() {
                    0 => "Valid".to_owned(),
                    some => format!("Valid, {}", words::count(some, "warning", "warnings")),
                }}</span>
            }.into_any(),
            Some(one) => view! {
                <span class="stop"><Glyph icon=icondata::LuCircleAlert/>{words::count(one.errors.len(), "error", "errors")}</span>
            }.into_any(),
        }
    }
}

/// All mistakes, then all warnings; a click jumps to the place.
#[component]
pub fn Mistakes(checked: RwSignal<Option<Validation>>, jump: RwSignal<Option<(u32, u32)>>) -> impl IntoView {
    let row = move |mistake: Mistake, bad: bool| {
        let place =
            mistake.line.map_or_else(|| mistake.path.clone(), |line| format!("{line}:{}", mistake.column.unwrap_or(1)));
        let to = (mistake.line.unwrap_or(1), mistake.column.unwrap_or(1));
        view! {
            <li>
                <button class=if bad { "bad" } else { "doubt" } on:click=move |_| jump.set(Some(to))>
                    <span class="place">{inert(&place)}</span><span class="grow">{inert_code(&mistake.message)}</span><code>{mistake.code}</code>
                </button>
            </li>
        }
    };
    move || {
        let one = checked.get()?;
        if one.errors.is_empty() && one.warnings.is_empty() {
            return None;
        }
        let errors = one.errors.into_iter().map(|mistake| row(mistake, true)).collect_view();
        let warnings = one.warnings.into_iter().map(|mistake| row(mistake, false)).collect_view();
        Some(view! { <ul class="mistakes" aria-label="Errors and warnings">{errors}{warnings}</ul> })
    }
}
