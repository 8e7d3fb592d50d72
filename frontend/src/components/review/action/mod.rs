//! One action that a gate holds back: its arguments, and the answer to it.

mod answers;
mod arguments;
mod shown;

use leptos::html;
use leptos::prelude::*;
use shared::definition::ActionKind;
use shared::review::{Action, ActionType};

use self::answers::{Alternatives, Answers, Message, Remember};
use self::arguments::{Arguments, EditForm, Edited};
use self::shown::ShownAction;
use super::guardrails::GuardrailNotes;
use super::head::at_stake;
use super::pane::Pane;
use crate::components::focus::{FIELD, focus_within};
use crate::components::inert::inert;
use crate::state::action_words;
use crate::state::drafts::Chosen;
use crate::state::guardrail_notes::{self, Leave, NotePlace};

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
            focus_within(&card, format!(".edit {FIELD}"));
        }
    });
    let first = shown.is_first_editable();
    Effect::new(move |previous: Option<()>| {
        pane.edit.track();
        if previous.is_some() && first && untrack(move || pane.is_open()) {
            choose.run(ActionKind::Edit);
        }
    });
    // If the calls must be decided one by one, a card has to be opened before it can be decided.
    let opened = RwSignal::new(!pane.review.with_untracked(|review| review.is_one_by_one()));
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
    let stakes = action.stakes.as_deref().map(|stakes| {
        let tags = at_stake(stakes, stakes.category.clone());
        let tags = tags.into_iter().map(|(class, text)| view! { <span class=class>{inert(&text)}</span> });
        let follows = stakes.consequences.iter().map(|text| view! { <span class="muted">{inert(text)}</span> });
        view! { <div class="facts">{tags.collect_view()}{follows.collect_view()}</div> }
    });
    view! {
        <section node_ref=card class="card action" class:folded=folded class:decided=shown.decided aria-label=action.name.clone()>
            <header>
                <code>{inert(&action.name)}</code>
                <span class="muted cut">{kind_of(&action)}</span>
                <span class="grow"></span>
                <Status shown />
            </header>
            <Show when=move || folded.get()>
                <button type="button" class="b sm unfold" aria-expanded="false" on:click=move |_| open_it()>
                    "Open this call to decide it"
                </button>
            </Show>
            {message}
            {stakes}
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

/// The kind of an action in words: `tool call of writer`.
fn kind_of(action: &Action) -> String {
    match (&action.action_type, &action.agent) {
        (ActionType::Tool, Some(agent)) => format!("tool call of {agent}"),
        (ActionType::Tool, None) => "tool call".to_owned(),
        (ActionType::Agent, _) => "agent about to run".to_owned(),
        (ActionType::Emergent, Some(agent)) => format!("new specialist of {agent}"),
        (ActionType::Emergent, None) => "new specialist".to_owned(),
        (ActionType::Output, _) => "final output".to_owned(),
        (ActionType::StrategyOverride, _) => "change of strategy".to_owned(),
    }
}

/// The outcome of the action, or the effect of the current choice.
#[component]
fn Status(shown: ShownAction) -> impl IntoView {
    let pane = shown.pane;
    let words = shown.action.with_value(|action| action_words::words(action.action_type));
    let leave = Memo::new(move |_| {
        let draft = pane.draft();
        let checked = pane.checked.get();
        let leave =
            |action: &Action| pane.review.with(|review| guardrail_notes::leave(review, &draft, &checked, action));
        shown.action.with_value(leave)
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
