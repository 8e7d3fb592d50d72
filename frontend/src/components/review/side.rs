//! The column beside the content: why the person is asked, the position of the run, earlier and later steps, and the
//! comments.

use leptos::prelude::*;
use shared::access::Act;
use shared::api::NewComment;
use shared::review::Review;
use shared::run::{Report, Run, StepStatus};
use shared::time::Timestamp;

use super::changed::find_round;
use super::context::{CommentList, Context};
use super::pane::Pane;
use super::took::Took;
use crate::client::use_post;
use crate::components::button::Button;
use crate::components::graph::{self, FlowGraph, Marks, NodeState};
use crate::components::inert::inert;
use crate::components::throttle::throttled;
use crate::components::time::Ago;
use crate::state::outcomes::{self, Quotes};
use crate::state::words;

/// The kinds of steps that are not listed: reviews are listed by their resolution, and the others only move values.
const QUIET: &[&str] = &["human", "set", "router"];
/// The maximum number of earlier entries.
const EARLIER: usize = 8;

/// The shortest time between two loads, in milliseconds.
const PAUSE_MS: u32 = 1000;

/// The column beside the content.
#[component]
pub fn Side(pane: Pane) -> impl IntoView {
    let run_id = pane.review.with_untracked(|review| review.run_id);
    if let Some(run) = run_id {
        pane.live.keep_run(run);
    }
    // Reloads when the review's revision or status, or the run, changes.
    let point = Memo::new(move |_| {
        let run = run_id.and_then(|id| pane.live.runs.with(|runs| runs.get(id).map(|run| run.revision)));
        (pane.review.with(|review| (review.revision, review.status)), run)
    });
    // While the run works, it changes many times a second.
    let point = throttled(point, PAUSE_MS);
    // The column is only context: if it cannot be loaded, the review can still be decided.
    let loaded = LocalResource::new(move || {
        point.track();
        async move {
            let (run, report) = futures::join!(pane.api.run(run_id?), pane.api.report(run_id?));
            Some((run.ok(), report.ok()))
        }
    });
    pane.live.on_return(move || {
        let failed = |(run, report): &(Option<Run>, Option<Report>)| run.is_none() || report.is_none();
        if loaded.with_untracked(|loaded| loaded.as_ref().and_then(Option::as_ref).is_some_and(failed)) {
            loaded.refetch();
        }
    });
    let run = Memo::new(move |known: Option<&Option<Run>>| {
        loaded.with(|loaded| loaded.as_ref()?.as_ref()?.0.clone()).or_else(|| known.cloned().flatten())
    });
    let report = Memo::new(move |known: Option<&Option<Report>>| {
        loaded.with(|loaded| loaded.as_ref()?.as_ref()?.1.clone()).or_else(|| known.cloned().flatten())
    });
    find_round(pane, report);
    let version =
        Memo::new(move |_| run.with(|run| run.as_ref().map(|run| (run.summary.flow.clone(), run.summary.version))));
    let flow = LocalResource::new(move || {
        let version = version.get();
        async move {
            let (flow, version) = version?;
            pane.api.flow(&flow, Some(version)).await.ok()?.graph
        }
    });
    let graph = Memo::new(move |_| flow.get().flatten());
    let marks = Signal::derive(move || {
        report.with(|report| run.with(|run| pane.review.with(|review| marks(review, run.as_ref(), report.as_ref()))))
    });
    view! {
        <aside class="side" aria-label="Context">
            // Before the graph, which fills the screen on a phone.
            <Context pane=pane />
            // Before parts that are loaded later, so that the field does not move while somebody types.
            <Comments pane=pane />
            {move || {
                graph
                    .get()
                    .map(|graph| {
                        view! { <section><h2 class="sub">"Graph"</h2><FlowGraph graph=graph marks=marks label="Graph" narrow=true /></section> }
                    })
            }}
            <Took pane=pane />
            <Earlier pane=pane report=report />
        </aside>
    }
}

fn marks(review: &Review, run: Option<&Run>, report: Option<&Report>) -> Marks {
    let mut marks = graph::marks(run, report);
    // A handed-off review keeps no node waiting.
    if let (Some(node), true) = (&review.node, review.is_pending() && review.kind.blocks()) {
        marks.entry(node.place()).or_default().state = NodeState::Waiting;
    }
    marks
}

/// An earlier step or decision of the run.
struct Past {
    at: Timestamp,
    who: String,
    what: String,
    person: bool,
}

fn past(review: &Review, report: &Report, me: Option<&str>) -> Vec<Past> {
    let mut all = Vec::new();
    for earlier in report.reviews.iter().filter(|other| other.id != review.id) {
        let Some(resolution) = &earlier.resolution else { continue };
        let (who, what) = match &resolution.decision {
            Some(decision) if !resolution.by.is_empty() => {
                let by = resolution.authors(&earlier.decisions);
                (words::authors_first(&by, me), outcomes::verdict(earlier, decision, Quotes::Beginning))
            }
            _ => (earlier.title.clone(), outcomes::resolution(earlier, resolution, me, Quotes::Beginning)),
        };
        let visit = words::visit(earlier.part, earlier.visit.unwrap_or(1));
        all.push(Past { at: resolution.at, who, what: with(what, &visit), person: true });
    }
    for step in
        report.steps.iter().filter(|step| !QUIET.contains(&step.kind.as_str()) && step.status == StepStatus::Completed)
    {
        let took = step.duration_ms.map(|ms| format!(" in {}", words::duration_ms(ms))).unwrap_or_default();
        let note = step.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
        let what = with(format!("done{took}"), &words::visit(step.part, step.visit)) + &note;
        let took = step.duration_ms.and_then(|ms| i64::try_from(ms).ok()).unwrap_or_default();
        let at = Timestamp(step.started_at.0.saturating_add(took.saturating_mul(1000)));
        all.push(Past { at, who: step.node.place(), what, person: false });
    }
    all.sort_by_key(|past| std::cmp::Reverse(past.at));
    all
}

fn with(what: String, visit: &[String]) -> String {
    visit.iter().fold(what, |what, visit| format!("{what}, {visit}"))
}

#[component]
fn Earlier(pane: Pane, report: Memo<Option<Report>>) -> impl IntoView {
    move || {
        let me = pane.session.username();
        let review = pane.review.get();
        let mut all = report
            .with(|report| report.as_ref().map(|report| past(&review, report, me.as_deref())))
            .unwrap_or_default();
        let more = all.len().saturating_sub(EARLIER);
        all.truncate(EARLIER);
        let first =
            report.with(|report| report.as_ref().and_then(|report| report.steps.first().map(|step| step.started_at)));
        let rows = all
            .into_iter()
            .map(|past| {
                let class = if past.person { "c" } else { "" };
                view! {
                    <li class=class>
                        <i></i>
                        <span><b>{past.who}</b>" "{inert(&past.what)}<br /><span class="muted tiny"><Ago at=past.at /></span></span>
                    </li>
                }
            })
            .collect_view();
        let start = (more == 0).then_some(first).flatten().map(|at| {
            let who = words::person_first(&review.requested_by, me.as_deref());
            view! {
                <li><i></i><span><b>{who}</b>" launched the run"<br /><span class="muted tiny"><Ago at=at /></span></span></li>
            }
        });
        let more = review.run_id.filter(|_| more > 0).map(|run| {
            view! { <li><i></i><a href=format!("/runs/{run}")>{format!("{more} more in the run")}</a></li> }
        });
        report.with(Option::is_some).then(|| {
            view! { <section><h2 class="sub">"Earlier"</h2><ol class="past">{rows}{start}{more}</ol></section> }
        })
    }
}

#[component]
fn Comments(pane: Pane) -> impl IntoView {
    // In the draft, since a session may end before the comment is sent.
    let text = Memo::new(move |_| pane.with_draft(|draft| draft.comment.clone()));
    let write = move |text: String| pane.workspace.write(&pane.review.get_untracked(), |draft| draft.comment = text);
    let (send, busy) = use_post(format!("comment on {}", pane.id), move |comment: NewComment, key| {
        let review = pane.review.get_untracked();
        async move {
            match pane.api.comment(pane.id, &comment, Some(&key)).await {
                Ok(decided) => {
                    // Text typed meanwhile is another comment.
                    pane.workspace.write(&review, |draft| {
                        if draft.comment.trim() == comment.text {
                            draft.comment.clear();
                        }
                    });
                    pane.live.inbox.update(|inbox| inbox.put(decided.review, pane.live.server_now()));
                    Ok(())
                }
                Err(problem) => {
                    pane.notifier.bad(problem.to_string());
                    Err(problem)
                }
            }
        }
    });
    let commented = Memo::new(move |_| pane.review.with(|review| !review.comments.is_empty()));
    let may =
        Memo::new(move |_| pane.review.with(|review| review.is_pending() && pane.session.may(Act::Comment(review))));
    let nothing = Signal::derive(move || busy.get() || text.with(|text| text.trim().is_empty()));
    let submit = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        let said = text.get_untracked().trim().to_owned();
        if !said.is_empty() {
            send.run(NewComment { text: said });
        }
    };
    view! {
        <Show when=move || may.get() || commented.get()>
            <section class="comments">
                <h2 class="sub">"Comments"</h2>
                <CommentList pane=pane />
                <Show when=move || may.get()>
                    <form on:submit=submit>
                        <input
                            class="input"
                            placeholder="Add a comment"
                            aria-label="Comment on this review"
                            prop:value=text
                            on:input=move |event| write(event_target_value(&event))
                        />
                        <Button class="b sm" off=nothing>"Add"</Button>
                    </form>
                </Show>
            </section>
        </Show>
    }
}
