//! Differences, shown by word for prose, by line for code, by key for JSON. Removed and added parts differ in more than
//! colour, and are announced to screen readers.

use leptos::prelude::*;
use serde_json::Value;
use shared::definition::ContentType;

use super::inert::inert;
use crate::state::diffs::{self, DiffLine, Piece, Side, ValueChange};

/// The number of unchanged lines shown around a change.
const AROUND: usize = 3;

/// The difference between two values of an item.
#[component]
pub fn Diff(
    /// How the item is shown.
    content_type: ContentType,
    old: Value,
    new: Value,
) -> impl IntoView {
    match (&old, &new) {
        (Value::Object(_) | Value::Array(_), Value::Object(_) | Value::Array(_)) => {
            diffs::keys(&old, &new).into_iter().map(change).collect_view().into_any()
        }
        _ => value(content_type, &old, &new),
    }
}

/// The difference between two values that are compared as texts.
fn value(content_type: ContentType, old: &Value, new: &Value) -> AnyView {
    let (before, after) = (diffs::text_of(old), diffs::text_of(new));
    if diffs::is_prose(content_type, old) && diffs::is_prose(content_type, new) {
        let pieces = diffs::words(&before, &after).into_iter().map(piece).collect_view();
        view! { <div class="prose diff-words">{pieces}</div> }.into_any()
    } else {
        view! { <div class="diff-lines">{folded(diffs::lines(&before, &after))}</div> }.into_any()
    }
}

/// The change of one value in a JSON document. Strings are compared as text, so that their lines are compared.
fn change(change: ValueChange) -> AnyView {
    let ValueChange { path, old, new } = change;
    let (class, what) = match (&old, &new) {
        (None, _) => ("tag go", "added"),
        (_, None) => ("tag stop", "removed"),
        _ => ("tag", "changed"),
    };
    let body = match (old, new) {
        (Some(old), Some(new)) => value(ContentType::Text, &old, &new),
        (old, new) => {
            let side = if old.is_some() { Side::Old } else { Side::New };
            let text = old.or(new).as_ref().map(diffs::text_of).unwrap_or_default();
            view! { <div class="prose diff-words">{piece(Piece { side, text })}</div> }.into_any()
        }
    };
    view! {
        <section class="diff-key">
            <p class="diff-path"><code>{inert(&path.join(" › "))}</code>" "<span class=class>{what}</span></p>
            {body}
        </section>
    }
    .into_any()
}

fn piece(piece: Piece) -> AnyView {
    match piece.side {
        Side::Both => inert(&piece.text).into_any(),
        Side::Old => {
            view! { <del><span class="sr">" [gone: "</span>{inert(&piece.text)}<span class="sr">"] "</span></del> }
                .into_any()
        }
        Side::New => {
            view! { <ins><span class="sr">" [new: "</span>{inert(&piece.text)}<span class="sr">"] "</span></ins> }
                .into_any()
        }
    }
}

/// The rows of a diff by lines. A long unchanged stretch is one row that opens with a click.
fn folded(lines: Vec<DiffLine>) -> Vec<AnyView> {
    let near = |index: usize| {
        let from = index.saturating_sub(AROUND);
        lines[from..(index + AROUND + 1).min(lines.len())].iter().any(|line| line.side != Side::Both)
    };
    let mut views = Vec::new();
    let mut away: Vec<DiffLine> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if near(index) {
            if !away.is_empty() {
                views.push(fold(std::mem::take(&mut away)));
            }
            views.push(row(line));
        } else {
            away.push(line.clone());
        }
    }
    if !away.is_empty() {
        views.push(fold(away));
    }
    views
}

fn fold(lines: Vec<DiffLine>) -> AnyView {
    let open = RwSignal::new(lines.len() <= 2);
    let label = format!("{} unchanged lines", lines.len());
    view! {
        <Show
            when=move || open.get()
            fallback=move || {
                view! { <button type="button" class="fold" on:click=move |_| open.set(true)>{label.clone()}</button> }
            }
        >
            {lines.iter().map(row).collect_view()}
        </Show>
    }
    .into_any()
}

fn row(line: &DiffLine) -> AnyView {
    let (class, sign) = match line.side {
        Side::Both => ("line", " "),
        Side::Old => ("line old", "−"),
        Side::New => ("line new", "+"),
    };
    let number = |number: Option<usize>| number.map(|number| number.to_string()).unwrap_or_default();
    let parts = line
        .parts
        .iter()
        .map(
            |(marked, text)| {
                if *marked { view! { <mark>{inert(text)}</mark> }.into_any() } else { inert(text).into_any() }
            },
        )
        .collect_view();
    view! {
        <div class=class>
            <i>{number(line.old)}</i>
            <i>{number(line.new)}</i>
            <b>{sign}</b>
            <code>{parts}</code>
        </div>
    }
    .into_any()
}
