//! Forms that edit a part of the review's draft: they show what would be sent, even if another tab changed the draft.

use std::rc::Rc;

use leptos::prelude::*;
use serde_json::Value;

use super::pane::Pane;
use crate::state::drafts::Draft;

/// The signals of a [`crate::components::schema_form::SchemaForm`] that edits a part of the draft.
#[derive(Clone, Copy)]
pub struct DraftForm {
    pub value: RwSignal<Value>,
    /// Whether the value is what stands in the form, so that it can be kept.
    pub sound: RwSignal<bool>,
    /// The first mistake in the form; `None` if there is none.
    pub flaw: RwSignal<Option<String>>,
    /// The text that was typed as JSON and cannot be read, which the draft keeps too.
    pub unread: RwSignal<Option<String>>,
}

impl Pane {
    /// Creates a form for the part of the draft that `read` returns and `write` sets; `place` is the place under
    /// which the draft keeps text that is not JSON. A mistake in the form prevents every decision.
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
        let DraftForm { value, sound, flaw, .. } = form;
        self.watch_edit(move || flaw.get().filter(|_| !sound.get() || value.with(|value| *value != proposed)));
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
        let form = DraftForm { value, sound: RwSignal::new(true), flaw: RwSignal::new(None), unread };
        let DraftForm { value, sound, .. } = form;
        // The last known value in the draft. While a text is typed that the value cannot hold, the form is ahead of it.
        let known = StoredValue::new(value.get_untracked());
        Effect::new(move |previous: Option<()>| {
            let value = value.get();
            if previous.is_none() || !sound.get() {
                return;
            }
            let before = self.workspace.draft_now(self.id);
            let mut now = before.clone();
            write(&mut now, value);
            // Without this check, two tabs that take over each other's draft would write without end.
            if now != before {
                known.set_value(read(&now));
                self.workspace.write(&self.review.get_untracked(), |draft| *draft = now);
            }
        });
        self.workspace.on_taken_over(move || {
            let draft = self.workspace.draft_now(self.id);
            let text = draft.unread.get(&place).cloned();
            // A field with the text that another tab has mended gets the value, even if that is the one of before.
            let is_mended = text.is_none() && unread.with_untracked(Option::is_some);
            if unread.with_untracked(|unread| *unread != text) {
                unread.set(text);
            }
            let kept = own(&draft);
            // The change may be in another part of the draft, or in another draft.
            if !is_mended && known.with_value(|known| *known == kept) {
                return;
            }
            known.set_value(kept.clone());
            if value.with_untracked(|value| *value != kept) {
                value.set(kept);
            }
        });
        form
    }

    /// The text of the form at `place` that is not JSON, which is written to the draft.
    fn keep_unread(self, place: String) -> RwSignal<Option<String>> {
        let place = StoredValue::new(place);
        let kept = move || place.with_value(|place| self.workspace.draft_now(self.id).unread.get(place).cloned());
        let unread = RwSignal::new(kept());
        Effect::new(move |previous: Option<()>| {
            let now = unread.get();
            if previous.is_some() && now != kept() {
                let write = |draft: &mut Draft| place.with_value(|place| draft.set_unread(place, now));
                self.workspace.write(&self.review.get_untracked(), write);
            }
        });
        unread
    }
}
