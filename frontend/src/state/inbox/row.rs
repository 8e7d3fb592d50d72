//! A review in memory: its newest version, and its state in the list.

use std::sync::Arc;

use shared::inbox::Urgency;
use shared::review::Review;
use shared::time::Timestamp;

/// A review and its state in the list.
#[derive(Debug, Clone)]
pub struct InboxRow {
    /// The newest version that is known.
    pub review: Arc<Review>,
    /// When it arrived, if that was while the list was shown.
    pub arrived: Option<Timestamp>,
    /// When it was resolved or left this person's sight; `None` while it is pending.
    pub settled: Option<Timestamp>,
    /// Whether this person may no longer see it.
    pub gone: bool,
    /// Its sort key in the list; `None` if it is not in the window.
    pub(super) place: Option<Urgency>,
}

// Compared by pointer: reviews may be as large as what agents write, and each change makes a new `Arc`.
impl PartialEq for InboxRow {
    fn eq(&self, other: &Self) -> bool {
        let rest = |row: &Self| (row.arrived, row.settled, row.gone, row.place);
        Arc::ptr_eq(&self.review, &other.review) && rest(self) == rest(other)
    }
}

impl InboxRow {
    /// A row for a review that has just become known.
    pub(super) fn of(review: Review) -> Self {
        Self { review: Arc::new(review), arrived: None, settled: None, gone: false, place: None }
    }

    /// Replaces the review if `review` is a newer version, and returns whether it was.
    pub(super) fn renew(&mut self, review: Review, now: Timestamp) -> bool {
        if self.review.version >= review.version {
            return false;
        }
        let waited = self.review.is_pending() && !self.gone;
        if review.is_pending() {
            (self.gone, self.settled) = (false, None);
        } else if waited {
            self.settled = Some(now);
        }
        self.review = Arc::new(review);
        true
    }
}
