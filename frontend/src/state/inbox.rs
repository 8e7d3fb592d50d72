//! The reviews that a person may see, folded from the live socket: the list and the badge come from here.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::story::review_of;
use shared::id::ReviewId;
use shared::protocol::ServerMessage;
use shared::review::Review;
use shared::time::Timestamp;

/// How long a review stays in the list after it was resolved, in microseconds.
const LINGER: i64 = 60_000_000;

/// A review, and how it stands in the list.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// As it was last heard of.
    pub review: Arc<Review>,
    /// Whether it stands in the list.
    pub listed: bool,
    /// When it came, where it came while the list was shown.
    pub arrived: Option<Timestamp>,
    /// When it left `pending`, where the list showed it until then.
    pub settled: Option<Timestamp>,
    /// Whether it has left this person's sight.
    pub gone: bool,
}

/// The reviews that a person may see.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Inbox {
    rows: BTreeMap<ReviewId, Row>,
    pending: u64,
    loaded: bool,
}

impl Inbox {
    /// Takes in a message of the live socket that came at `now`.
    pub fn hear(&mut self, message: &ServerMessage, now: Timestamp) {
        match message {
            ServerMessage::Snapshot { pending, reviews, .. } => self.replace(*pending, reviews),
            ServerMessage::Entry(entry) => {
                if let Some(review) = review_of(entry) {
                    self.put(review, now);
                }
            }
            ServerMessage::Gone { review_id, .. } => self.lose(*review_id, now),
            _ => {}
        }
    }

    /// Whether only the server knows if a message brings one more: a review that was escalated or handed over, and is
    /// not in the list, may have been counted already while the list is not whole.
    pub fn is_doubtful(&self, message: &ServerMessage) -> bool {
        let ServerMessage::Entry(entry) = message else { return false };
        let moved = || matches!(entry.event.data.get("change")?.as_str()?, "escalated" | "delegated").then_some(());
        self.unseen() > 0 && moved().and_then(|()| review_of(entry)).is_some_and(|review| self.get(review.id).is_none())
    }

    /// Whether the first snapshot has come.
    pub fn is_loaded(&self) -> bool {
        self.loaded
    }

    /// How many are pending, also those that the list has not loaded.
    pub fn pending(&self) -> u64 {
        self.pending
    }

    /// A review.
    pub fn get(&self, id: ReviewId) -> Option<&Row> {
        self.rows.get(&id)
    }

    /// The list: the soonest deadline first, then those without one, the oldest first. Resolved ones keep their place.
    pub fn list(&self) -> Vec<&Row> {
        let mut rows: Vec<_> = self.rows.values().filter(|row| row.listed).collect();
        rows.sort_by_key(|row| (row.review.expires_at.unwrap_or(Timestamp::MAX), row.review.created_at, row.review.id));
        rows
    }

    /// Takes in a review, from an entry or from an answer of the API. An older or equal version changes nothing.
    pub fn put(&mut self, review: Review, now: Timestamp) {
        let pending = review.is_pending();
        let id = review.id;
        match self.rows.get_mut(&id) {
            Some(row) if row.review.version >= review.version => {}
            Some(row) => {
                let mut review = review;
                keep_own(&row.review, &mut review);
                let was_pending = row.review.is_pending() && !row.gone;
                row.review = Arc::new(review);
                if was_pending && !pending {
                    row.settled = row.listed.then_some(now);
                    self.pending = self.pending.saturating_sub(1);
                } else if !was_pending && pending {
                    row.gone = false;
                    row.settled = None;
                    row.listed = true;
                    self.pending += 1;
                }
            }
            None if pending => {
                // One that was pending at the snapshot but not on its page is counted already.
                let counted = self.loaded && self.shown_pending() < self.pending && review.version > 1;
                self.pending += u64::from(!counted);
                let row =
                    Row { review: Arc::new(review), listed: true, arrived: Some(now), settled: None, gone: false };
                self.rows.insert(id, row);
            }
            None => {
                // One that is over in its first version never waited.
                let uncounted = self.shown_pending() < self.pending && review.version > 1;
                if self.loaded && uncounted {
                    self.pending -= 1;
                }
                let row = Row { review: Arc::new(review), listed: false, arrived: None, settled: None, gone: false };
                self.rows.insert(id, row);
            }
        }
    }

    /// Takes in a review that was read by itself; does not count it.
    pub fn read(&mut self, review: Review) {
        let known = self.rows.get(&review.id).is_some_and(|row| row.review.version >= review.version);
        if !known {
            let listed = review.is_pending();
            let row = self.rows.entry(review.id).or_insert_with(|| Row {
                review: Arc::new(review.clone()),
                listed,
                arrived: None,
                settled: None,
                gone: false,
            });
            row.review = Arc::new(review);
        }
    }

    /// How many are pending that the list does not show.
    pub fn unseen(&self) -> u64 {
        self.pending.saturating_sub(self.shown_pending())
    }

    fn shown_pending(&self) -> u64 {
        self.rows.values().filter(|row| row.listed && row.review.is_pending() && !row.gone).count() as u64
    }

    fn replace(&mut self, pending: u64, reviews: &[Review]) {
        // What is over stays as it is; what waits is told anew.
        self.rows.retain(|_, row| !row.review.is_pending() || row.gone);
        for review in reviews {
            let row = Row { review: Arc::new(review.clone()), listed: true, arrived: None, settled: None, gone: false };
            self.rows.insert(review.id, row);
        }
        self.pending = pending;
        self.loaded = true;
    }

    fn lose(&mut self, id: ReviewId, now: Timestamp) {
        match self.rows.get_mut(&id) {
            Some(row) if !row.gone => {
                if row.review.is_pending() {
                    self.pending = self.pending.saturating_sub(1);
                }
                row.gone = true;
                row.settled = Some(now);
            }
            Some(_) => {}
            None => self.pending = self.pending.saturating_sub(1),
        }
    }

    /// Takes out of the list what was resolved long enough ago, but not what is open.
    pub fn sweep(&mut self, now: Timestamp, open: Option<ReviewId>) {
        for (id, row) in &mut self.rows {
            if row.settled.is_some_and(|at| now.0 - at.0 >= LINGER) && Some(*id) != open {
                row.listed = false;
            }
        }
    }

    /// Whether `sweep` would change anything.
    pub fn needs_sweep(&self, now: Timestamp, open: Option<ReviewId>) -> bool {
        self.rows
            .iter()
            .any(|(id, row)| row.listed && row.settled.is_some_and(|at| now.0 - at.0 >= LINGER) && Some(*id) != open)
    }
}

/// What everybody hears says nothing of secret votes: one's own is kept, or void with what it was on.
fn keep_own(before: &Review, now: &mut Review) {
    if !now.is_secret() || !now.decisions.is_empty() {
        return;
    }
    for own in &before.decisions {
        if own.revision == now.revision {
            now.decisions.push(own.clone());
        } else if let Some(voting) = &mut now.voting {
            voting.voided.push(own.voter().clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared::log::Cursor;

    use super::*;
    use crate::state::fixtures::{resolved, review};

    fn snapshot(pending: u64, reviews: Vec<Review>) -> ServerMessage {
        ServerMessage::Snapshot { cursor: Cursor("1".into()), pending, reviews }
    }

    fn inbox(pending: u64, reviews: Vec<Review>) -> Inbox {
        let mut inbox = Inbox::default();
        inbox.hear(&snapshot(pending, reviews), Timestamp(0));
        inbox
    }

    #[test]
    fn a_resolved_review_keeps_its_place_for_a_minute_and_is_not_counted() {
        let mut inbox = inbox(2, vec![review(1, 1, json!({})), review(2, 1, json!({}))]);
        inbox.put(resolved(1, 2, "tom"), Timestamp(10));
        assert_eq!((inbox.pending(), inbox.list().len()), (1, 2));
        let id = inbox.list()[0].review.id;
        inbox.sweep(Timestamp(10 + LINGER), Some(id));
        assert_eq!(inbox.list().len(), 2, "what is open stays");
        inbox.sweep(Timestamp(10 + LINGER), None);
        assert_eq!(inbox.list().len(), 1);
    }

    #[test]
    fn older_and_equal_versions_change_nothing() {
        let mut inbox = inbox(1, vec![review(1, 1, json!({}))]);
        inbox.put(resolved(1, 3, "tom"), Timestamp(1));
        inbox.put(review(1, 2, json!({})), Timestamp(2));
        inbox.put(review(1, 3, json!({})), Timestamp(3));
        assert_eq!(inbox.pending(), 0);
        assert!(!inbox.list()[0].review.is_pending());
    }

    #[test]
    fn the_count_includes_what_the_first_page_did_not_show() {
        let mut inbox = inbox(3, vec![review(1, 1, json!({}))]);
        inbox.put(resolved(9, 2, "tom"), Timestamp(1));
        assert_eq!(inbox.pending(), 2);
        inbox.put(review(8, 4, json!({})), Timestamp(2));
        assert_eq!((inbox.pending(), inbox.list().len()), (2, 2), "a claim brings it onto the list");
        inbox.put(review(7, 1, json!({})), Timestamp(3));
        assert_eq!(inbox.pending(), 3);
    }

    #[test]
    fn only_the_server_counts_what_moved_into_sight_while_the_list_is_not_whole() {
        let entry = |number: u8, change: &str| {
            let review = review(number, 4, json!({}));
            let entry = json!({"cursor": "2", "kind": "review.updated", "at": "2026-11-20T10:05:00Z",
                "data": {"change": change, "review": review}});
            ServerMessage::Entry(serde_json::from_value(entry).unwrap())
        };
        let whole = inbox(1, vec![review(1, 1, json!({}))]);
        assert!(!whole.is_doubtful(&entry(8, "escalated")), "what is not in a whole list is new");
        let part = inbox(3, vec![review(1, 1, json!({}))]);
        assert!(part.is_doubtful(&entry(8, "escalated")) && part.is_doubtful(&entry(8, "delegated")));
        assert!(!part.is_doubtful(&entry(1, "escalated")) && !part.is_doubtful(&entry(8, "claim")));
    }

    #[test]
    fn what_has_left_ones_sight_stays_greyed_and_is_not_counted() {
        let mut inbox = inbox(1, vec![review(1, 1, json!({}))]);
        let id = inbox.list()[0].review.id;
        inbox.hear(&ServerMessage::Gone { cursor: Cursor("2".into()), review_id: id }, Timestamp(5));
        inbox.hear(&ServerMessage::Gone { cursor: Cursor("2".into()), review_id: id }, Timestamp(6));
        assert_eq!((inbox.pending(), inbox.get(id).unwrap().gone), (0, true));
        inbox.put(review(1, 2, json!({})), Timestamp(7));
        assert_eq!((inbox.pending(), inbox.get(id).unwrap().gone), (1, false));
    }

    #[test]
    fn a_new_snapshot_replaces_what_was_pending() {
        let mut inbox = inbox(2, vec![review(1, 1, json!({})), review(2, 1, json!({}))]);
        inbox.hear(&snapshot(1, vec![review(2, 5, json!({}))]), Timestamp(9));
        let shown: Vec<_> = inbox.list().iter().map(|row| row.review.version).collect();
        assert_eq!((inbox.pending(), shown), (1, vec![5]));
    }

    #[test]
    fn ones_own_secret_vote_stays_until_what_it_was_on_changes() {
        let vote = json!({"by": "ana", "at": "2026-11-20T10:05:00Z", "via": "human", "revision": 1,
            "digest": "sha256:aa", "verdict": {"type": "choose", "option": "approve"}});
        let secret = |version: u64, revision: u32, decisions: serde_json::Value| {
            let voting = json!({"voters": ["ana"], "votes": 1, "standing": "s"});
            let more = json!({"blind": true, "voting": voting, "revision": revision, "decisions": decisions});
            review(1, version, more)
        };
        let mut inbox = inbox(1, vec![secret(2, 1, json!([vote]))]);
        let id = inbox.list()[0].review.id;
        inbox.put(secret(3, 1, json!([])), Timestamp(1));
        assert_eq!(inbox.get(id).unwrap().review.decisions.len(), 1);
        inbox.put(secret(4, 2, json!([])), Timestamp(2));
        let now = &inbox.get(id).unwrap().review;
        assert_eq!((now.decisions.len(), now.voting.as_ref().unwrap().voided.len()), (0, 1));
    }

    #[test]
    fn the_soonest_deadline_stands_first() {
        let at = |time: &str| json!({"expires_at": time});
        let rows = vec![
            review(1, 1, json!({})),
            review(2, 1, at("2026-11-20T12:00:00Z")),
            review(3, 1, at("2026-11-20T11:00:00Z")),
        ];
        let inbox = inbox(3, rows.clone());
        let order: Vec<_> = inbox.list().iter().map(|row| row.review.id).collect();
        assert_eq!(order, [rows[2].id, rows[1].id, rows[0].id]);
    }
}
