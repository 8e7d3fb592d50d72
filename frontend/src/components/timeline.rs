//! The timeline of a run, in one column: its start, every visit of every node, every decision, its end.

use leptos::prelude::*;
use shared::decision::Decision;
use shared::review::Review;
use shared::run::{Report, Run, RunStatus, Step, StepStatus};
use shared::time::Timestamp;

use super::graph::glyph;
use super::inert::{inert, inert_code};
use super::review::sent::sent as sent_list;
use super::time::{clock_to_second, full};
use crate::client::Live;
use crate::state::ending::Ending;
use crate::state::sent;
use crate::state::sentences::sentence;
use crate::state::story::{self, EventTone};
use crate::state::streams::Streams;
use crate::state::words;

/// One line of the timeline.
#[derive(Debug, Clone, PartialEq)]
enum Event {
    Started(Box<Run>),
    Step(Step),
    Decided { review: Box<Review>, decision: Box<Decision> },
    Resolved(Box<Review>),
    Ended(Box<Run>),
}

/// The history of a run as a list: its start and end, its steps, and the decisions on its reviews.
#[component]
pub fn Timeline(
    /// The run, for its start and end.
    run: Signal<Option<Run>>,
    /// Its steps and reviews.
    report: Signal<Option<Report>>,
    /// The streamed text of running agents.
    streams: Signal<Streams>,
) -> impl IntoView {
    let events = move || run.with(|run| report.with(|report| events(run.as_ref(), report.as_ref())));
    view! {
        <ol class="timeline">
            // A line is rendered again only when its content changes.
            <For each=events key=|(at, event)| (*at, identity(event)) let:line>
                {line_view(line.0, line.1, streams)}
            </For>
        </ol>
    }
}

fn events(run: Option<&Run>, report: Option<&Report>) -> Vec<(Timestamp, Event)> {
    let mut events = Vec::new();
    if let Some(run) = run {
        events.push((run.summary.created_at, Event::Started(Box::new(run.clone()))));
    }
    if let Some(report) = report {
        events.extend(report.steps.iter().map(|step| (step.started_at, Event::Step(step.clone()))));
        for review in &report.reviews {
            for decision in &review.decisions {
                let event = Event::Decided { review: Box::new(review.clone()), decision: Box::new(decision.clone()) };
                events.push((decision.at, event));
            }
            if let Some(resolution) = review.resolution.as_ref().filter(|resolution| resolution.decision.is_none()) {
                events.push((resolution.at, Event::Resolved(Box::new(review.clone()))));
            }
        }
    }
    if let Some(run) = run
        && let Some(at) = run.summary.ended_at
    {
        events.push((at, Event::Ended(Box::new(run.clone()))));
    }
    // Everything in one commit has the same time; a decision comes before the step that it starts.
    events.sort_by_key(|(at, event)| {
        let rank = match event {
            Event::Started(_) => 0,
            Event::Decided { .. } | Event::Resolved(_) => 1,
            Event::Step(_) => 2,
            Event::Ended(_) => 3,
        };
        (rank == 3, *at, rank)
    });
    events
}

/// The key of a line: it changes when the line must be rendered again.
fn identity(event: &Event) -> String {
    match event {
        Event::Started(run) => format!("started {}", run.summary.id),
        Event::Step(step) => {
            format!("{} {:?} {} {:?} {:?}", step.id, step.status, step.tries, step.duration_ms, step.note)
        }
        Event::Decided { review, decision } => format!("decided {} {}", review.id, decision.by),
        Event::Resolved(review) => format!("resolved {}", review.id),
        Event::Ended(run) => format!("ended {}", run.summary.status.as_str()),
    }
}

fn line_view(at: Timestamp, event: Event, streams: Signal<Streams>) -> AnyView {
    match event {
        Event::Started(run) => {
            let who = run.summary.requested_by.to_string();
            line(at, "", view! { <p><b>{who}</b>" started the run"</p> })
        }
        Event::Step(step) => step_view(at, step, streams),
        Event::Decided { review, decision } => {
            let (what, tone) = story::decided(&review, &decision);
            let by = format!("{}{}", decision.by, story::channel(decision.via));
            let (words, values) = sent::with(&review, &decision).into_iter().partition::<Vec<_>, _>(|one| one.is_words);
            let words = words.iter().map(|one| view! { <blockquote>{inert(&words::plain(&one.value))}</blockquote> });
            line(
                at,
                tone_class(tone),
                view! {
                    <p><b>{by}</b>" "<a href=format!("/reviews/{}", review.id)>{inert(&what)}</a></p>
                    {words.collect_view()}
                    {(!values.is_empty()).then(|| sent_list(&values))}
                },
            )
        }
        Event::Resolved(review) => {
            let Some(resolution) = review.resolution.as_ref() else { return ().into_any() };
            let (what, tone) = story::resolved(&review, resolution);
            line(
                at,
                tone_class(tone),
                view! { <p><a href=format!("/reviews/{}", review.id)>{inert(&sentence(&what))}</a></p> },
            )
        }
        Event::Ended(run) => {
            let (class, what) = match run.summary.status {
                RunStatus::Completed => ("go end", "The run completed"),
                RunStatus::Failed => match Ending::of(run.summary.error.as_ref()) {
                    Some(Ending::Rejected) => ("end", "The run ended: rejected"),
                    Some(Ending::TimedOut) => ("end", "The run ended: timed out"),
                    None => ("stop end", "The run failed"),
                },
                _ => ("end", "The run was cancelled"),
            };
            let why = run.cancel_reason.clone();
            line(
                at,
                class,
                view! { <p><b>{what}</b></p>{why.map(|why| view! { <blockquote>{inert(&why)}</blockquote> })} },
            )
        }
    }
}

fn tone_class(tone: EventTone) -> &'static str {
    match tone {
        EventTone::Go => "person go",
        EventTone::Again => "person warn",
        EventTone::Stop => "person stop",
        EventTone::Plain => "person",
    }
}

fn line(at: Timestamp, class: &'static str, content: impl IntoView + 'static) -> AnyView {
    view! {
        <li class=format!("line {class}")>
            <time datetime=at.to_string() title=full(at)>{clock_to_second(at)}</time>
            <span class="mark" aria-hidden="true"></span>
            <div>{content}</div>
        </li>
    }
    .into_any()
}

fn step_view(at: Timestamp, step: Step, streams: Signal<Streams>) -> AnyView {
    let live = Live::expect();
    let (class, status) = match step.status {
        StepStatus::Running => ("now", Some("running")),
        StepStatus::Waiting => ("warn", Some("waits for a person")),
        StepStatus::Retrying => ("warn", Some("retrying soon")),
        StepStatus::Completed => ("done", None),
        StepStatus::Failed => match Ending::of(step.error.as_ref()) {
            Some(Ending::Rejected) => ("", Some("rejected")),
            Some(Ending::TimedOut) => ("", Some("timed out")),
            None => ("stop", Some("failed")),
        },
        StepStatus::Cancelled => ("", Some("ended with the run")),
    };
    let open = matches!(step.status, StepStatus::Running | StepStatus::Waiting | StepStatus::Retrying);
    let fixed = step.duration_ms;
    let took = move || match fixed {
        Some(0) => String::new(),
        Some(ms) => words::duration_ms(ms),
        None if open => {
            words::duration_ms(u64::try_from(live.now.get().since(at).as_millis()).unwrap_or(u64::MAX) / 1000 * 1000)
        }
        None => String::new(),
    };
    // The line of the decision already says what became of a person's answer.
    let note = step.note.filter(|_| step.kind != "human" || step.status != StepStatus::Completed);
    // A note that repeats the error is left out.
    let note = note.filter(|note| step.error.as_ref().is_none_or(|error| error.message != *note));
    // The gate of a flow's output is recorded as a step of kind `return`.
    let kind = if step.kind == "return" { "output".to_owned() } else { step.kind.clone() };
    let (node, visit) = (step.node.to_string(), step.visit);
    let mut tags = words::visit(step.part, visit);
    // Several calls of one flow differ only in the visit of the calling node.
    let call = step.node.caller().filter(|(_, call)| step.part.is_none() && *call > 1);
    tags.extend(call.map(|(_, call)| format!("call {call}")));
    let stream = Memo::new(move |_| open.then(|| streams.with(|streams| streams.get(&node, visit).cloned())).flatten());
    view! {
        <li class=format!("line step {class}")>
            <time datetime=at.to_string() title=full(at)>{clock_to_second(at)}</time>
            <span class="mark" aria-hidden="true"><svg viewBox="-1 -1 14 14"><path d=glyph(&step.kind)/></svg></span>
            <div>
                <p>
                    <b>{step.node.place()}</b>" "<span class="muted">{kind}</span>
                    {tags.into_iter().map(|text| view! { <span class="tag">{text}</span> }).collect_view()}
                    {(step.tries > 1).then(|| view! { <span class="tag warn">{step.tries}" tries"</span> })}
                    {status.map(|status| view! { <span class=format!("tag {}", if class == "now" { "accent" } else { class })>{status}</span> })}
                    <span class="took muted">{took}</span>
                </p>
                {note.map(|note| view! { <p class="note">{inert_code(&note)}</p> })}
                {step.error.map(|error| match Ending::of(Some(&error)) {
                    Some(_) => view! { <p class="note">{inert_code(&sentence(&error.message))}</p> }.into_any(),
                    None => view! { <p class="note stop"><code>{error.code.as_str()}</code>" "{inert_code(&error.message)}</p> }.into_any(),
                })}
                {move || stream.get().map(|stream| view! {
                    <div class="stream" aria-label="What the agent writes now">
                        // A single child lets the box keep its end visible.
                        <div>{(stream.start > 0).then_some("… ")}{inert(&stream.text)}<span class="caret"></span></div>
                    </div>
                })}
            </div>
        </li>
    }
    .into_any()
}
