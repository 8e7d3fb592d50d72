//! Forms that edit a part of the review's draft: they show what would be sent, even if another tab changed the draft.

use std::rc::Rc;

use leptos::prelude::*;
use serde_json::Value;

use super::pane::Pane;
use crate::state::drafts::Draft;
use crate::state::unparsed::Unparsed;

/// The signals of a [`crate::components::schema_form::SchemaForm`] that edits a part of the draft.
#[derive(Clone, Copy)]
pub struct DraftForm {
    pub value: RwSignal<Value>,
    /// The first mistake in the form; `None` if there is none.
    pub flaw: RwSignal<Option<String>>,
    /// The texts in the form that cannot be read, which the draft keeps too. The values at their places are older.
    pub unparsed: RwSignal<Unparsed>,
}

impl Pane {
    /// Creates a form for the part of the draft that `read` returns and `write` sets; `place` is the place under
    /// which the draft keeps text that cannot be read. A mistake in the form prevents every decision.
    pub fn form(
        self,
        place: &str,
        read: impl Fn(&Draft) -> Value + 'static,
        write: impl Fn(&mut Draft, Value) + 'static,
    ) -> DraftForm {
        let form = self.draft_form(place, read, write);
        self.watch(move || form.flaw.get());
        form
    }

    /// Like [`Self::form`], for an edit of the `proposed` value. A mistake in it prevents only decisions that send
    /// edits, and only if the value was changed: an unchanged proposal is not sent.
    pub fn edit_form(
        self,
        place: &str,
        proposed: Value,
        read: impl Fn(&Draft) -> Value + 'static,
        write: impl Fn(&mut Draft, Value) + 'static,
    ) -> DraftForm {
        let form = self.draft_form(place, read, write);
        let DraftForm { value, flaw, unparsed } = form;
        let is_changed = move || unparsed.with(|texts| !texts.is_empty()) || value.with(|value| *value != proposed);
        self.watch_edit(move || flaw.get().filter(|_| is_changed()));
        form
    }

    fn draft_form(
        self,
        place: &str,
        read: impl Fn(&Draft) -> Value + 'static,
        write: impl Fn(&mut Draft, Value) + 'static,
    ) -> DraftForm {
        let read = Rc::new(read);
        let own = Rc::clone(&read);
        let value = RwSignal::new(read(&self.workspace.draft_now(self.id)));
        let unparsed = self.keep_unparsed(place.to_owned());
        let place = place.to_owned();
        // The last known value in the draft. A value that `write` does not take is ahead of it.
        let known = StoredValue::new(value.get_untracked());
        let write = move |value: &Value, _: Option<&Value>, _: Option<()>| {
            let before = self.workspace.draft_now(self.id);
            let mut now = before.clone();
            write(&mut now, value.clone());
            // Without this check, two tabs that take over each other's draft would write without end.
            if now != before {
                known.set_value(read(&now));
                self.workspace.write(&self.review.get_untracked(), |draft| *draft = now);
            }
        };
        Effect::watch(move || value.get(), write, false);
        self.workspace.on_taken_over(move || {
            let draft = self.workspace.draft_now(self.id);
            let texts = draft.unparsed.of(&place);
            if unparsed.with_untracked(|unparsed| *unparsed != texts) {
                unparsed.set(texts);
            }
            let kept = own(&draft);
            // The change may be in another part of the draft, or in another draft.
            if known.with_value(|known| *known == kept) {
                return;
            }
            known.set_value(kept.clone());
            if value.with_untracked(|value| *value != kept) {
                value.set(kept);
            }
        });
        DraftForm { value, flaw: RwSignal::new(None), unparsed }
    }

    /// The texts in the form at `place` that cannot be read, which are written to the draft.
    fn keep_unparsed(self, place: String) -> RwSignal<Unparsed> {
        let place = StoredValue::new(place);
        let kept = move || place.with_value(|place| self.workspace.draft_now(self.id).unparsed.of(place));
        let unparsed = RwSignal::new(kept());
        let write = move |now: &Unparsed, _: Option<&Unparsed>, _: Option<()>| {
            if *now != kept() {
                let write = |draft: &mut Draft| place.with_value(|place| draft.unparsed.set(place, now.clone()));
                self.workspace.write(&self.review.get_untracked(), write);
            }
        };
        Effect::watch(move || unparsed.get(), write, false);
        unparsed
    }
}
