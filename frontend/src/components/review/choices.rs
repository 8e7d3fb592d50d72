//! The decisions to choose from for one of several reviews that are decided together.

use std::sync::Arc;

use leptos::prelude::*;
use leptos_router::hooks::use_location;
use shared::review::Review;

use super::acts::{Act, acts_of, sentence_end, time_to_undo};
use super::pane::Pane;
use crate::components::glyph::Glyph;
use crate::components::inert::{inert, inert_code, named};
use crate::components::selecting::Selecting;
use crate::state::drafts::Draft;
use crate::state::inbox::{InboxRow, address};
use crate::state::selection::{ReviewChoice, choices};
use crate::state::standing::Standing;
use crate::state::verdict::Intent;

/// The draft of a decision that has nothing but a note.
pub fn draft_of(review: &Review, note: String) -> Draft {
    Draft { revision: review.revision, text: note, ..Draft::default() }
}

/// The decisions to choose from, or why there are none.
#[component]
pub fn Choices(pane: Pane, selecting: Selecting, row: Memo<Option<InboxRow>>) -> impl IntoView {
    let selection = selecting.selection;
    let id = pane.id;
    let refusal = Memo::new(move |_| row.with(|row| row.as_ref().and_then(|row| selecting.refusal(row))));
    let undecided = Memo::new(move |_| pane.is_undecided());
    let voted = Memo::new(move |_| {
        let is_accepted = |row: &InboxRow| selecting.standing(row) == Standing::Accepted && row.review.is_pending();
        undecided.get() && row.with(|row| row.as_ref().is_some_and(is_accepted))
    });
    let acts = Memo::new(move |_| {
        let note = selection.with(|selection| selection.note.of(id).to_owned());
        let review: Arc<Review> = pane.review.get();
        let plain = choices(&review);
        let is_plain = |act: &Act| plain.iter().any(|choice| choice.intent == act.intent);
        let accepts = |act: &Act| plain.iter().any(|choice| choice.intent == act.intent && choice.accepts);
        let acts = acts_of(pane, &review, &draft_of(&review, note)).into_iter().filter(is_plain);
        acts.map(|act| (accepts(&act), act)).collect::<Vec<_>>()
    });
    let chosen = Memo::new(move |_| selection.with(|selection| Some(selection.choice(id)?.intent.clone())));
    let changed = Memo::new(move |_| pane.has_changed());
    let choose = move |intent: &Intent| {
        if !changed.get_untracked() {
            let revision = pane.review.with_untracked(|review| review.revision);
            let choice = Some(ReviewChoice { intent: intent.clone(), revision, for_all: false })
                .filter(|choice| chosen.get_untracked().as_ref() != Some(&choice.intent));
            selection.update(|selection| selection.choose(id, choice));
        }
    };
    let search = use_location().search;
    let href = move || address::review(id, &search.get());
    let does = move || {
        let whose = pane.review.with(|review| pane.session.decides_for(review));
        let whose = whose.map(|owner| format!("On behalf of {owner}. ")).unwrap_or_default();
        let does = match chosen.get() {
            _ if changed.get() => "Look at the change first.".to_owned(),
            Some(intent) => acts.with(|acts| {
                let act = acts.iter().find(|(_, act)| act.intent == intent);
                let does = act.map(|(_, act)| sentence_end(&act.does)).unwrap_or_default();
                does + &pane.review.with(|review| time_to_undo(review, pane.live.now.get()))
            }),
            None => "Nothing is chosen.".to_owned(),
        };
        format!("{whose}{}", does.trim_start())
    };
    let buttons = move || {
        let button = |(accepts, act): (bool, Act)| {
            let intent = act.intent.clone();
            let own = act.intent.clone();
            let is = Memo::new(move |_| chosen.with(|chosen| chosen.as_ref() == Some(&own)));
            choice_button(accepts, &act, is, changed, move || choose(&intent))
        };
        acts.get().into_iter().map(button).collect_view()
    };
    move || match refusal.get() {
        None => Some(
            view! {
                <div class="acts" role="group" aria-label="Your decision" class:blocked=changed>
                    {buttons}
                    <span class="what">{move || inert_code(&does())}</span>
                </div>
            }
            .into_any(),
        ),
        Some(_) if voted.get() => Some(
            view! {
                <p class="banner go">
                    <Glyph icon=icondata::LuCheck />
                    <span class="grow">"Your vote is recorded. The review is still waiting for others."</span>
                    <a class="b sm" href=href>"Change it"</a>
                </p>
            }
            .into_any(),
        ),
        // Otherwise, the progress of the decision or the outcome says it.
        Some(reason) if undecided.get() => Some(
            view! {
                <p class="banner">
                    <Glyph icon=icondata::LuInfo />
                    <span class="grow">"It cannot be decided together with others: "{reason}"."</span>
                    <a class="b sm" href=href>"Open"</a>
                </p>
            }
            .into_any(),
        ),
        Some(_) => None,
    }
}

/// The button of a decision, pressed while it is chosen.
fn choice_button(
    accepts: bool,
    act: &Act,
    is: Memo<bool>,
    changed: Memo<bool>,
    choose: impl Fn() + 'static,
) -> AnyView {
    view! {
        <button
            type="button"
            class=if accepts { "b yes" } else { "b no" }
            title=named(&act.does)
            aria-pressed=move || is.get().to_string()
            aria-disabled=move || changed.get().to_string()
            on:click=move |_| choose()
        >
            <Show when=move || is.get()><Glyph icon=icondata::LuCheck /></Show>
            <span>{inert(&act.says)}</span>
        </button>
    }
    .into_any()
}
