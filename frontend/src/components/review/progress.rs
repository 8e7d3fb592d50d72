//! The progress of a decision: it can still be undone, is being sent, or is accepted, and what the run did then; or
//! somebody else decided first.

use leptos::prelude::*;
use leptos_router::hooks::use_location;
use shared::api::DecisionEffect;
use shared::error::{Code, Problem};
use shared::review::{Outcome, Review, ReviewStatus};
use shared::run::{RunStatus, RunSummary};

use super::pane::Pane;
use super::sent::ReadIt;
use crate::components::copy::CopyButton;
use crate::components::glyph::Glyph;
use crate::components::inert::{inert, inert_code};
use crate::components::shortcuts;
use crate::components::time::{Ago, full};
use crate::state::drafts::Draft;
use crate::state::ending::Ending;
use crate::state::inbox::address;
use crate::state::outbox::{Reason, Sending, Stage, UNDO};
use crate::state::outcomes::{self, Quotes};
use crate::state::record;
use crate::state::sent;

/// The stage of this person's decision, or the outcome of the review without one.
#[component]
pub fn Progress(pane: Pane) -> impl IntoView {
    let stage = Memo::new(move |_| {
        pane.workspace.outbox.with(|outbox| outbox.get(pane.id).map(|sending| sending.stage.clone()))
    });
    let over = Memo::new(move |_| pane.review.with(|review| !review.is_pending()));
    // Not while a decision is on its way, which may be the one that resolved the review.
    let ended = Memo::new(move |_| {
        let is_settled =
            |stage: &Option<Stage>| !matches!(stage, Some(Stage::Held(_) | Stage::Sending | Stage::Accepted(..)));
        over.get() && stage.with(is_settled)
    });
    // A status is announced when it changes, not when it appears: its place is there before. An alert is its own place.
    view! {
        <div class="stage" role=pane.status_role()>
            {move || match (stage.get(), over.get()) {
                (Some(Stage::Held(until)), _) => view! { <Held pane=pane until=until.0 /> }.into_any(),
                (Some(Stage::Sending), _) => {
                    view! {
                        <div class="banner accent">
                            <span class="spin glyph"><Glyph icon=icondata::LuLoaderCircle /></span>
                            "Sending…"
                        </div>
                    }
                        .into_any()
                }
                (Some(Stage::Accepted(effect, _)), over) => view! { <Accepted pane=pane effect=effect over=over /> }.into_any(),
                (_, true) => view! { <Over pane=pane /> }.into_any(),
                (_, false) => ().into_any(),
            }}
        </div>
        {move || match (stage.get(), over.get()) {
            (Some(Stage::Unsent(reason)), false) => view! { <Unsent pane=pane reason=reason /> }.into_any(),
            (Some(Stage::Refused(problem)), false) => view! { <Refused pane=pane problem=problem /> }.into_any(),
            _ => ().into_any(),
        }}
        <Unused pane=pane ended />
    }
}

#[component]
fn Held(pane: Pane, until: i64) -> impl IntoView {
    let (says, quotes) = pane
        .workspace
        .outbox
        .with_untracked(|outbox| {
            let sending = outbox.get(pane.id)?;
            let quotes = pane.review.with_untracked(|review| sent::quotes(review, &sending.request));
            Some((sending.says.clone(), quotes))
        })
        .unzip();
    let quotes = quotes.flatten().map(|quotes| view! { " "<span class="quotes">{inert(&quotes)}</span> });
    // The remaining seconds, rounded up. The bar is animated by the style sheet.
    let left = move || (until - pane.live.server_now().0.max(pane.live.now.get().0)).clamp(0, UNDO);
    let seconds = move || (left() + 999_999) / 1_000_000;
    let style = format!("animation-duration: {}ms", untrack(left) / 1000);
    view! {
        <div class="banner accent held">
            <span class="grow">
                <b>{says.map(|says: String| inert(&says))}</b>
                {quotes}
                // Beside other reviews, the key undoes the newest decision.
                <span class="sr">", sent in a moment or when you leave this tab"{pane.is_alone().then(shortcuts::undo_hint)}</span>
                <span aria-hidden="true">{move || format!(": sending in {} s, or when you leave this tab", seconds())}</span>
            </span>
            <button class="b sm" on:click=move |_| {
                pane.workspace.undo(pane.id);
            }>
                <Glyph icon=icondata::LuUndo2 />
                "Undo"
                {pane.is_alone().then(|| view! { <kbd aria-hidden="true">"u"</kbd> })}
            </button>
            <button class="b ghost sm" on:click=move |_| pane.workspace.send_now(pane.id)>"Send now"</button>
            <i class="run-down" style=style aria-hidden="true"></i>
        </div>
    }
}

#[component]
fn Accepted(pane: Pane, effect: DecisionEffect, over: bool) -> impl IntoView {
    let text = match effect {
        DecisionEffect::Resolved => "Decided.",
        DecisionEffect::Recorded => "Recorded. The review is still waiting for others.",
    };
    let class = if over { tone_of(pane) } else { Memo::new(|_| "banner go") };
    view! {
        <div class=class>
            <Glyph icon=icon_of(class) />
            <span class="grow">
                <b>{text}</b>" "
                {over.then(|| view! { <Resolution pane=pane /><ReadIt pane=pane /> })}
                <RunState pane=pane />
            </span>
        </div>
    }
}

/// Who resolved the review, how and when.
#[component]
fn Resolution(pane: Pane) -> impl IntoView {
    move || {
        let me = pane.session.username();
        pane.review.with(|review| {
            review.resolution.as_ref().map(|resolution| {
                let text = outcomes::resolution_first(review, resolution, me.as_deref(), Quotes::Beginning);
                // A reason is a sentence of its own.
                let stop = if resolution.reason.is_some() { ". " } else { " " };
                view! { <span title=full(resolution.at)>{inert(&text)}{stop}<span aria-live="off"><Ago at=resolution.at /></span>". "</span> }
            })
        })
    }
}

/// What the run has done since the decision.
#[component]
fn RunState(pane: Pane) -> impl IntoView {
    // The socket reports later changes; the current state is loaded once.
    if let Some(id) = pane.review.with_untracked(|review| review.run_id) {
        pane.live.keep_run(id);
        leptos::task::spawn_local(async move {
            if let Ok(run) = pane.api.run(id).await {
                pane.live.runs.update(|runs| runs.put_followed(run.summary));
            }
        });
    }
    let run = run_since(pane);
    let search = use_location().search;
    move || {
        let run = run.get()?;
        // The run's next review, if this person may see it.
        let next = pane.live.inbox.with(|inbox| inbox.asked_by(run.id));
        let next =
            next.map(|id| view! { " "<a href=move || address::review(id, &search.get())>"Open the next review"</a> });
        Some(view! { <span class="since">{inert_code(&run_words(&run))}{next}</span> })
    }
}

/// The run, once its summary is from after the decision.
fn run_since(pane: Pane) -> Memo<Option<RunSummary>> {
    Memo::new(move |_| {
        let (id, at) =
            pane.review.with(|review| (review.run_id, review.resolution.as_ref().map(|resolution| resolution.at)));
        let run = pane.live.runs.with(|runs| runs.get(id?).cloned())?;
        at.is_none_or(|at| run.updated_at >= at).then_some(run)
    })
}

/// Whether the run failed, rather than being stopped by people as the flow says.
fn has_failed(run: &RunSummary) -> bool {
    run.status == RunStatus::Failed && Ending::of(run.error.as_ref()).is_none()
}

fn run_words(run: &RunSummary) -> String {
    match run.status {
        RunStatus::Running => "The run continues.".to_owned(),
        RunStatus::WaitingForHuman => "The run is waiting for a person.".to_owned(),
        RunStatus::Completed => "The run has completed.".to_owned(),
        RunStatus::Cancelled => "The run was cancelled.".to_owned(),
        RunStatus::Failed if Ending::of(run.error.as_ref()).is_some() => "The run has ended.".to_owned(),
        RunStatus::Failed => match &run.error {
            Some(error) => format!("The run has failed: {}", error.message),
            None => "The run has failed.".to_owned(),
        },
    }
}

/// A decision that was not sent, or may not have arrived.
#[component]
fn Unsent(pane: Pane, reason: Reason) -> impl IntoView {
    let of = move |is: fn(&Sending, &Review) -> bool| {
        pane.review.with(|review| {
            pane.workspace.outbox.with(|outbox| outbox.get(pane.id).is_some_and(|sending| is(sending, review)))
        })
    };
    // A decision on an older revision would be refused.
    let behind = Memo::new(move |_| of(Sending::is_behind));
    let here = if of(|sending, _| sending.in_memory) { "on this page until you leave it" } else { "here" };
    let kept = format!(" Your decision is kept {here}; sent again, it counts once.");
    let (icon, lead, more, send) = match reason {
        Reason::Problem(problem) if problem.code == Code::Unauthenticated => {
            (icondata::LuInfo, "Your session ended before this was sent.", kept, "Send again")
        }
        Reason::Problem(problem) => (icondata::LuWifiOff, "No answer. ", format!("{problem}{kept}"), "Send again"),
        Reason::Connected => {
            (icondata::LuWifi, "You are connected again. ", "Send your decision now?".to_owned(), "Send")
        }
        Reason::Kept => (
            icondata::LuInfo,
            "Your decision may not have arrived. ",
            "Send it now? Sent again, it counts once.".to_owned(),
            "Send",
        ),
    };
    let says = pane.workspace.outbox.with_untracked(|outbox| outbox.get(pane.id).map(|sending| sending.says.clone()));
    view! {
        <div class="banner warn" role="alert">
            <Glyph icon=icon />
            <span class="grow">
                {says.map(|says| view! { <b>{inert(&says)}</b>": " })}
                {move || if behind.get() {
                    view! { "The content has changed since you decided this, and it was not sent. Look at the change, then decide again." }.into_any()
                } else {
                    view! { <b>{lead}</b>{inert_code(&more)} }.into_any()
                }}
            </span>
            <Show when=move || !behind.get()>
                <button class="b primary sm" on:click=move |_| pane.workspace.send_now(pane.id)>{send}</button>
            </Show>
            <button class="b sm" on:click=move |_| pane.workspace.dismiss(pane.id)>
                {move || if behind.get() { "Decide again" } else { "Change it" }}
            </button>
        </div>
    }
}

/// A decision that the server refused, while the review is still pending.
#[component]
fn Refused(pane: Pane, problem: Problem) -> impl IntoView {
    let lead = match problem.code {
        Code::RevisionChanged => "Not accepted: the content has changed. ",
        Code::Forbidden => "Not accepted: you may not decide this. ",
        _ => "Not accepted. ",
    };
    let more = if problem.code == Code::RevisionChanged {
        "The change is shown above; what you wrote is kept.".to_owned()
    } else {
        problem.to_string()
    };
    view! {
        <div class="banner stop" role="alert">
            <Glyph icon=icondata::LuTriangleAlert />
            <span class="grow"><b>{lead}</b>{inert_code(&more)}</span>
            <button class="b sm" on:click=move |_| pane.workspace.dismiss(pane.id)>"Decide again"</button>
        </div>
    }
}

/// A review that was resolved, but not by a decision known to be accepted from here.
#[component]
fn Over(pane: Pane) -> impl IntoView {
    // If the answer was lost, the review may have been resolved by this person's decision.
    let is_mine = Memo::new(move |_| {
        let me = pane.session.username();
        pane.review.with(|review| {
            let by = review.resolution.iter().flat_map(|resolution| &resolution.by);
            by.into_iter().any(|by| me.as_deref() == Some(by.as_str()))
        })
    });
    let lost = Memo::new(move |_| {
        let stage = |sending: &Sending| match sending.stage {
            Stage::Refused(_) => Some("Your decision was not accepted. "),
            Stage::Unsent(_) | Stage::Overtaken if !is_mine.get() => Some("Your decision was not sent. "),
            _ => None,
        };
        pane.workspace.outbox.with(|outbox| outbox.get(pane.id).and_then(stage))
    });
    let tone = tone_of(pane);
    let class = Memo::new(move |_| if lost.get().is_some() { "banner warn" } else { tone.get() });
    view! {
        <div class=class>
            <Glyph icon=icon_of(class) />
            <span class="grow">
                {move || lost.get().map(|lost| view! { <b>{lost}</b> })}
                <Resolution pane=pane />
                <ReadIt pane=pane />
                <RunState pane=pane />
            </span>
        </div>
    }
}

/// What the person wrote, if the review ended without it.
#[component]
fn Unused(pane: Pane, ended: Memo<bool>) -> impl IntoView {
    let text = Memo::new(move |_| {
        let text = |draft: &Draft| (!draft.is_empty()).then(|| draft.to_text());
        if ended.get() { pane.with_draft(text) } else { None }
    });
    let says = move || text.get().unwrap_or_default();
    view! {
        <Show when=move || text.with(Option::is_some)>
            <details class="banner unsent">
                <summary>"What you wrote was not sent"</summary>
                <pre class="unsent-text">{move || inert(&says())}</pre>
                <CopyButton text=Signal::derive(says) class="b sm" around=".unsent" shown="pre" />
                <button class="b ghost sm" on:click=move |_| pane.workspace.discard(pane.id)>"Discard"</button>
            </details>
        </Show>
    }
}

/// Whether a guardrail blocked what was approved.
fn is_blocked(review: &Review) -> bool {
    record::vetoes(review).next().is_some()
}

/// The CSS class of the banner of a resolved review. A run that has failed since is shown as a failure, whatever was
/// decided.
fn tone_of(pane: Pane) -> Memo<&'static str> {
    let run = run_since(pane);
    Memo::new(move |_| {
        let failed = run.with(|run| run.as_ref().is_some_and(has_failed));
        pane.review.with(|review| if failed || is_blocked(review) { "banner stop" } else { tone(review) })
    })
}

fn tone(review: &Review) -> &'static str {
    match (review.status, review.resolution.as_ref().map(|resolution| resolution.outcome)) {
        (ReviewStatus::Resolved, Some(Outcome::Accepted | Outcome::Answered)) => "banner go",
        (ReviewStatus::Resolved, Some(Outcome::Decided)) if !record::is_refused(review) => "banner go",
        (ReviewStatus::Expired, _) => "banner warn",
        _ => "banner",
    }
}

/// The icon of a banner, as colour alone is not accessible.
fn icon_of(class: Memo<&'static str>) -> Signal<icondata::Icon> {
    Signal::derive(move || match class.get() {
        "banner go" => icondata::LuCircleCheck,
        "banner stop" => icondata::LuOctagonX,
        _ => icondata::LuInfo,
    })
}
