//! The reviews in memory, folded from messages of the live socket and answers of the API: the window onto the list, the
//! open review, and what was resolved a moment ago. Everything else, and all counts, come from the server.

pub mod address;
mod numbers;
mod row;
mod window;

use std::collections::BTreeMap;
use std::sync::Arc;

use shared::access::Principal;
use shared::api::{Page, ReviewQuery};
use shared::id::{ReviewId, RunId};
use shared::inbox::Urgency;
use shared::protocol::ServerMessage;
use shared::review::Review;
use shared::time::Timestamp;

use super::votes::keep_own;
pub use numbers::Numbers;
pub use row::InboxRow;
use window::PageRows;
pub use window::{PAGE, PAGES, Window};

/// How long a review stays in the list after it was resolved, in microseconds.
const LINGER: i64 = 60_000_000;
/// The largest number of resolved reviews that stay, the latest ones; a busy team resolves more in that time than
/// anybody reads.
const LINGERING: usize = 100;

/// The reviews in memory.
#[derive(Debug, Clone, Default)]
pub struct Inbox {
    rows: BTreeMap<ReviewId, InboxRow>,
    window: Window,
    numbers: Option<Numbers>,
    /// The filter of the list and the person who sees it; `None` until the list is first requested.
    asked: Option<(ReviewQuery, Principal)>,
    open: Option<ReviewId>,
    /// The selected reviews, which stay in memory however far the person scrolls.
    selected: Vec<ReviewId>,
    /// Whether another page is shown; then nothing reloads the list.
    left: bool,
    /// The number of list requests in flight, and what arrived since the first of them, which their answers may not
    /// contain yet. `None` is a review that is gone.
    awaited: usize,
    meanwhile: BTreeMap<ReviewId, Option<Review>>,
    /// Whether the list must be reloaded because only the server knows what it shows, and how often that was found.
    doubtful: bool,
    doubts: u64,
    changes: u64,
}

impl Inbox {
    /// Applies a message of the live socket that arrived at `now`.
    pub fn apply(&mut self, message: &ServerMessage, now: Timestamp) {
        match message {
            ServerMessage::Inbox { pending, mine, handed_over, .. } => {
                let (pending, mine, handed_over) = (*pending, *mine, *handed_over);
                self.numbers = Some(Numbers { pending, mine, handed_over });
                self.changes += 1;
            }
            ServerMessage::Entry(entry) => {
                if let Some(review) = entry.event.review() {
                    self.put(review, now);
                }
            }
            ServerMessage::Gone { review_id, .. } => self.lose(*review_id, now),
            _ => {}
        }
    }

    /// The counts of pending reviews; `None` until the server has sent them.
    pub fn numbers(&self) -> Option<Numbers> {
        self.numbers
    }

    /// The part of the server's list that is in memory.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// The review with this id; `None` if it is not in memory.
    pub fn get(&self, id: ReviewId) -> Option<&InboxRow> {
        self.rows.get(&id)
    }

    /// The index of a review in the whole list, from 0; `None` if it is not in the window.
    pub fn index(&self, id: ReviewId) -> Option<usize> {
        self.window.index(self.get(id)?.place.as_ref()?)
    }

    /// The review `by` rows away from `id`. A review that is not in the list counts from where it would stand; `None`
    /// gives the first row.
    pub fn beside(&self, id: Option<ReviewId>, by: isize) -> Option<ReviewId> {
        let rows = self.window.rows();
        let row = id.and_then(|id| self.get(id));
        let here = row.map(|row| rows.binary_search(&row.place.unwrap_or_else(|| Urgency::of(&row.review))));
        let next = match here {
            None => 0,
            Some(Ok(here)) => here.saturating_add_signed(by),
            // The row at this index already follows the missing one.
            Some(Err(here)) => here.saturating_add_signed(by - by.signum().max(0)),
        };
        rows.get(next.min(rows.len().checked_sub(1)?)).map(|row| row.id)
    }

    /// A pending review of this run, if one is in memory.
    pub fn asked_by(&self, run: RunId) -> Option<ReviewId> {
        let asks = |row: &&InboxRow| row.review.run_id == Some(run) && row.review.is_pending() && !row.gone;
        self.rows.values().find(asks).map(|row| row.review.id)
    }

    /// Whether the list has to be reloaded, for example since only the server knows what a search finds.
    pub fn is_doubtful(&self) -> bool {
        self.doubtful
    }

    /// The number of times that a reason to reload the list was found, including reasons that appear while an answer is
    /// taken in.
    pub fn doubts(&self) -> u64 {
        self.doubts
    }

    fn doubt(&mut self, is_unsure: bool) {
        self.doubtful |= is_unsure;
        self.doubts += u64::from(is_unsure);
    }

    /// A counter of changes that may affect the server's counts.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Sets the open review; it stays in memory, and so do the reviews of its run.
    pub fn read_now(&mut self, open: Option<ReviewId>) {
        self.open = open;
    }

    pub fn open(&self) -> Option<ReviewId> {
        self.open
    }

    /// Sets the reviews that are selected, or shown with them. Returns whether others were before.
    pub fn select(&mut self, selected: Vec<ReviewId>) -> bool {
        let is_new = self.selected != selected;
        self.selected = selected;
        is_new
    }

    /// Whether a review is selected, or shown with those that are.
    pub fn is_selected(&self, id: ReviewId) -> bool {
        self.selected.contains(&id)
    }

    /// Whether a pending review is in the list, as far as is known of the parts that are not in memory.
    pub fn is_listed(&self, id: ReviewId, now: Timestamp) -> bool {
        self.get(id).is_some_and(|row| {
            let is_elsewhere = || !self.window.covers(&Urgency::of(&row.review)) && self.fits(&row.review, now);
            row.review.is_pending() && !row.gone && (row.place.is_some() || is_elsewhere())
        })
    }

    /// Sets the filter of the list and its viewer. The old rows stay until the answer has arrived.
    pub fn show(&mut self, query: ReviewQuery, viewer: Principal) {
        self.asked = Some((query, viewer));
        self.left = false;
    }

    /// Closes the list. Its rows stay in memory and follow the live socket until the list is opened again.
    pub fn leave(&mut self) {
        (self.open, self.left) = (None, true);
        self.selected.clear();
    }

    /// Empties the list, since what was asked for could not be read.
    pub fn clear(&mut self) {
        self.doubtful = false;
        self.window.clear();
        self.rows.values_mut().for_each(|row| row.place = None);
    }

    /// Notes that a list request has been sent; [`Self::take`] or [`Self::give_up`] ends it.
    pub fn await_answer(&mut self) {
        self.awaited += 1;
    }

    /// Ends a list request that failed or is not needed any more.
    pub fn give_up(&mut self) {
        self.awaited = self.awaited.saturating_sub(1);
        if self.awaited == 0 {
            self.meanwhile.clear();
        }
    }

    /// Takes in pages of the list. With `from`, they replace the window, beginning with the page of that number;
    /// otherwise they are appended.
    pub fn take(&mut self, from: Option<usize>, pages: Vec<Page<Review>>, now: Timestamp) {
        // Nothing was asked for.
        if self.asked.is_none() {
            return self.give_up();
        }
        let mut lingering = Vec::new();
        if from.is_some() {
            self.doubtful = false;
            for row in self.rows.values_mut() {
                let place = row.place.take();
                lingering.extend(place.filter(|_| row.settled.is_some()).map(|place| (row.review.id, place)));
            }
        }
        let pages: Vec<PageRows> = pages.into_iter().map(|page| self.page(page, now)).collect();
        match from {
            Some(from) => self.window.replace(from, pages),
            None => pages.into_iter().for_each(|page| self.window.append(page)),
        }
        // Rows outside the window have no place.
        for row in self.rows.values_mut() {
            row.place = row.place.filter(|place| self.window.index(place).is_some());
        }
        for (id, place) in lingering {
            if let Some(row) = self.rows.get_mut(&id).filter(|row| row.place.is_none() && self.window.covers(&place)) {
                row.place = Some(place);
                self.window.insert(place);
            }
        }
        for (id, review) in self.meanwhile.clone() {
            if let Some(review) = review {
                self.put(review, now);
                self.arrange(id, now);
            }
        }
        self.give_up();
    }

    fn page(&mut self, page: Page<Review>, now: Timestamp) -> PageRows {
        let last = page.items.last().map(Urgency::of);
        let mut rows = Vec::new();
        for review in page.items {
            let id = review.id;
            if self.meanwhile.get(&id).is_some_and(Option::is_none) {
                continue;
            }
            self.read(review, now);
            let fits = self.get(id).is_some_and(|row| row.review.is_pending() && self.fits(&row.review, now));
            if let Some(row) = self.rows.get_mut(&id).filter(|_| fits) {
                let place = Urgency::of(&row.review);
                row.place = Some(place);
                rows.push(place);
            }
        }
        PageRows { rows, last, next: page.next_cursor }
    }

    /// Takes in a review from a log entry, or from the answer to an action of this page. Versions that are not newer
    /// are ignored.
    pub fn put(&mut self, mut review: Review, now: Timestamp) {
        let id = review.id;
        self.changes += 1;
        if let Some(row) = self.rows.get(&id).filter(|row| row.review.version < review.version) {
            keep_own(&row.review, &mut review);
        }
        if self.awaited > 0 {
            let newest = |known: &Option<Review>| known.as_ref().is_none_or(|known| known.version < review.version);
            if self.meanwhile.get(&id).is_none_or(newest) {
                self.meanwhile.insert(id, Some(review.clone()));
            }
        }
        if let Some(row) = self.rows.get_mut(&id) {
            if !row.renew(review, now) {
                return;
            }
        } else {
            let run = self.open.and_then(|open| self.get(open)?.review.run_id);
            let is_next = run.is_some() && review.run_id == run;
            let comes = review.is_pending() && self.window.covers(&Urgency::of(&review)) && self.fits(&review, now);
            let unsure = comes && self.is_searched();
            self.doubt(unsure);
            if !((comes && !unsure) || is_next || self.open == Some(id)) {
                return;
            }
            self.rows.insert(id, InboxRow { arrived: Some(now), ..InboxRow::of(review) });
        }
        self.arrange(id, now);
    }

    /// Takes in a review that was fetched from the server. It has this person's own secret vote, also if that was cast
    /// elsewhere, which the message with the same version has not.
    pub fn read(&mut self, review: Review, now: Timestamp) {
        let id = review.id;
        let row = self.rows.entry(id).or_insert_with(|| InboxRow::of(review.clone()));
        row.gone = false;
        if row.review.version == review.version && review.is_secret() {
            row.review = Arc::new(review.clone());
        }
        let is_newer = row.renew(review, now);
        // It had gone, and can be seen again.
        if row.review.is_pending() {
            row.settled = None;
        }
        if is_newer && row.place.is_some() {
            self.arrange(id, now);
        }
    }

    /// Marks a review that this person may no longer see.
    pub fn lose(&mut self, id: ReviewId, now: Timestamp) {
        self.changes += 1;
        if self.awaited > 0 {
            self.meanwhile.insert(id, None);
        }
        if let Some(row) = self.rows.get_mut(&id).filter(|row| !row.gone) {
            row.gone = true;
            row.settled = Some(now);
        }
    }

    /// Moves a row to its current place. Resolved and lost reviews keep theirs.
    fn arrange(&mut self, id: ReviewId, now: Timestamp) {
        let Some(row) = self.rows.get(&id) else { return };
        if !row.review.is_pending() || row.gone {
            return;
        }
        let fits = self.fits(&row.review, now);
        let place = Urgency::of(&row.review);
        // Only the server can tell whether it matches the search.
        let unsure = row.place.is_none() && self.is_searched();
        let before = row.place;
        self.doubt((fits && unsure) || self.window.is_full());
        // Nobody looks at the list, so it must not grow without end.
        if self.left && self.window.is_full() {
            return self.clear();
        }
        let place = Some(place).filter(|place| fits && !unsure && self.window.covers(place));
        if before != place {
            if let Some(before) = before {
                self.window.remove(&before);
            }
            if let Some(place) = place {
                self.window.insert(place);
            }
            self.rows.entry(id).and_modify(|row| row.place = place);
        }
    }

    fn is_searched(&self) -> bool {
        self.asked.as_ref().is_some_and(|(query, _)| query.q.is_some())
    }

    /// Whether a review matches the filter of the list, apart from the text search.
    fn fits(&self, review: &Review, now: Timestamp) -> bool {
        self.asked.as_ref().is_some_and(|(query, viewer)| query.matches(review, viewer, now))
    }

    /// Drops reviews that were resolved long enough ago and those in no list, except the open one, those of its run, the
    /// selected ones and `kept`.
    pub fn sweep(&mut self, now: Timestamp, kept: &[ReviewId]) {
        let leaving: Vec<_> = self.leaving(now, kept).collect();
        for id in leaving {
            if let Some(place) = self.rows.remove(&id).and_then(|row| row.place) {
                self.window.remove(&place);
            }
        }
    }

    /// Whether [`Self::sweep`] would drop anything.
    pub fn needs_sweep(&self, now: Timestamp, kept: &[ReviewId]) -> bool {
        self.leaving(now, kept).next().is_some()
    }

    fn leaving<'a>(&'a self, now: Timestamp, kept: &'a [ReviewId]) -> impl Iterator<Item = ReviewId> + 'a {
        let run = self.open.and_then(|open| self.get(open)?.review.run_id);
        let mut settled: Vec<Timestamp> = self.rows.values().filter_map(|row| row.settled).collect();
        let last = settled.len().saturating_sub(LINGERING);
        settled.sort_unstable();
        let since = settled.get(last).copied().unwrap_or(now).0.max(now.0 - LINGER + 1);
        let stays = move |id: &ReviewId, row: &InboxRow| {
            let listed = row.place.is_some() && row.settled.is_none_or(|at| at.0 >= since);
            listed
                || Some(*id) == self.open
                || (run.is_some() && row.review.run_id == run)
                || self.selected.contains(id)
                || kept.contains(id)
        };
        self.rows.iter().filter(move |(id, row)| !stays(id, row)).map(|(id, _)| *id)
    }
}

#[cfg(test)]
mod tests;
