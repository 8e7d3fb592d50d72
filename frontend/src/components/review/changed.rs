//! Notices that the content has changed since the person read it, and of what was asked for in the previous round.
//! Nothing can be decided before the person has looked at a change.

use std::sync::Arc;

use leptos::prelude::*;
use shared::review::Review;
use shared::run::Report;

use super::pane::Pane;
use crate::components::glyph::Glyph;
use crate::components::inert::inert;
use crate::state::drafts::Draft;
use crate::state::{changes, earlier};

/// Finds the previous round of the review in the report of its run, for [`LastRound`] and the differences to it.
pub fn find_round(pane: Pane, report: Memo<Option<Report>>) {
    Effect::new(move |_| {
        let round = report.with(|report| {
            let reviews = &report.as_ref()?.reviews;
            pane.review.with(|review| earlier::round(review, reviews).map(|round| Arc::new(round.clone())))
        });
        let id = |round: &Option<Arc<Review>>| round.as_ref().map(|round| round.id);
        if pane.round.with_untracked(id) != id(&round) {
            pane.round.set(round);
        }
    });
}

/// The correction that was asked for in the previous round.
#[component]
pub fn LastRound(pane: Pane) -> impl IntoView {
    move || {
        let me = pane.session.username();
        let (who, text) = pane.round.with(|round| earlier::asked(round.as_deref()?, me.as_deref()))?;
        Some(view! {
            <div class="banner">
                <Glyph icon=icondata::LuUndo2 />
                <span class="grow"><b>{format!("{who} sent it back:")}</b>" "{inert(&text)}</span>
            </div>
        })
    }
}

/// The notice that the content has changed, with buttons to show and accept the change.
#[component]
pub fn Changed(pane: Pane) -> impl IntoView {
    let changed = Memo::new(move |_| pane.review.with(|review| review.is_pending()) && pane.has_changed());
    let what = Memo::new(move |_| {
        let me = pane.session.username();
        pane.review.with(|now| pane.before.with(|before| changes::between(before.as_deref(), now, me.as_deref())))
    });
    // The sentences are enough if the cards cannot show the difference.
    let hint = move || {
        what.with(|what| match (what.is_shown, what.says.is_empty()) {
            (true, _) => " The difference is shown below.",
            (false, false) => "",
            (false, true) => "Read it again.",
        })
    };
    let kept = move || !pane.with_draft(Draft::is_empty);
    // Either the review changed while it was open here, or the person returns to a draft on an older revision.
    let since = move || {
        let before = pane.before.get().map(|before| before.revision);
        if !kept() {
            return "This changed while you were reading. ".to_owned();
        }
        let revision = before.unwrap_or_else(|| pane.with_draft(|draft| draft.revision));
        format!("This has changed since revision {revision}, which you were reading. ")
    };
    view! {
        <Show when=move || changed.get()>
            <div class="banner warn" role="alert">
                <Glyph icon=icondata::LuRefreshCw />
                <span class="grow">
                    <b>{since}</b>
                    {move || what.get().says}
                    {hint}
                    {move || kept().then_some(" What you wrote is kept, and none of it is sent until you have looked.")}
                </span>
                <button class="b sm" on:click=move |_| pane.read_change()>"I have seen it"</button>
            </div>
        </Show>
    }
}
