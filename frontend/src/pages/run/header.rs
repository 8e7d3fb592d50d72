//! The head of the run's page: its identity, the actions, and how it ended or what it waits for.

use leptos::ev::MouseEvent;
use leptos::html;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use serde_json::Value;
use shared::JsonMap;
use shared::access::Act;
use shared::review::{self, Review};
use shared::run::RunStatus;

use super::cancel::CancelDialog;
use super::data::RunData;
use super::feedback::{FeedbackDialog, RunFeedback};
use crate::client::{Live, Notifier, Session, Workspace};
use crate::components::arrival;
use crate::components::glyph::Glyph;
use crate::components::inert::{inert, inert_code};
use crate::components::status::StatusTag;
use crate::components::time::Ago;
use crate::state::drafts::Form;
use crate::state::ending::{Ending, ending_word};
use crate::state::outcomes::{self, Quotes};
use crate::state::sentences::sentence;
use crate::state::{effects, words};

/// The title, status, flow, author and duration of the run, and buttons for its report, feedback and cancelling.
#[component]
pub fn RunHeader(data: RunData, feedback: RunFeedback) -> impl IntoView {
    let live = expect_context::<Live>();
    let session = expect_context::<Session>();
    let cancelling = RwSignal::new(false);
    let saying = RwSignal::new(false);
    let has_agents = Memo::new(move |_| data.run.with(|run| run.as_ref().is_some_and(|run| !run.agents.is_empty())));
    let summary = Memo::new(move |_| data.run.with(|run| run.as_ref().map(|run| run.summary.clone())));
    let title = move || {
        summary.with(|run| {
            run.as_ref().map(|run| {
                let topic = run.topic.as_ref().map(|topic| view! { <span class="soft">" · "{inert(topic)}</span> });
                view! { {inert(&run.title)}{topic} }
            })
        })
    };
    let may_cancel = Memo::new(move |_| {
        summary.with(|run| run.as_ref().is_some_and(|run| !run.status.is_over() && session.may(Act::CancelRun(run))))
    });
    let may_repeat = Memo::new(move |_| {
        summary.with(|run| run.as_ref().is_some_and(|run| run.status.is_over() && session.may(Act::Launch)))
    });
    let again = run_again(data);
    let took = move || {
        summary.with(|run| {
            run.as_ref().map(|run| {
                let end = run.ended_at.unwrap_or_else(|| live.now.get());
                let length =
                    words::duration_ms(u64::try_from(end.since(run.created_at).as_millis()).unwrap_or(u64::MAX));
                if run.ended_at.is_some() { format!("took {length}") } else { format!("{length} so far") }
            })
        })
    };
    let facts = move || {
        summary.get().map(|run| {
            let flow = format!("/flows/{}?version={}", run.flow, run.version);
            view! {
                <StatusTag status=run.status error=run.error.clone()/>
                <a href=flow class="tag">{run.flow.to_string()}" v"{run.version}</a>
                <span class="soft">"launched by "{run.requested_by.to_string()}" "<Ago at=run.created_at/></span>
            }
        })
    };
    let id = data.id.to_string();
    let heading = arrival::heading::<html::H1>();
    view! {
        <header class="run-head">
            <div class="grow">
                <nav class="crumbs" aria-label="Breadcrumb">
                    <a href="/runs">"Runs"</a><span aria-hidden="true">"›"</span><span class="mono cut" title="The run's id">{id.clone()}</span>
                </nav>
                <h1 node_ref=heading tabindex="-1">{title}</h1>
                <div class="facts">{facts}<span class="soft">{took}</span></div>
            </div>
            <a class="b" href=format!("/api/v1/runs/{id}/report") target="_blank" rel="noopener">
                <Glyph icon=icondata::LuFileText/>"Report"
            </a>
            <Show when=move || has_agents.get()>
                <button class="b" on:click=move |_| saying.set(true)><Glyph icon=icondata::LuMessageSquare/>"Feedback"</button>
            </Show>
            <Show when=move || may_repeat.get()>
                <button class="b" on:click=again.clone()><Glyph icon=icondata::LuRotateCcw/>"Run again"</button>
            </Show>
            <Show when=move || may_cancel.get()>
                <button class="b stop" on:click=move |_| cancelling.set(true)>"Cancel the run"</button>
            </Show>
            <CancelDialog data open=cancelling/>
            <FeedbackDialog data open=saying feedback/>
        </header>
    }
}

/// Fills in the form that starts a run with what this one was started with, and opens it. Nothing starts before a person
/// has looked at it.
fn run_again(data: RunData) -> impl Fn(MouseEvent) + Clone + 'static {
    let (workspace, notifier, navigate) = (expect_context::<Workspace>(), expect_context::<Notifier>(), use_navigate());
    move |_| {
        let Some(run) = data.run.get_untracked() else { return };
        let (flow, version) = (run.summary.flow.to_string(), run.summary.version);
        let mut context = serde_json::to_value(&run.context).unwrap_or_default();
        if let Some(members) = context.as_object_mut().filter(|_| run.context.metadata.is_empty()) {
            members.remove("metadata");
        }
        let filled = [("input".to_owned(), Value::Object(run.input)), ("context".to_owned(), context)];
        let filled: JsonMap = filled.into_iter().collect();
        let form = Form::Launch((flow.clone(), version));
        if workspace.form(&form).is_some_and(|typed| typed != filled) {
            notifier.bad("The form of this flow holds other values. Launch that run or clear the form first.");
            return;
        }
        // The input may contain a password, so it is not stored in the browser.
        workspace.write_form(&form, Some(filled), true);
        navigate(&format!("/flows/{flow}?version={version}"), NavigateOptions::default());
    }
}

/// Why the run ended, or the reviews that it waits for.
#[component]
pub fn Outcome(data: RunData) -> impl IntoView {
    let session = expect_context::<Session>();
    let ended = move || {
        data.run.with(|run| {
            let run = run.as_ref()?;
            match run.summary.status {
                RunStatus::Failed => {
                    let error = run.summary.error.clone()?;
                    if let Some(ending) = Ending::of(Some(&error)) {
                        let me = session.username();
                        let said = data.report.with(|report| {
                            let reviews = &report.as_ref()?.reviews;
                            let at = |review: &Review| review.resolution.as_ref().map(|resolution| resolution.at);
                            let last = reviews.iter().filter(|review| review.node == error.node).max_by_key(|one| at(one))?;
                            let resolution = last.resolution.as_ref()?;
                            let expired = resolution.outcome == review::Outcome::Expired;
                            if expired && ending == Ending::TimedOut {
                                return Some(sentence(&effects::timed_out(last)));
                            }
                            let said = outcomes::resolution_first(last, resolution, me.as_deref(), Quotes::Whole);
                            // The reason is added, unless the text has it already; an expiry has no reason.
                            let is_told = expired || said.contains(error.message.trim_end_matches('.'));
                            Some(if is_told { said } else { format!("{said}. {}", sentence(&error.message)) })
                        });
                        let says = said.unwrap_or_else(|| sentence(&error.message));
                        return Some(view! {
                            <div class="banner" role="status">
                                <Glyph icon=icondata::LuBan/>
                                <span class="grow"><b>{ending_word(ending)}</b>". "{inert_code(&says)}</span>
                            </div>
                        }
                        .into_any());
                    }
                    let node = error.node.map(|node| format!(" at {}", node.place())).unwrap_or_default();
                    Some(view! {
                        <div class="banner stop" role="status">
                            <Glyph icon=icondata::LuOctagonX/>
                            <span class="grow">{inert_code(&sentence(&error.message))}</span>
                            <code>{error.code.as_str()}{node}</code>
                        </div>
                    }
                    .into_any())
                }
                RunStatus::Cancelled => {
                    let reason = run.cancel_reason.clone().unwrap_or_else(|| "No reason was given.".to_owned());
                    Some(view! {
                        <div class="banner" role="status"><Glyph icon=icondata::LuBan/><span>"Cancelled. "{inert(&reason)}</span></div>
                    }
                    .into_any())
                }
                _ => None,
            }
        })
    };
    // The places in the report; a review is read when it is rendered, once for each of its versions.
    let pending = move || {
        data.report.with(|report| {
            let reviews = report.iter().flat_map(|report| report.reviews.iter().enumerate());
            let pending = reviews.filter(|(_, review)| review.is_pending());
            pending.map(|(index, review)| (index, review.id, review.version)).collect::<Vec<_>>()
        })
    };
    let review_at =
        move |index: usize| data.report.with_untracked(|report| report.as_ref()?.reviews.get(index).cloned());
    view! {
        {ended}
        <div class="waits" aria-live="polite">
            <For each=pending key=|(_, id, version)| (*id, *version) let:line>
                {review_at(line.0).map(|review| view! { <Waits review/> })}
            </For>
        </div>
    }
}

/// A pending review: its title, its reviewers, and the time left. A handed-off review keeps nothing waiting.
#[component]
fn Waits(review: Review) -> impl IntoView {
    let live = expect_context::<Live>();
    let session = expect_context::<Session>();
    let whom = words::whom(&review.reviewers);
    let asked = if whom.is_empty() { "any reviewer".to_owned() } else { whom.join(", ") };
    let expires = review.expires_at;
    let then = effects::at_deadline(&review).unwrap_or_default();
    let left = move || {
        let left = words::left(live.now.get(), expires?);
        Some(left.map_or_else(|| format!("expired: {then}"), |left| format!("{left} left, then {then}")))
    };
    let href = format!("/reviews/{}", review.id);
    let title = inert(&review.title);
    let waits = review.kind.blocks();
    let (class, how, takes) = if waits {
        ("banner warn wait", " waits for ", "Decide")
    } else {
        ("banner wait", ", handed off to ", "Take it")
    };
    let icon = if waits { icondata::LuUserRound } else { icondata::LuArrowRight };
    let decides = Memo::new(move |_| session.may(Act::Decide(&review)));
    view! {
        <div class=class>
            <Glyph icon=icon/>
            <span class="grow"><b>{title}</b>{how}{inert(&asked)}{move || left().map(|left| format!(", {left}"))}</span>
            <a href=href class="b" class:primary=decides>{move || if decides.get() { takes } else { "View" }}</a>
        </div>
    }
}
