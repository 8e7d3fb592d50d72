//! A form of the review's draft: what stands in it is what would be sent, also where another tab has written the draft.

use std::rc::Rc;

use leptos::prelude::*;
use serde_json::Value;

use super::pane::Pane;
use crate::state::drafts::Draft;

/// The signals of a [`crate::components::schema_form::SchemaForm`] that edits a part of the draft.
#[derive(Clone, Copy)]
pub struct DraftForm {
    /// What stands in it.
    pub value: RwSignal<Value>,
    /// Whether it can be read: nothing is half typed.
    pub sound: RwSignal<bool>,
    /// The first thing that is wrong.
    pub flaw: RwSignal<Option<String>>,
}

impl Pane {
    /// A form of the part of the draft that `read` finds and `write` sets. Nothing is decided while something is wrong in it.
    pub fn form(
        self,
        read: impl Fn(&Draft) -> Value + 'static,
        write: impl Fn(&mut Draft, Value) + 'static,
    ) -> DraftForm {
        let form = self.draft_form(read, write);
        self.watch(move || form.flaw.get());
        form
    }

    /// The same of an edit of what was `proposed`, which only some decisions send. What was proposed may be wrong, too, and
    /// is not sent.
    pub fn edit_form(
        self,
        proposed: Value,
        read: impl Fn(&Draft) -> Value + 'static,
        write: impl Fn(&mut Draft, Value) + 'static,
    ) -> DraftForm {
        let form = self.draft_form(read, write);
        let DraftForm { value, sound, flaw } = form;
        self.watch_edit(move || flaw.get().filter(|_| !sound.get() || value.with(|value| *value != proposed)));
        form
    }

    fn draft_form(
        self,
        read: impl Fn(&Draft) -> Value + 'static,
        write: impl Fn(&mut Draft, Value) + 'static,
    ) -> DraftForm {
        let read = Rc::new(read);
        let own = Rc::clone(&read);
        let value = RwSignal::new(read(&self.workspace.draft_now(self.id)));
        let form = DraftForm { value, sound: RwSignal::new(true), flaw: RwSignal::new(None) };
        let DraftForm { value, sound, .. } = form;
        // What the draft holds of it, as far as the form knows: while something is half typed, the form is ahead of it.
        let known = StoredValue::new(value.get_untracked());
        Effect::new(move |previous: Option<()>| {
            let value = value.get();
            if previous.is_none() || !sound.get() {
                return;
            }
            let before = self.workspace.draft_now(self.id);
            let mut now = before.clone();
            write(&mut now, value);
            // Two tabs that take over each other's draft would otherwise write without end.
            if now != before {
                known.set_value(read(&now));
                self.workspace.write(&self.review.get_untracked(), |draft| *draft = now);
            }
        });
        self.workspace.on_taken_over(move || {
            let kept = own(&self.workspace.draft_now(self.id));
            // Another part of the draft may have come, or the draft of another review.
            if known.with_value(|known| *known == kept) {
                return;
            }
            known.set_value(kept.clone());
            if value.with_untracked(|value| *value != kept) {
                value.set(kept);
            }
        });
        form
    }
}
