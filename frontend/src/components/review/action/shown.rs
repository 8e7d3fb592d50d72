//! The state of a displayed action: its recorded outcome, or the choice in the draft.

use leptos::prelude::*;
use shared::JsonMap;
use shared::definition::ActionKind;
use shared::error::pointer;
use shared::grant::GrantScope;
use shared::review::Action;

use super::super::pane::Pane;
use crate::state::drafts::chosen::{choice, remembers};
use crate::state::drafts::{ActionDraft, Chosen, Draft};
use crate::state::record::{self, CallOutcome};

/// An action of the review in a pane.
#[derive(Clone, Copy)]
pub struct ShownAction {
    pub pane: Pane,
    pub action: StoredValue<Action>,
    /// Whether this person can decide the review now.
    pub open: Memo<bool>,
    /// Whether the review is resolved; then only the recorded outcome counts.
    pub over: Memo<bool>,
    /// The recorded outcome; `None` while the review is pending.
    pub outcome: Memo<Option<CallOutcome>>,
    /// The draft for the action; empty once the review is resolved.
    pub typed: Memo<ActionDraft>,
    /// The kind of decision that is chosen, if it is allowed.
    pub chosen: Memo<Option<ActionKind>>,
    /// Whether the choice would be sent; a form that was only opened would not.
    pub decided: Memo<bool>,
    /// The scope in which later calls of the tool are approved too, if any.
    pub remembered: Memo<Option<GrantScope>>,
}

impl ShownAction {
    /// Creates the state of an action of the pane's review.
    pub fn new(pane: Pane, action: Action) -> Self {
        let action = StoredValue::new(action);
        let outcome = Memo::new(move |_| {
            pane.review.with(|review| action.with_value(|action| record::outcome_of(review, action)))
        });
        let over = Memo::new(move |_| pane.review.with(|review| !review.is_pending()));
        let typed = Memo::new(move |_| {
            let of_action = |draft: &Draft| action.with_value(|action| draft.actions.get(&action.id).cloned());
            let typed = || pane.workspace.drafts.with(|drafts| drafts.review(pane.id).and_then(of_action));
            (!over.get()).then(typed).flatten().unwrap_or_default()
        });
        let chosen = Memo::new(move |_| {
            let allowed = |kind: &ActionKind| action.with_value(|action| action.allowed_decisions.contains(kind));
            typed.with(|typed| typed.answer().filter(allowed))
        });
        let decided = Memo::new(move |_| {
            let decided = |draft: &Draft| action.with_value(|action| choice(action, draft).is_some());
            pane.workspace.drafts.with(|drafts| drafts.review(pane.id).is_some_and(decided))
        });
        let remembered = Memo::new(move |_| {
            let drafts = pane.workspace.drafts;
            drafts.with(|drafts| action.with_value(|action| remembers(action, drafts.review(pane.id)?)))
        });
        let open = Memo::new(move |_| pane.is_open());
        Self { pane, action, open, over, outcome, typed, chosen, decided, remembered }
    }

    pub fn id(self) -> String {
        self.action.with_value(|action| action.id.clone())
    }

    /// The arguments as requested.
    pub fn arguments(self) -> JsonMap {
        self.action.with_value(|action| action.arguments.clone())
    }

    /// Changes the draft for the action, and stores it.
    pub fn write(self, change: impl FnOnce(&mut ActionDraft)) {
        self.pane.workspace.write(&self.pane.review.get_untracked(), |draft| {
            change(draft.actions.entry(self.id()).or_default());
        });
    }

    /// Selects a decision, or clears it if it is selected already.
    pub fn press(self, chosen: Chosen) {
        self.write(|own| own.press(chosen));
    }

    /// The JSON pointer of mistakes about the action: `/verdict/decisions/<id>`.
    pub fn pointer(self) -> String {
        self.action.with_value(|action| pointer(["verdict", "decisions", action.id.as_str()]))
    }

    /// The changed arguments that would be sent, or that were approved; `None` if they are as requested. Edits that the
    /// current choice does not send stay in the draft, but only the form shows them.
    pub fn edited(self) -> Option<JsonMap> {
        let arguments = match self.outcome.get() {
            Some(CallOutcome::Edited(arguments)) => Some(arguments),
            Some(_) => None,
            None => {
                self.typed.with(|typed| typed.arguments.clone()).filter(|_| self.chosen.get() == Some(ActionKind::Edit))
            }
        };
        arguments.filter(|arguments| self.action.with_value(|action| action.arguments != *arguments))
    }

    /// Whether a guardrail blocked the action.
    pub fn is_vetoed(self) -> bool {
        self.pane.review.with(|review| self.action.with_value(|action| record::is_vetoed(review, action)))
    }

    /// Whether the key for editing opens this action's form: no item of the review is editable, and this is the first
    /// editable action.
    pub fn is_first_editable(self) -> bool {
        let editable = |action: &&Action| action.allowed_decisions.contains(&ActionKind::Edit);
        self.pane.review.with_untracked(|review| {
            let items = review.items.iter().any(|item| item.editable);
            !items && review.actions.iter().find(editable).map(|first| &first.id) == Some(&self.id())
        })
    }
}
