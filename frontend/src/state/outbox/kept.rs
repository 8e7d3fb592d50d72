//! The stored form of decisions that could not be sent: per person, and at most one for each review.

use serde::{Deserialize, Serialize};
use shared::decision::DecisionRequest;
use shared::id::{ReviewId, Username};

use super::{Outbox, Reason, Sending, Stage};

/// A decision as the browser stores it.
#[derive(Serialize, Deserialize)]
struct Kept {
    title: String,
    request: DecisionRequest,
    key: String,
    says: String,
}

/// The prefix of the storage keys of a person's decisions. Usernames have no slash, so the prefix cannot match another
/// person's key.
pub fn storage_prefix(owner: &Username) -> String {
    format!("countersign.decision.{owner}/")
}

/// The key under which the browser stores a person's decision on a review.
pub fn storage_key(owner: &Username, id: ReviewId) -> String {
    format!("{}{id}", storage_prefix(owner))
}

/// Parses the review from a storage key; `None` if it is not the key of a decision of this person.
pub fn review_of_storage_key(key: &str, owner: &Username) -> Option<ReviewId> {
    key.strip_prefix(&storage_prefix(owner))?.parse().ok()
}

/// The name of the lock that a person's tabs have while they have unanswered decisions.
pub fn lock_name(owner: &Username) -> String {
    format!("countersign.deciding.{owner}")
}

impl Outbox {
    /// Takes over a stored decision, as JSON, unless the review has one already. It is sent only when the person says
    /// so.
    pub fn restore(&mut self, id: ReviewId, kept: &str) {
        if let Some(sending) = read(id, kept).filter(|_| self.get(id).is_none()) {
            self.by_review.insert(id, sending);
        }
    }

    /// Drops an unsent decision that another tab has settled.
    pub fn settle_elsewhere(&mut self, id: ReviewId) {
        if self.is_unsent(id) {
            self.by_review.remove(&id);
        }
    }

    /// An unanswered decision as JSON for the browser's storage; `None` if there is none, or if it is kept in memory
    /// only.
    pub fn stored(&self, id: ReviewId) -> Option<String> {
        let waits = |sending: &&Sending| matches!(sending.stage, Stage::Held(_) | Stage::Sending | Stage::Unsent(_));
        self.by_review.get(&id).filter(waits)?.stored()
    }
}

impl Sending {
    /// The decision as JSON for the browser's storage; `None` if it is kept in memory only.
    pub fn stored(&self) -> Option<String> {
        let Self { title, request, key, says, in_memory, .. } = self.clone();
        (!in_memory).then(|| serde_json::to_string(&Kept { title, request, key, says }).ok()).flatten()
    }
}

fn read(id: ReviewId, kept: &str) -> Option<Sending> {
    let Kept { title, request, key, says } = shared::client::read(kept).ok()?;
    Some(Sending { id, title, request, key, says, in_memory: false, stage: Stage::Unsent(Reason::Kept) })
}
