//! What the browser keeps of decisions that could not be sent: for the person who made them, one a review.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use shared::decision::DecisionRequest;
use shared::id::{ReviewId, Username};

use super::{Outbox, Reason, Sending, Stage};

/// A decision as the browser keeps it. The revision and the digest are in the request.
#[derive(Serialize, Deserialize)]
struct Kept {
    title: String,
    request: DecisionRequest,
    key: String,
    says: String,
}

/// How the names of all kept decisions of a person begin. No username has a slash: that of nobody else begins so too.
pub fn storage_prefix(owner: &Username) -> String {
    format!("countersign.decision.{owner}/")
}

/// Under which name the browser keeps a person's decision on a review.
pub fn storage_key(owner: &Username, id: ReviewId) -> String {
    format!("{}{id}", storage_prefix(owner))
}

/// The review of a person's decision, by the name under which the browser keeps it.
pub fn review_of_storage_key(key: &str, owner: &Username) -> Option<ReviewId> {
    key.strip_prefix(&storage_prefix(owner))?.parse().ok()
}

impl Outbox {
    /// All that was kept for whoever has logged in, as JSON. Nothing of it is sent before they say so.
    pub fn restored<'a>(kept: impl IntoIterator<Item = (ReviewId, &'a str)>) -> Self {
        let read = |(id, kept): (ReviewId, &str)| Some((id, read(id, kept)?));
        Self { by_review: kept.into_iter().filter_map(read).collect::<HashMap<_, _>>() }
    }

    /// Takes in what another tab has kept, as JSON, or that it is settled there.
    pub fn take_over(&mut self, id: ReviewId, kept: Option<&str>) {
        let here = self.by_review.get(&id).map(|sending| &sending.stage);
        match (here, kept) {
            (None, Some(kept)) => drop(read(id, kept).and_then(|sending| self.by_review.insert(id, sending))),
            (Some(Stage::Unsent(_)), None) => drop(self.by_review.remove(&id)),
            _ => {}
        }
    }

    /// A decision that is not answered yet, as the browser keeps it: JSON. `None` where there is none, or where it is kept
    /// in memory only.
    pub fn stored(&self, id: ReviewId) -> Option<String> {
        let waits = |sending: &&Sending| matches!(sending.stage, Stage::Held(_) | Stage::Sending | Stage::Unsent(_));
        let sending = self.by_review.get(&id).filter(waits).filter(|sending| !sending.in_memory)?;
        let Sending { title, request, key, says, .. } = sending.clone();
        serde_json::to_string(&Kept { title, request, key, says }).ok()
    }
}

fn read(id: ReviewId, kept: &str) -> Option<Sending> {
    let Kept { title, request, key, says } = shared::client::read(kept).ok()?;
    Some(Sending { id, title, request, key, says, in_memory: false, stage: Stage::Unsent(Reason::Kept) })
}
