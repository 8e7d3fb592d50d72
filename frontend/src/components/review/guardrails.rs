//! What guardrails say about a call or a value, in words with an icon. Typed values are checked when their field loses
//! the focus.

use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::decision::DecisionRequest;
use shared::definition::Effect;

use super::pane::Pane;
use crate::components::glyph::Glyph;
use crate::components::inert::inert_code;
use crate::state::guardrail_notes::{self, Note, NotePlace};

/// What guardrails say about a place.
#[component]
pub fn GuardrailNotes(pane: Pane, place: NotePlace) -> impl IntoView {
    let notes = Memo::new(move |_| {
        pane.with_draft(|draft| {
            pane.review
                .with(|review| pane.checked.with(|answered| guardrail_notes::notes(review, draft, answered, &place)))
        })
    });
    view! {
        <div class="guardrails" role="status">{move || notes.get().into_iter().map(note).collect_view()}</div>
    }
}

fn note(note: Note) -> impl IntoView {
    let (class, icon) = match note.effect {
        Effect::Block => ("banner stop", icondata::LuShieldBan),
        Effect::Redact => ("banner warn", icondata::LuEyeOff),
        Effect::Warn => ("banner warn", icondata::LuShieldAlert),
    };
    view! { <p class=class><Glyph icon=icon /><span>{inert_code(&note.text)}</span></p> }
}

impl Pane {
    /// Asks the server what guardrails would do with the draft. If that fails, the decision itself brings the answer.
    pub fn check(self) {
        let Some(request) = self.to_check().filter(|_| untrack(move || self.is_open())) else { return };
        if self.checked.with_untracked(|answered| answered.as_ref().is_some_and(|(asked, _)| *asked == request)) {
            return;
        }
        let api = self.api;
        spawn_local(async move {
            let answer = api.check(self.id, &request).await;
            // A draft that has changed since is checked by a request of its own, which may be answered already.
            if let Ok(checked) = answer
                && self.to_check().as_ref() == Some(&request)
            {
                self.checked.try_set(Some((request, checked)));
            }
        });
    }

    /// The request to check the draft; `None` if there is nothing to check, or if the pane is gone.
    fn to_check(self) -> Option<DecisionRequest> {
        let draft = self.workspace.draft_now(self.id);
        self.review.try_with_untracked(|review| guardrail_notes::to_check(review, &draft)).flatten()
    }
}
