//! The timeline of a run, in one column: its start, every visit of every node, every decision, its end.

use leptos::prelude::*;
use shared::decision::Decision;
use shared::id::{ReviewId, StepId, Username};
use shared::review::{Resolution, Review};
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
use crate::state::streams::{StreamText, Streams};
use crate::state::words;

/// What a line of the timeline is about, with what changes when the line must be rendered again. The rest is read from
/// the run and its report when the line is rendered.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum TimelineEvent {
    Started,
    Decided { review: ReviewId, by: Username },
    Resolved(ReviewId),
    Step { id: StepId, status: StepStatus, tries: u32, duration_ms: Option<u64>, note: Option<String> },
    Ended(RunStatus),
}

#[derive(Debug)]
struct TimelineLine {
    at: Timestamp,
    event: TimelineEvent,
    /// The index of its step or review in the report of which the line was made.
    index: usize,
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
    let lines = move || run.with(|run| report.with(|report| lines(run.as_ref(), report.as_ref())));
    view! {
        <ol class="timeline">
            // A line is rendered again only when its content changes.
            <For each=lines key=|line| (line.at, line.event.clone()) let:line>
                {line_view(line, run, report, streams)}
            </For>
        </ol>
    }
}

fn lines(run: Option<&Run>, report: Option<&Report>) -> Vec<TimelineLine> {
    let mut lines = Vec::new();
    let mut add = |at, index, event| lines.push(TimelineLine { at, event, index });
    if let Some(run) = run {
        add(run.summary.created_at, 0, TimelineEvent::Started);
        if let Some(at) = run.summary.ended_at {
            add(at, 0, TimelineEvent::Ended(run.summary.status));
        }
    }
    if let Some(report) = report {
        for (index, step) in report.steps.iter().enumerate() {
            let Step { id, status, tries, duration_ms, .. } = *step;
            let note = step.note.clone();
            add(step.started_at, index, TimelineEvent::Step { id, status, tries, duration_ms, note });
        }
        for (index, review) in report.reviews.iter().enumerate() {
            for decision in &review.decisions {
                add(decision.at, index, TimelineEvent::Decided { review: review.id, by: decision.by.clone() });
            }
            if let Some(resolution) = review.resolution.as_ref().filter(|resolution| resolution.decision.is_none()) {
                add(resolution.at, index, TimelineEvent::Resolved(review.id));
            }
        }
    }
    // Everything in one commit has the same time; a decision comes before the step that it starts.
    lines.sort_by_key(|line| {
        let rank = match line.event {
            TimelineEvent::Started => 0,
            TimelineEvent::Decided { .. } | TimelineEvent::Resolved(_) => 1,
            TimelineEvent::Step { .. } => 2,
            TimelineEvent::Ended(_) => 3,
        };
        (rank == 3, line.at, rank)
    });
    lines
}

/// Renders a line. This happens as soon as the lines are made, so the index is still right.
fn line_view(
    TimelineLine { at, event, index }: TimelineLine,
    run: Signal<Option<Run>>,
    report: Signal<Option<Report>>,
    streams: Signal<Streams>,
) -> Option<AnyView> {
    match event {
        TimelineEvent::Started => run.with_untracked(|run| run.as_ref().map(|run| started_view(at, run))),
        TimelineEvent::Ended(_) => run.with_untracked(|run| run.as_ref().map(|run| ended_view(at, run))),
        TimelineEvent::Step { .. } => {
            let step = report.with_untracked(|report| report.as_ref()?.steps.get(index).cloned())?;
            Some(step_view(at, step, streams))
        }
        TimelineEvent::Decided { by, .. } => report.with_untracked(|report| {
            let review = report.as_ref()?.reviews.get(index)?;
            let decision = review.decisions.iter().find(|decision| decision.at == at && decision.by == by)?;
            Some(decided_view(at, review, decision))
        }),
        TimelineEvent::Resolved(_) => report.with_untracked(|report| {
            let review = report.as_ref()?.reviews.get(index)?;
            Some(resolved_view(at, review, review.resolution.as_ref()?))
        }),
    }
}

fn started_view(at: Timestamp, run: &Run) -> AnyView {
    let who = run.summary.requested_by.to_string();
    line(at, "", (), view! { <p><b>{who}</b>" launched the run"</p> })
}

fn ended_view(at: Timestamp, run: &Run) -> AnyView {
    let (class, what) = match run.summary.status {
        RunStatus::Completed => ("go end", "The run completed"),
        RunStatus::Failed => match Ending::of(run.summary.error.as_ref()) {
            Some(Ending::Rejected) => ("end", "The run ended: rejected"),
            Some(Ending::TimedOut) => ("end", "The run ended: expired"),
            None => ("stop end", "The run failed"),
        },
        _ => ("end", "The run was cancelled"),
    };
    let why = run.cancel_reason.as_ref().map(|why| view! { <blockquote>{inert(why)}</blockquote> });
    line(at, class, (), view! { <p><b>{what}</b></p>{why} })
}

fn decided_view(at: Timestamp, review: &Review, decision: &Decision) -> AnyView {
    let (what, tone) = story::decided(review, decision);
    let by = words::authors_first(&[decision.into()], None) + story::channel(decision.via);
    let (words, values) = sent::with(review, decision).into_iter().partition::<Vec<_>, _>(|one| one.is_words);
    let words = words.iter().map(|one| view! { <blockquote>{inert(&words::plain(&one.value))}</blockquote> });
    line(
        at,
        tone_class(tone),
        (),
        view! {
            <p><b>{by}</b>" "<a href=format!("/reviews/{}", review.id)>{inert(&what)}</a></p>
            {words.collect_view()}
            {(!values.is_empty()).then(|| sent_list(&values))}
        },
    )
}

fn resolved_view(at: Timestamp, review: &Review, resolution: &Resolution) -> AnyView {
    let (what, tone) = story::resolved(review, resolution);
    let href = format!("/reviews/{}", review.id);
    line(at, tone_class(tone), (), view! { <p><a href=href>{inert(&sentence(&what))}</a></p> })
}

fn tone_class(tone: EventTone) -> &'static str {
    match tone {
        EventTone::Go => "person go",
        EventTone::Again => "person warn",
        EventTone::Stop => "person stop",
        EventTone::Plain => "person",
    }
}

fn line(at: Timestamp, class: &str, mark: impl IntoView + 'static, content: impl IntoView + 'static) -> AnyView {
    view! {
        <li class=format!("line {class}")>
            <time datetime=at.to_string() title=full(at)>{clock_to_second(at)}</time>
            <span class="mark" aria-hidden="true">{mark}</span>
            <div>{content}</div>
        </li>
    }
    .into_any()
}

fn step_view(at: Timestamp, step: Step, streams: Signal<Streams>) -> AnyView {
    let live = expect_context::<Live>();
    let (class, status) = match step.status {
        StepStatus::Running => ("now", Some("running")),
        StepStatus::Waiting => ("warn", Some("waits for a person")),
        StepStatus::Retrying => ("warn", Some("retrying soon")),
        StepStatus::Completed => ("done", None),
        StepStatus::Failed => match Ending::of(step.error.as_ref()) {
            Some(Ending::Rejected) => ("", Some("rejected")),
            Some(Ending::TimedOut) => ("", Some("expired")),
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
    let of = node.clone();
    let changes = Memo::new(move |_| open.then(|| streams.with(|streams| streams.changes(&of, visit))));
    let stream = move |streams: &Streams| {
        let texts = streams.get(&node, visit);
        let several = texts.len() > 1;
        let text = |stream: &StreamText| {
            view! {
                {several.then(|| view! { <p class="note">{inert(&stream.agent)}</p> })}
                <div class="stream" aria-label=format!("What {} writes now", stream.agent)>
                    // A single child lets the box keep its end visible.
                    <div>{(stream.start > 0).then_some("… ")}{inert(&stream.text)}<span class="caret"></span></div>
                </div>
            }
        };
        texts.into_iter().map(text).collect_view()
    };
    let mark = view! { <svg viewBox="-1 -1 14 14"><path d=glyph(&step.kind)/></svg> };
    let content = view! {
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
        {move || changes.get().map(|_| streams.with_untracked(&stream))}
    };
    line(at, &format!("step {class}"), mark, content)
}
