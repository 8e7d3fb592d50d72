//! The list of the inbox: rows that come, change and leave in place.

use leptos::prelude::*;
use shared::api::{MAX_LIMIT, ReviewQuery};
use shared::definition::Severity;
use shared::id::ReviewId;
use shared::review::{Outcome, Review, ReviewStatus};
use shared::time::Timestamp;

use super::glyph::Glyph;
use super::notice::Notifier;
use crate::client::{Desk, Live, Session, use_api};
use crate::state::filter::SOON;
use crate::state::inbox::{Inbox, Row};
use crate::state::outbox::Stage;
use crate::state::story::sentence;
use crate::state::words;

/// For so long a row that has just come is lit, in microseconds.
const FRESH: i64 = 8_000_000;

/// The rows.
#[component]
pub fn Queue(
    /// In the order of the list.
    #[prop(into)]
    rows: Signal<Vec<Row>>,
    /// Which one is read.
    #[prop(into)]
    open: Signal<Option<ReviewId>>,
    /// Which one the keys stand on.
    #[prop(into)]
    at: Signal<Option<ReviewId>>,
) -> impl IntoView {
    let ids = Memo::new(move |_| rows.with(|rows| rows.iter().map(|row| row.review.id).collect::<Vec<_>>()));
    // Whether somebody has drafted something is shown on the row.
    let drafted = Memo::new(move |_| {
        let drafts = Desk::expect().drafts;
        ids.with(|ids| {
            drafts.with(|drafts| ids.iter().copied().filter(|id| drafts.get(*id).is_some()).collect::<Vec<_>>())
        })
    });
    view! {
        <ul class="rows" role="list">
            <For each=move || ids.get() key=|id| *id let:id>
                <QueueRow
                    row=Memo::new(move |_| rows.with(|rows| rows.iter().find(|row| row.review.id == id).cloned()))
                    open=Memo::new(move |_| open.get() == Some(id))
                    at=Memo::new(move |_| at.get() == Some(id))
                    drafted=Memo::new(move |_| drafted.with(|drafted| drafted.contains(&id)))
                    id=id
                />
            </For>
            <More />
        </ul>
    }
}

/// Loads what the first page did not show.
#[component]
fn More() -> impl IntoView {
    let live = Live::expect();
    let api = use_api();
    let notifier = Notifier::expect();
    let unseen = Memo::new(move |_| live.inbox.with(Inbox::unseen));
    let load = Action::new_local(move |(): &()| async move {
        let mut query =
            ReviewQuery { status: Some(ReviewStatus::Pending), limit: Some(MAX_LIMIT), ..ReviewQuery::default() };
        loop {
            match api.reviews(&query).await {
                Ok(page) => {
                    live.inbox.update(|inbox| page.items.into_iter().for_each(|review| inbox.read(review)));
                    query.cursor = page.next_cursor;
                }
                Err(problem) => {
                    notifier.bad(problem.to_string());
                    break;
                }
            }
            if query.cursor.is_none() || live.inbox.with_untracked(Inbox::unseen) == 0 {
                break;
            }
        }
    });
    let busy = load.pending();
    view! {
        <Show when=move || { unseen.get() > 0 }>
            <li class="more">
                <button class="b sm" disabled=busy on:click=move |_| { load.dispatch_local(()); }>
                    {move || format!("Show {} more", unseen.get())}
                </button>
            </li>
        </Show>
    }
}

#[component]
fn QueueRow(
    id: ReviewId,
    row: Memo<Option<Row>>,
    open: Memo<bool>,
    at: Memo<bool>,
    drafted: Memo<bool>,
) -> impl IntoView {
    let live = Live::expect();
    let session = Session::expect();
    let desk = Desk::expect();
    let class = move || {
        row.with(|row| {
            let Some(row) = row else { return String::new() };
            let now = live.now.get();
            let mut class = "row".to_owned();
            for (set, name) in [
                (open.get(), " on"),
                (at.get(), " at"),
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
    let title = Memo::new(move |_| row.with(|row| row.as_ref().map(|row| headline(&row.review)).unwrap_or_default()));
    let flow = Memo::new(move |_| row.with(|row| row.as_ref().map(|row| subline(&row.review)).unwrap_or_default()));
    let time = move || row.with(|row| row.as_ref().map(|row| time(row, live.now.get())));
    let more = move || {
        let me = session.username();
        let held = desk.outbox.with(|outbox| {
            matches!(outbox.get(id).map(|sending| &sending.stage), Some(Stage::Held(_) | Stage::Sending))
        });
        if held {
            return "your decision is about to be sent".to_owned();
        }
        row.with(|row| row.as_ref().map(|row| detail(row, me.as_deref(), live.now.get())).unwrap_or_default())
    };
    let mark = move || {
        row.with(|row| {
            let resolution = row.as_ref().and_then(|row| row.review.resolution.as_ref())?;
            Some(match resolution.outcome {
                Outcome::Accepted | Outcome::Answered | Outcome::Decided => ("go", icondata::LuCheck),
                Outcome::Corrected => ("warn", icondata::LuUndo2),
                _ => ("muted", icondata::LuX),
            })
        })
    };
    view! {
        <li>
            <a
                href=format!("/reviews/{id}")
                class=class
                id=format!("row-{id}")
                aria-current=move || open.get().then_some("true")
            >
                <i aria-hidden="true"></i>
                <b>
                    {move || mark().map(|(class, icon)| view! { <span class=class><Glyph icon=icon /></span>" " })}
                    {title}
                </b>
                <span class=move || if time().is_some_and(|time| time.1) { "t soon" } else { "t" }>
                    {move || time().map(|time| time.0)}
                </span>
                <p>{flow}</p>
                <span class="m">
                    {move || drafted.get().then(|| view! { <span class="accent" title="You have started to write something here"><Glyph icon=icondata::LuPencil />" "</span> })}
                    {more}
                </span>
            </a>
        </li>
    }
}

fn headline(review: &Review) -> String {
    review.title.clone()
}

fn subline(review: &Review) -> String {
    review.flow_title.clone().or_else(|| review.flow.as_ref().map(ToString::to_string)).unwrap_or_default()
}

/// What stands at the right, and whether it is urgent.
fn time(row: &Row, now: Timestamp) -> (String, bool) {
    let review = &row.review;
    if let Some(resolution) = &review.resolution {
        return (words::ago(now, resolution.at), false);
    }
    match review.expires_at {
        Some(at) => (words::left(now, at).unwrap_or_else(|| "time is up".into()), at.0 - now.0 < SOON),
        None => (words::ago(now, review.created_at), false),
    }
}

/// The third line.
fn detail(row: &Row, me: Option<&str>, now: Timestamp) -> String {
    let review = &row.review;
    if row.gone {
        return "no longer yours to see".to_owned();
    }
    if let Some(resolution) = &review.resolution {
        return sentence(&words::resolution(review, resolution, me));
    }
    if review.status != ReviewStatus::Pending {
        return review.status.as_str().to_owned();
    }
    let mut parts = Vec::new();
    if review.problem.is_some() {
        parts.push("nobody can decide this".to_owned());
    }
    if let Some(claim) = review.claimed_by.as_ref().filter(|claim| claim.until > now) {
        parts.push(if me == Some(claim.by.as_str()) {
            "you are on it".to_owned()
        } else {
            format!("{} is on it", claim.by)
        });
    }
    if review.decisions.iter().any(|vote| me == Some(vote.by.as_str())) {
        parts.push("you have voted".to_owned());
    }
    // Not by the colour of the row alone (WCAG 1.4.1).
    if review.stakes.severity >= Severity::High {
        parts.push(review.stakes.severity.as_str().to_owned());
    }
    if review.stakes.reversible == Some(false) {
        parts.push("cannot be undone".to_owned());
    }
    // The title says it too, where there is room for all of it.
    parts.extend(words::item(review.part));
    parts.extend(words::round(review));
    if !review.reviewers.roles.is_empty() {
        parts.push(format!("for {}", review.reviewers.roles.join(", ")));
    }
    // Mostly the title says it: it begins with the question.
    let prompt = plain(&review.prompt);
    let said = |word: &str| review.title.contains(word.trim_matches(|c: char| !c.is_alphanumeric()));
    if !prompt.split_whitespace().take(4).all(said) {
        parts.push(prompt);
    }
    parts.join(" · ")
}

/// The beginning of a prompt, without its markup.
fn plain(markdown: &str) -> String {
    let words: String = markdown.chars().filter(|c| !matches!(c, '*' | '#' | '`')).collect();
    words::cut(&words)
}
