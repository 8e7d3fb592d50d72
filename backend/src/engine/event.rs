//! What the log tells of a run: kinds and data exactly as `shared::log` documents them.
//!
//! `data.run` is filled in when the transition is finished: everything that one commit tells of a run is of the same
//! revision, and a fold ignores what is not newer than what it has.

use serde_json::{Value, json};
use shared::JsonMap;
use shared::grant::Grant;
use shared::id::{ReviewId, Username};
use shared::log::{EntryKind, Event};
use shared::review::Review;
use shared::run::{RunSummary, Step};

use super::builder::Builder;

const RUN: &str = "run";

impl Builder<'_> {
    /// Something about the run as a whole.
    pub(super) fn tell_run(&mut self, kind: EntryKind, actor: Option<Username>, more: Value) {
        let mut data = JsonMap::new();
        data.insert(RUN.to_owned(), Value::Null);
        data.extend(object(more));
        self.tell(kind, None, actor, data);
    }

    /// Something about a step.
    pub(super) fn tell_step(&mut self, kind: EntryKind, step: &Step, more: Value) {
        let mut data = object(json!({ "step": step }));
        data.extend(object(more));
        self.tell(kind, None, None, data);
    }

    /// Something that happened inside a step; late where the run, or the map that it belongs to, was over by then.
    pub(super) fn tell_call(&mut self, kind: EntryKind, step: &Step, more: Value) {
        let mut data = object(json!({ "step_id": step.id, "node": step.node, "visit": step.visit }));
        data.extend(object(more));
        if self.late {
            data.insert("late".to_owned(), true.into());
        }
        self.tell(kind, None, None, data);
    }

    /// Something about a review.
    pub(super) fn tell_review(&mut self, kind: EntryKind, review: &Review, actor: Option<Username>, more: Value) {
        // What everybody may read says nothing of secret votes.
        let mut data = object(if review.is_secret() {
            json!({ "review": review.clone().seen_by(None) })
        } else {
            json!({ "review": review })
        });
        data.extend(object(more));
        self.tell(kind, Some(review.id), actor, data);
    }

    /// Somebody opened a review: which revision of it, and the digest of what it showed.
    pub(super) fn tell_view(&mut self, review: &Review, actor: Username) {
        let data = object(json!({ "title": review.title, "revision": review.revision, "digest": review.digest }));
        self.tell(EntryKind::ReviewViewed, Some(review.id), Some(actor), data);
    }

    /// Something about a grant, at a review.
    pub(super) fn tell_grant(&mut self, kind: EntryKind, grant: &Grant, review: ReviewId, more: Value) {
        let mut data = object(json!({ "grant": grant }));
        data.extend(object(more));
        let actor = (kind == EntryKind::GrantMade).then(|| grant.given_by.clone());
        self.tell(kind, Some(review), actor, data);
    }

    fn tell(&mut self, kind: EntryKind, review_id: Option<ReviewId>, actor: Option<Username>, data: JsonMap) {
        let run_id = Some(self.state.id);
        self.events.push(Event { kind, at: self.now, run_id, review_id, actor, data });
    }
}

/// Puts the run as it is after the transition into the events that speak of it.
pub(super) fn fill_run(events: &mut [Event], run: &RunSummary) {
    for event in events {
        if let Some(place) = event.data.get_mut(RUN) {
            *place = json!(run);
        }
    }
}

fn object(value: Value) -> JsonMap {
    match value {
        Value::Object(map) => map,
        _ => JsonMap::new(),
    }
}
