//! What the browser keeps of decisions that could not be sent: for the person who made them, one a review.

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
    /// Takes in what was kept, as JSON, where nothing else is under way. It is not sent before the person says so.
    pub fn restore(&mut self, id: ReviewId, kept: &str) {
        if let Some(sending) = read(id, kept).filter(|_| self.get(id).is_none()) {
            self.by_review.insert(id, sending);
        }
    }

    /// Another tab has settled what was kept.
    pub fn settle_elsewhere(&mut self, id: ReviewId) {
        if self.is_unsent(id) {
            self.by_review.remove(&id);
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
