//! A row of the inbox: the question, its flow, what is at stake, and the remaining time.

use leptos::prelude::*;
use shared::author::Author;
use shared::decision::Via;
use shared::definition::{OnTimeout, Severity};
use shared::id::ReviewId;
use shared::inbox::SOON;
use shared::review::{Outcome, ReviewKind, ReviewStatus};
use shared::time::Timestamp;

use super::around::Around;
use super::select_box::SelectBox;
use crate::client::{GlobalSignal, Live};
use crate::components::glyph::Glyph;
use crate::components::inert::inert;
use crate::components::selecting::Selecting;
use crate::state::distinction::{distinction, untitled_prompt};
use crate::state::inbox::{InboxRow, address};
use crate::state::outcomes::{self, Quotes};
use crate::state::{record, words};

/// How long a new row is highlighted, in microseconds.
const FRESH: i64 = 8_000_000;

#[component]
pub fn QueueRow(
    id: ReviewId,
    /// The state of the page around the row.
    around: GlobalSignal<Around>,
    selecting: Selecting,
) -> impl IntoView {
    let live = expect_context::<Live>();
    let row = Memo::new(move |_| live.inbox.with(|inbox| inbox.get(id).cloned()));
    // A row that leaves the list keeps its last index.
    let index = Memo::new(move |before: Option<&usize>| {
        live.inbox.with(|inbox| inbox.index(id)).or(before.copied()).unwrap_or_default()
    });
    let here = Memo::new(move |_| around.with(|around| around.of(id)));
    let class = move || {
        row.with(|row| {
            let Some(row) = row else { return String::new() };
            let now = live.now.get();
            let (open, at) = here.with(|here| (here.open, here.at));
            let mut class = "row".to_owned();
            for (set, name) in [
                (open, " on"),
                (at, " at"),
                (row.review.stakes.severity == Severity::High, " high"),
                (row.review.stakes.severity == Severity::Critical, " critical"),
                (!row.review.is_pending() || row.gone, " done"),
                (row.arrived.is_some_and(|at| now.0 - at.0 < FRESH), " fresh"),
            ] {
                if set {
                    class.push_str(name);
                }
            }
            class
        })
    };
    let title =
        Memo::new(move |_| row.with(|row| row.as_ref().map(|row| row.review.title.clone()).unwrap_or_default()));
    let flow =
        Memo::new(move |_| row.with(|row| row.as_ref().map(|row| words::origin(&row.review)).unwrap_or_default()));
    let run = Memo::new(move |_| row.with(|row| row.as_ref().and_then(|row| row.review.run_id)));
    // A memo, since values may be long and the row is rendered every second.
    let about = Memo::new(move |_| row.with(|row| row.as_ref().and_then(|row| distinction(&row.review))));
    let time = move || row.with(|row| row.as_ref().map(|row| time(row, live.now.get())));
    let more = move || {
        let (sending, me) = here.with(|here| (here.sending, here.me.clone()));
        if sending {
            return "sending your decision soon".to_owned();
        }
        let detail = row.with(|row| {
            row.as_ref().map(|row| detail(row, about.get(), me.as_deref(), live.now.get())).unwrap_or_default()
        });
        if here.with(|here| here.unsent) {
            return format!("your decision is kept here{}{detail}", if detail.is_empty() { "" } else { " · " });
        }
        // The mark of a draft needs a word beside it.
        if detail.is_empty() && here.with(|here| here.drafted) { "your draft".to_owned() } else { detail }
    };
    // Such a review waits in vain until somebody changes something, so it stands out.
    let stuck = Memo::new(move |_| {
        let is_stuck = |row: &InboxRow| row.review.problem.is_some() && row.review.is_pending() && !row.gone;
        row.with(|row| row.as_ref().is_some_and(is_stuck))
    });
    let mark = move || {
        row.with(|row| {
            let resolution = row.as_ref().and_then(|row| row.review.resolution.as_ref())?;
            let review = row.as_ref().map(|row| &row.review);
            Some(match resolution.outcome {
                _ if resolution.via == Via::Timeout => match review.and_then(|review| review.on_timeout.as_ref()) {
                    Some(OnTimeout::Approve) => ("go", icondata::LuCheck),
                    Some(OnTimeout::Follow | OnTimeout::Goto { .. }) => ("muted", icondata::LuClock),
                    _ => ("muted", icondata::LuX),
                },
                Outcome::Accepted if review.is_some_and(|review| review.has_several_ways()) => {
                    ("muted", icondata::LuCheck)
                }
                // `Decided` need not mean approval: every call may have been rejected, or blocked by a guardrail.
                Outcome::Decided | Outcome::Accepted
                    if review.is_some_and(|review| record::nothing_happens(review)) =>
                {
                    ("muted", icondata::LuX)
                }
                Outcome::Accepted | Outcome::Answered | Outcome::Decided => ("go", icondata::LuCheck),
                Outcome::Corrected => ("warn", icondata::LuUndo2),
                _ => ("muted", icondata::LuX),
            })
        })
    };
    view! {
        <li
            style:top=move || format!("calc(var(--row) * {})", index.get())
            aria-posinset=move || index.get() + 1
            aria-setsize=move || here.with(|here| here.total).map_or_else(|| "-1".to_owned(), |total| total.to_string())
        >
            <SelectBox id row around selecting />
            <a
                href=move || here.with(|here| address::review(id, &here.search))
                class=class
                tabindex=move || if here.with(|here| here.stop) { "0" } else { "-1" }
                id=format!("row-{id}")
                aria-current=move || here.with(|here| here.open).then_some("true")
            >
                <i aria-hidden="true"></i>
                <b dir="auto">
                    {move || mark().map(|(class, icon)| view! { <span class=class><Glyph icon=icon /></span>" " })}
                    {move || inert(&title.get())}
                </b>
                <span class=move || if time().is_some_and(|time| time.1) { "t soon" } else { "t" }>
                    {move || time().map(|time| view! { {time.0}{time.2.then(|| view! { <span class="sr">" left"</span> })} })}
                </span>
                <p>
                    <span class="cut">{move || inert(&flow.get())}</span>
                    {move || run.get().map(|run| view! { <span class="tail">{format!("run {}", words::tail(run))}</span> })}
                </p>
                <span class="m">
                    {move || here.with(|here| here.unsent).then(|| view! { <span class="unsent-mark">"not sent"</span>" " })}
                    {move || here.with(|here| here.drafted).then(|| view! { <span class="accent" title="You have a draft here"><Glyph icon=icondata::LuPencil />" "</span> })}
                    {move || stuck.get().then(|| view! { <span class="stuck">"nobody can decide this"</span>" · " })}
                    {move || inert(&more())}
                </span>
            </a>
        </li>
    }
}

/// The time at the right of the row, whether it is urgent, and whether it is the time left.
fn time(row: &InboxRow, now: Timestamp) -> (String, bool, bool) {
    let review = &row.review;
    if let Some(resolution) = &review.resolution {
        return (words::ago(now, resolution.at), false, false);
    }
    match review.expires_at {
        Some(at) => {
            let left = words::left(now, at);
            let is_left = left.is_some();
            (left.unwrap_or_else(|| "expired".into()), at < now.after(SOON), is_left)
        }
        None => (words::ago(now, review.created_at), false, false),
    }
}

/// The third line of the row.
fn detail(row: &InboxRow, about: Option<String>, me: Option<&str>, now: Timestamp) -> String {
    let review = &row.review;
    if row.gone {
        return "you no longer have access".to_owned();
    }
    if let Some(resolution) = &review.resolution {
        return outcomes::resolution_first(review, resolution, me, Quotes::Beginning);
    }
    if review.status != ReviewStatus::Pending {
        return review.status.as_str().to_owned();
    }
    let mut parts = Vec::new();
    if let Some(claim) = review.claimed_by.as_ref().filter(|claim| claim.until > now) {
        parts.push(format!("claimed by {}", words::authors(&[Author::from(claim)], me)));
    }
    if review.kind == ReviewKind::Handoff {
        parts.push("handed off".to_owned());
    }
    if review.paused.is_some() {
        parts.push("paused".to_owned());
    }
    if review.voting.is_some() && review.decisions.iter().any(|vote| me == Some(vote.by.as_str())) {
        parts.push("you have voted".to_owned());
    }
    // The severity must not be shown by colour alone (WCAG 1.4.1).
    if review.stakes.severity != Severity::Medium {
        parts.push(review.stakes.severity.as_str().to_owned());
    }
    // What distinguishes the review from others of its flow comes first.
    parts.extend(about);
    if review.stakes.reversible == Some(false) {
        parts.push("cannot be undone".to_owned());
    }
    // The title says it too, but it may be cut.
    parts.extend(words::item(review.part));
    parts.extend(words::round(review));
    if !review.reviewers.roles.is_empty() {
        parts.push(format!("for {}", review.reviewers.roles.join(", ")));
    }
    parts.extend(untitled_prompt(review));
    // For reviews without a flow, the second line says who asks.
    if parts.is_empty() && review.flow.is_some() {
        parts.push(format!("launched by {}", words::person(&review.requested_by, me)));
    }
    parts.join(" · ")
}
