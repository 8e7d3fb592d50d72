//! The newest entries of the log, in memory: bounded by number and by bytes, read by every session at its own pace.
//!
//! An entry has a number here, which counts from the start of the process. A session holds the number of the entry
//! that it wants next; one that has fallen out of the ring has to subscribe again.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch;

use super::outgoing::OutgoingEntry;
use crate::store::cursor::LogPlace;

/// An offset that no session can have reached. It marks all entries as lost when the log is replaced.
const GAP: u64 = 1 << 40;

pub(super) struct Ring {
    window: RwLock<Window>,
    grown: watch::Sender<u64>,
    max_entries: usize,
    max_bytes: usize,
}

struct Window {
    entries: VecDeque<Arc<OutgoingEntry>>,
    /// The number of the first entry in the window.
    first: u64,
    bytes: usize,
    /// The position in the log after which the window is complete.
    floor: LogPlace,
    /// The position up to which the log has been read.
    head: LogPlace,
    listeners: usize,
}

impl Window {
    fn clear(&mut self, head: LogPlace) {
        self.entries.clear();
        self.bytes = 0;
        (self.floor, self.head) = (head, head);
    }

    fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }
}

#[derive(Debug)]
pub(super) enum RingRead {
    /// The next entries, in order. Empty if there are none yet.
    Entries(Vec<Arc<OutgoingEntry>>),
    /// The requested entry is no longer in the ring.
    Lagged,
}

impl Ring {
    pub fn new(head: LogPlace, max_entries: usize, max_bytes: usize) -> Self {
        let window = Window { entries: VecDeque::new(), first: 0, bytes: 0, floor: head, head, listeners: 0 };
        Self { window: RwLock::new(window), grown: watch::Sender::new(0), max_entries, max_bytes }
    }

    /// Adds entries, which reach up to `head`.
    pub fn push(&self, batch: Vec<Arc<OutgoingEntry>>, head: LogPlace) {
        let nothing_new = batch.is_empty();
        let next = {
            let mut window = self.window.write();
            for published in batch {
                window.bytes += published.size();
                window.entries.push_back(published);
            }
            while window.entries.len() > self.max_entries || (window.bytes > self.max_bytes && window.entries.len() > 1)
            {
                let Some(oldest) = window.entries.pop_front() else { break };
                window.first += 1;
                window.bytes -= oldest.size();
                window.floor = oldest.place;
            }
            window.head = head;
            window.next()
        };
        if !nothing_new {
            self.grown.send_replace(next);
        }
    }

    /// Starts anew at `head`, because the log was replaced.
    pub fn reset(&self, head: LogPlace) {
        let next = {
            let mut window = self.window.write();
            window.first = window.next() + GAP;
            window.clear(head);
            window.next()
        };
        self.grown.send_replace(next);
    }

    /// Adds a listener. Until it [leaves](Self::leave), no entry is skipped.
    pub fn join(&self) {
        self.window.write().listeners += 1;
    }

    pub fn leave(&self) {
        self.window.write().listeners -= 1;
    }

    pub fn has_listeners(&self) -> bool {
        self.window.read().listeners > 0
    }

    /// Continues at `head` without the entries before it, which nobody has listened to, and calls `forget` before
    /// anyone can listen. Returns `false`, and skips nothing, if there is a listener.
    pub fn skip(&self, head: LogPlace, forget: impl FnOnce()) -> bool {
        let mut window = self.window.write();
        if window.listeners > 0 {
            return false;
        }
        window.first = window.next();
        window.clear(head);
        forget();
        true
    }

    /// Returns at most `limit` entries from number `from` on.
    pub fn read(&self, from: u64, limit: usize) -> RingRead {
        let window = self.window.read();
        let Some(skip) = from.checked_sub(window.first) else { return RingRead::Lagged };
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        RingRead::Entries(window.entries.iter().skip(skip).take(limit).cloned().collect())
    }

    /// Returns the number of the first entry after a position. `None` if the position is before the window, or ahead of
    /// what has been read.
    pub fn after(&self, place: LogPlace) -> Option<u64> {
        let window = self.window.read();
        let known = window.floor <= place && place <= window.head;
        let before = window.entries.partition_point(|entry| entry.place <= place);
        known.then(|| window.first + before as u64)
    }

    /// Returns the position up to which the log has been read.
    pub fn head(&self) -> LogPlace {
        self.window.read().head
    }

    /// Returns a receiver that changes when entries were added.
    pub fn grown(&self) -> watch::Receiver<u64> {
        self.grown.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::super::parsed_entry::ParsedEntry;
    use super::super::run_visibility::Viewers;
    use super::*;
    use shared::log::{Cursor, Entry, EntryKind, Event};
    use shared::time::Timestamp;

    /// Builds the first entry of a row.
    fn entry(row: i64) -> Arc<OutgoingEntry> {
        let event = Event {
            kind: EntryKind::FlowSaved,
            at: Timestamp(0),
            run_id: None,
            review_id: None,
            actor: None,
            token: None,
            data: serde_json::Map::new(),
        };
        let place = LogPlace { seq: row, seen: 1 };
        let entry = Entry { cursor: Cursor(row.to_string()), sealed: None, event };
        Arc::new(OutgoingEntry::new(ParsedEntry::new(entry), place, Viewers::Nobody))
    }

    /// The position after a whole row.
    fn behind(row: i64) -> LogPlace {
        LogPlace { seq: row, seen: u32::MAX }
    }

    fn rows(read: RingRead) -> Vec<String> {
        match read {
            RingRead::Entries(entries) => entries.iter().map(|published| published.cursor.0.clone()).collect(),
            RingRead::Lagged => vec!["lagged".to_owned()],
        }
    }

    #[test]
    fn a_reader_gets_each_entry_once_and_in_order() {
        let ring = Ring::new(behind(0), 8, usize::MAX);
        ring.push((1..=3).map(entry).collect(), behind(3));
        let from = ring.after(behind(1)).expect("known");
        assert_eq!(rows(ring.read(from, 1)), ["2"]);
        assert_eq!(rows(ring.read(from + 1, 9)), ["3"]);
        assert_eq!(rows(ring.read(from + 2, 9)), [""; 0]);
    }

    #[test]
    fn a_reader_that_is_too_slow_is_told() {
        let ring = Ring::new(behind(0), 2, usize::MAX);
        let from = ring.after(ring.head()).expect("known");
        ring.push((1..=3).map(entry).collect(), behind(3));
        assert_eq!(rows(ring.read(from, 9)), ["lagged"]);
        assert_eq!(ring.after(LogPlace { seq: 1, seen: 0 }), None, "the first entry of row 1 is gone");
        assert_eq!(rows(ring.read(from + 1, 9)), ["2", "3"]);
    }

    #[test]
    fn the_ring_is_bounded_by_bytes_too() {
        let ring = Ring::new(behind(0), 100, 1);
        ring.push((1..=3).map(entry).collect(), behind(3));
        assert_eq!(rows(ring.read(2, 9)), ["3"]);
    }

    #[test]
    fn readers_of_a_log_that_was_replaced_are_told() {
        let ring = Ring::new(behind(0), 8, usize::MAX);
        ring.push((1..=3).map(entry).collect(), behind(3));
        ring.reset(behind(77));
        assert_eq!(rows(ring.read(3, 9)), ["lagged"]);
        let from = ring.after(behind(77)).expect("known");
        assert_eq!(rows(ring.read(from, 9)), [""; 0]);
    }

    #[test]
    fn nothing_is_skipped_while_somebody_listens() {
        let ring = Ring::new(behind(0), 8, usize::MAX);
        ring.push((1..=3).map(entry).collect(), behind(3));
        ring.join();
        let from = ring.after(ring.head()).expect("known");
        assert!(!ring.skip(behind(5), || panic!("forgot what is needed")));
        ring.push(vec![entry(4)], behind(4));
        assert_eq!(rows(ring.read(from, 9)), ["4"]);
        ring.leave();
        assert!(ring.skip(behind(5), || {}));
        // A new listener starts after what was skipped, and does not find it in the ring.
        let from = ring.after(behind(5)).expect("known");
        assert_eq!(ring.after(behind(4)), None);
        ring.push(vec![entry(6)], behind(6));
        assert_eq!(rows(ring.read(from, 9)), ["6"]);
    }
}
