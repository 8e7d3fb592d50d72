//! One action that a gate holds back: its arguments, and the answer to it.

mod answers;
mod arguments;
mod shown;

use leptos::html;
use leptos::prelude::*;
use shared::definition::ActionKind;
use shared::review::{Action, Review};

use self::answers::{Alternatives, Answers, Message, Remember};
pub use self::arguments::asked;
use self::arguments::{Arguments, EditForm, Edited};
use self::shown::ShownAction;
use super::guardrails::GuardrailNotes;
use super::pane::Pane;
use super::stakes::stakes;
use crate::components::focus::{FIELD, focus_within};
use crate::components::inert::{inert, named};
use crate::state::drafts::Chosen;
use crate::state::guardrail_notes::{self, Leave, NotePlace};
use crate::state::{action_words, calls};

/// The card of an action that a gate holds back: what it does, and the answers to choose from.
#[component]
pub fn ActionCard(pane: Pane, action: Action) -> impl IntoView {
    let shown = ShownAction::new(pane, action.clone());
    let open = shown.open;
    let card = NodeRef::<html::Section>::new();
    let choose = Callback::new(move |kind: ActionKind| {
        shown.press(Chosen::Answer(kind));
        // A choice that opens a form moves the focus there, unless it was cleared. A rejection needs no reason.
        let opens =
            matches!(kind, ActionKind::Edit | ActionKind::Respond) && shown.chosen.get_untracked() == Some(kind);
        if let (Some(card), true) = (card.get_untracked(), opens) {
            focus_within(&card, &format!(".edit {FIELD}"));
        }
    });
    let first = shown.is_first_editable();
    Effect::new(move |previous: Option<()>| {
        pane.edit.track();
        if previous.is_some() && first && untrack(move || pane.is_open()) {
            choose.run(ActionKind::Edit);
        }
    });
    // If the calls must be decided one by one, a card has to be opened before it can be decided. One that was answered
    // was open, before the page was loaded again.
    let is_answered = shown.decided.get_untracked();
    let opened = RwSignal::new(is_answered || !pane.review.with_untracked(|review| review.is_one_by_one()));
    let folded = Memo::new(move |_| open.get() && !opened.get());
    let open_it = move || {
        opened.set(true);
        // The button that opens the card disappears, so the focus moves to its content.
        if let Some(card) = card.get_untracked() {
            focus_within(&card, "footer button");
        }
    };
    let message = move || {
        let outcome = shown.outcome.get()?;
        Some(view! { <p class="describes">{inert(outcome.message()?)}</p> })
    };
    let name = pane.review.with_untracked(|review| calls::named(review, &action));
    let place = pane.review.with_untracked(|review| place(review, &action));
    let unfold = pane.review.with_untracked(|review| {
        let own = review.actions.iter().position(|other| other.id == action.id).unwrap_or_default() + 1;
        format!("Open call {own} of {} to decide it", review.actions.len())
    });
    let own_stakes = action.stakes.as_deref().and_then(|own| stakes(own, own.category.clone()));
    view! {
        <section node_ref=card class="card action" class:folded=folded class:decided=shown.decided role=pane.card_role() aria-label=named(&name)>
            <header>
                <code>{inert(&action.name)}</code>
                {place}
                <span class="muted cut">{action_words::kind(&action)}</span>
                <span class="grow"></span>
                <Status shown />
            </header>
            <Show when=move || folded.get()>
                <button type="button" class="b sm unfold" aria-expanded="false" on:click=move |_| open_it()>
                    {unfold.clone()}
                </button>
            </Show>
            {message}
            {own_stakes}
            {action.description.as_ref().map(|text| view! { <p class="describes">{inert(text)}</p> })}
            <Arguments shown />
            <GuardrailNotes pane=pane place=NotePlace::Action(action.id) />
            <EditForm shown />
            <Edited shown />
            <Message shown />
            <div class="instead" hidden=move || !open.get() || folded.get()><Alternatives shown /></div>
            <footer hidden=move || !open.get() || folded.get()>
                <Answers shown choose />
                <Remember shown />
            </footer>
        </section>
    }
}

/// The place of a call among others of its name: `2 of 6`.
pub fn place(review: &Review, action: &Action) -> Option<AnyView> {
    let (own, all) = calls::place(review, action)?;
    Some(view! { <span class="nowrap">{format!("{own} of {all}")}</span> }.into_any())
}

/// The outcome of the action, or the effect of the current choice.
#[component]
fn Status(shown: ShownAction) -> impl IntoView {
    let pane = shown.pane;
    let words =
        pane.review.with_untracked(|review| shown.action.with_value(|action| action_words::words(review, action)));
    let leave = Memo::new(move |_| {
        pane.with_draft(|draft| {
            pane.checked.with(|checked| {
                let leave =
                    |action: &Action| pane.review.with(|review| guardrail_notes::leave(review, draft, checked, action));
                shown.action.with_value(leave)
            })
        })
    });
    let vetoed = Memo::new(move |_| shown.is_vetoed());
    let instead = Memo::new(move |_| shown.typed.with(|typed| typed.alternative().is_some()));
    move || match (shown.outcome.get(), shown.chosen.get()) {
        (Some(_), _) if vetoed.get() => Some(view! { <span class="tag stop">{words.blocked.to_owned()}</span> }),
        (Some(outcome), _) => {
            let (class, says) = outcome.says(words);
            Some(view! { <span class=class>{says}</span> })
        }
        (None, None) if instead.get() => {
            Some(view! { <span class="tag">{format!("{}, an alternative is chosen", words.not)}</span> })
        }
        (None, Some(ActionKind::Edit)) if leave.get() == Leave::Free && shown.edited().is_none() => {
            Some(view! { <span class="tag">{format!("{} as asked, nothing changed yet", words.happens)}</span> })
        }
        (None, kind) => {
            let (class, says) = words.would(kind, leave.get());
            (kind.is_some() || shown.open.get()).then(|| view! { <span class=class>{says}</span> })
        }
    }
}
