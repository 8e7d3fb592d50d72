//! The answers to an action: the kinds of decisions, remembering an approval, the alternatives, and the message.

use leptos::prelude::*;
use shared::definition::{ActionKind, AlternativeChoice};
use shared::grant::GrantScope;

use super::shown::ShownAction;
use crate::components::inert::{inert, inert_code, named};
use crate::components::listeners::while_shown;
use crate::state::drafts::Chosen;
use crate::state::{action_words, call_effects};

/// The buttons of the decisions that the gate allows. The bar approves or rejects a single call by itself: a second pair
/// of buttons, which only choose, would look as if they decided.
#[component]
pub fn Answers(shown: ShownAction, choose: Callback<ActionKind>) -> impl IntoView {
    let (words, allowed) = shown.pane.review.with_untracked(|review| {
        shown.action.with_value(|action| (action_words::words(review, action), action.allowed_decisions.clone()))
    });
    let button = move |kind: ActionKind| {
        let (label, class) = match kind {
            ActionKind::Approve => ("Approve", "b sm yes"),
            ActionKind::Edit => (words.edit, "b sm change"),
            ActionKind::Reject => ("Reject", "b sm no"),
            ActionKind::Respond => (words.respond, "b sm"),
        };
        let pressed = move || (shown.chosen.get() == Some(kind)).to_string();
        view! { <button type="button" class=class aria-pressed=pressed on:click=move |_| choose.run(kind)>{label}</button> }
    };
    let several = shown.pane.review.with_untracked(|review| review.actions.len() > 1);
    let is_here = |kind: &ActionKind| several || !matches!(kind, ActionKind::Approve | ActionKind::Reject);
    ActionKind::ALL.iter().copied().filter(|kind| allowed.contains(kind)).filter(is_here).map(button).collect_view()
}

/// The scopes of a remembered approval, with their labels. The settings of the server may allow less time.
const SCOPES: [(GrantScope, &str); 2] =
    [(GrantScope::Run, "for this run, at most 8 h"), (GrantScope::Flow, "for this flow, at most 8 h")];

/// Beside an approval: a choice to approve later calls of the same tool by the same agent too, and what it covers: it pins
/// no arguments. A person who decides for somebody else can only approve this call.
#[component]
pub fn Remember(shown: ShownAction) -> impl IntoView {
    let pane = shown.pane;
    let grantable = Memo::new(move |_| {
        pane.review.with(|review| review.grantable.contains(&shown.id()) && pane.session.decides_for(review).is_none())
    });
    let choose = move |event| {
        let scope =
            event_target_value(&event).parse().ok().and_then(|at: usize| SCOPES.get(at)).map(|(scope, _)| *scope);
        shown.write(|own| own.remember(scope));
    };
    let option = move |(at, (scope, label)): (usize, &(GrantScope, &'static str))| {
        let scope = *scope;
        let is = move || shown.remembered.get() == Some(scope);
        view! { <option value=at.to_string() prop:selected=is>{*label}</option> }
    };
    let covers = shown.action.with_value(|action| match action.agent {
        Some(_) => "Covers calls of this tool by this agent.",
        None => "Covers calls of this tool.",
    });
    move || {
        grantable.get().then(|| {
            view! {
                <label class="later">
                    "Also approve later calls, whatever their arguments"
                    <select class="select" on:change=while_shown(choose)>
                        <option value="" prop:selected=move || shown.remembered.get().is_none()>"no"</option>
                        {SCOPES.iter().enumerate().map(option).collect_view()}
                    </select>
                </label>
                <Show when=move || shown.remembered.get().is_some()>
                    <span class="hint">
                        {covers} " You can revoke it under " <a href="/people?tab=approvals">"Remembered approvals"</a> "."
                    </span>
                </Show>
            }
        })
    }
}

#[component]
pub fn Alternatives(shown: ShownAction) -> impl IntoView {
    let offered = shown.pane.review.with_untracked(|review| {
        shown.action.with_value(|action| review.choices_for(action).cloned().collect::<Vec<_>>())
    });
    let offer = move |choice: AlternativeChoice| {
        let says = choice.to_string();
        let label = format!("Choose this instead: {}", choice.description);
        let id = StoredValue::new(choice.id);
        let is = move || shown.typed.with(|typed| id.with_value(|id| typed.alternative() == Some(id)));
        view! {
            <div class="facts">
                <span>{inert(&says)}</span>
                <button
                    type="button"
                    class="b sm"
                    aria-label=named(&label)
                    aria-pressed=move || is().to_string()
                    on:click=move |_| shown.press(Chosen::Alternative { alternative: id.get_value() })
                >
                    "Choose this instead"
                </button>
            </div>
        }
    };
    offered.into_iter().map(offer).collect_view()
}

/// The field for the reason of a rejection or for the answer, and the server's mistakes in it.
#[component]
pub fn Message(shown: ShownAction) -> impl IntoView {
    let pane = shown.pane;
    let own = shown.pointer();
    let mistakes = Memo::new(move |_| {
        let inside = |path: &str| {
            path == own || path.strip_prefix(&own).is_some_and(|rest| rest == "/message" || rest == "/remember")
        };
        pane.mistakes
            .with(|all| all.iter().filter(|one| inside(&one.path)).map(|one| one.message.clone()).collect::<Vec<_>>())
    });
    let message = Memo::new(move |_| shown.typed.with(|typed| typed.message.clone()));
    let asks = move || {
        let kind = shown.chosen.get().unwrap_or(ActionKind::Reject);
        let own = || shown.action.with_value(|action| action_words::asks_for(action, kind)).to_owned();
        pane.review.with(|review| call_effects::asks_for(review, kind)).unwrap_or_else(own)
    };
    view! {
        <Show when=move || shown.open.get() && matches!(shown.chosen.get(), Some(ActionKind::Reject | ActionKind::Respond))>
            <div class="edit">
                <textarea
                    class="textarea"
                    rows="2"
                    placeholder=asks
                    aria-label="Message"
                    aria-invalid=move || (!mistakes.with(Vec::is_empty)).to_string()
                    prop:value=message
                    on:focusout=while_shown(move |_| pane.check())
                    on:input=move |event| shown.write(|own| own.message = event_target_value(&event))
                ></textarea>
            </div>
        </Show>
        {move || mistakes.get().into_iter().map(|text| view! { <p class="mistake pad">{inert_code(&text)}</p> }).collect_view()}
    }
}
