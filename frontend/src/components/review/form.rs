//! Forms that edit a part of the review's draft: they show what would be sent, even if another tab changed the draft.

use std::rc::Rc;

use leptos::prelude::*;
use serde_json::Value;

use super::pane::Pane;
use crate::state::drafts::Draft;
use crate::state::unread::Unread;

/// The signals of a [`crate::components::schema_form::SchemaForm`] that edits a part of the draft.
#[derive(Clone, Copy)]
pub struct DraftForm {
    pub value: RwSignal<Value>,
    /// The first mistake in the form; `None` if there is none.
    pub flaw: RwSignal<Option<String>>,
    /// The texts in the form that cannot be read, which the draft keeps too. The values at their places are older.
    pub unread: RwSignal<Unread>,
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
        let DraftForm { value, flaw, unread } = form;
        let is_changed = move || unread.with(|texts| !texts.is_empty()) || value.with(|value| *value != proposed);
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
        let unread = self.keep_unread(place.to_owned());
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
            let texts = draft.unread.of(&place);
            if unread.with_untracked(|unread| *unread != texts) {
                unread.set(texts);
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
        DraftForm { value, flaw: RwSignal::new(None), unread }
    }

    /// The texts in the form at `place` that cannot be read, which are written to the draft.
    fn keep_unread(self, place: String) -> RwSignal<Unread> {
        let place = StoredValue::new(place);
        let kept = move || place.with_value(|place| self.workspace.draft_now(self.id).unread.of(place));
        let unread = RwSignal::new(kept());
        let write = move |now: &Unread, _: Option<&Unread>, _: Option<()>| {
            if *now != kept() {
                let write = |draft: &mut Draft| place.with_value(|place| draft.unread.set(place, now.clone()));
                self.workspace.write(&self.review.get_untracked(), write);
            }
        };
        Effect::watch(move || unread.get(), write, false);
        unread
    }
}
