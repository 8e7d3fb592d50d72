//! The missing or changed parts of the audit log that it explains itself, with its entries `runs.archived` and
//! `entries.erased`, which are sealed like any other, or were written by a server with the key.
//!
//! The tables of archives and erasures only say where these entries are. A row that names no such entry explains
//! nothing.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use shared::entry_numbers::EntryNumbers;
use shared::log::{EntriesErased, Event, EventData, RunsArchived};

use super::seal::Hash;
use crate::store::{self, Archive, Authenticity, Store};

/// The number of rows per query.
const AT_ONCE: u32 = 500;

/// The numbers of all archived entries, and the new hashes of all erased entries.
#[derive(Debug, Default)]
pub struct Explained {
    archived: EntryNumbers,
    /// The newest erasure of each erased entry, and its hash since then, by the number of the entry.
    erased: BTreeMap<u64, (u64, Hash)>,
    last_archive: u64,
    last_erasure: u64,
}

impl Explained {
    /// Reads all archives and erasures recorded so far.
    pub async fn read(store: &Store) -> Result<Self, store::Error> {
        let mut explained = Self::default();
        explained.refresh(store).await?;
        Ok(explained)
    }

    /// Reads the archives and erasures recorded since the last call. Returns whether there were any.
    pub async fn refresh(&mut self, store: &Store) -> Result<bool, store::Error> {
        let before = (self.last_archive, self.last_erasure);
        loop {
            let archives = store.archives(self.last_archive, AT_ONCE).await?;
            let erasures = store.erasures(self.last_erasure, AT_ONCE).await?;
            if archives.is_empty() && erasures.is_empty() {
                return Ok((self.last_archive, self.last_erasure) != before);
            }
            for archive in archives {
                self.last_archive = archive.number;
                if let Some(told) = archive_entry(store, &archive).await? {
                    self.archived.add_all(&told.entries);
                }
            }
            for (number, row) in erasures {
                self.last_erasure = number;
                let told = counted_row(store, row, |data| match data {
                    EventData::EntriesErased(told) if told.erasure == number => Some(told),
                    _ => None,
                });
                if let Some(told) = told.await? {
                    self.erase(&told);
                }
            }
        }
    }

    /// Returns the number of the newest erasure.
    pub fn last_erasure(&self) -> u64 {
        self.last_erasure
    }

    /// Returns the hash of an erased entry. `None` if the entry was not erased.
    pub fn erased(&self, number: u64) -> Option<Hash> {
        self.erased.get(&number).map(|(_, hash)| *hash)
    }

    /// Adds what an entry records about archived or erased entries. Ignores other entries.
    pub(super) fn take(&mut self, event: &Event) {
        match event.read() {
            Some(EventData::RunsArchived(told)) => self.archived.add_all(&told.entries),
            Some(EventData::EntriesErased(told)) => self.erase(&told),
            _ => {}
        }
    }

    fn erase(&mut self, told: &EntriesErased) {
        let hashes = BASE64.decode(&told.hashes).unwrap_or_default();
        let (hashes, rest) = hashes.as_chunks::<32>();
        if !rest.is_empty() || hashes.len() as u64 != told.entries.len() {
            return;
        }
        for (number, hash) in told.entries.iter().zip(hashes) {
            let newest = self.erased.entry(number).or_insert((told.erasure, *hash));
            if newest.0 < told.erasure {
                *newest = (told.erasure, *hash);
            }
        }
    }

    /// Counts the archived entries among the `entries` of a seal that follow the first `before` of the log.
    pub(super) fn count_archived(&self, before: u64, entries: u64) -> u64 {
        (before + 1..=before + entries).filter(|number| self.archived.has(*number)).count() as u64
    }

    /// Counts the erased entries among the `entries` of a seal that follow the first `before` of the log.
    pub(super) fn count_erased(&self, before: u64, entries: u64) -> u64 {
        self.erased.range(before + 1..=before + entries).count() as u64
    }

    /// Returns the hashes that the entries of a seal must have now. `before`: the number of entries sealed before it.
    pub(super) fn hashes(&self, before: u64, sealed: &[Hash]) -> Vec<Hash> {
        (before + 1..).zip(sealed).map(|(number, hash)| self.erased(number).unwrap_or(*hash)).collect()
    }

    /// Returns the numbers and hashes of the entries of a seal that must be present. Archived entries may be missing,
    /// but are expected where they are found.
    pub(super) fn expected(&self, before: u64, sealed: &[Hash], found: &[Hash]) -> Vec<(u64, Hash)> {
        let mut found = found.iter().peekable();
        let mut expected = Vec::with_capacity(sealed.len());
        for (number, hash) in (before + 1..).zip(self.hashes(before, sealed)) {
            let is_next = found.peek().is_some_and(|next| **next == hash);
            if is_next {
                found.next();
            }
            if is_next || !self.archived.has(number) {
                expected.push((number, hash));
            }
        }
        expected
    }
}

/// Whether an entry records archived or erased entries.
pub(super) fn explains(event: &Event) -> bool {
    matches!(event.kind, shared::log::EntryKind::RunsArchived | shared::log::EntryKind::EntriesErased)
}

/// Returns the record of an archive in the audit log. `None` if the row has no such record or is not trustworthy.
pub async fn archive_entry(store: &Store, archive: &Archive) -> Result<Option<RunsArchived>, store::Error> {
    let told = |data| match data {
        EventData::RunsArchived(told) if told.archive == archive.number => Some(told),
        _ => None,
    };
    counted_row(store, archive.row, told).await
}

/// Returns what a row of the log records. `None` unless the row is sealed or was written by a server with the key.
async fn counted_row<T>(
    store: &Store,
    row: i64,
    wanted: impl Fn(EventData) -> Option<T>,
) -> Result<Option<T>, store::Error> {
    let Some(found) = store.row_of_record(row).await? else { return Ok(None) };
    let sealed = store.seals_of_rows(&[row]).await?.first().copied().flatten().is_some();
    if !sealed && found.mac != Authenticity::Authentic {
        return Ok(None);
    }
    let events = found.entries.into_iter().flatten();
    Ok(events.rev().find_map(|(_, event)| wanted(event.read()?)))
}

/// Encodes hashes for the record of an erasure.
pub fn joined(hashes: &[Hash]) -> String {
    BASE64.encode(hashes.as_flattened())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(byte: u8) -> Hash {
        [byte; 32]
    }

    #[test]
    fn what_is_archived_may_be_missing_and_nothing_else() {
        let sealed: Vec<Hash> = (1..=5).map(hash).collect();
        let explained = Explained { archived: "12-13".parse().unwrap(), ..Explained::default() };
        let numbers = |found: &[Hash]| -> Vec<u64> {
            explained.expected(10, &sealed, found).into_iter().map(|(number, _)| number).collect()
        };
        assert_eq!(numbers(&[hash(1), hash(4), hash(5)]), [11, 14, 15]);
        assert_eq!(numbers(&sealed), [11, 12, 13, 14, 15]);
        assert_eq!(numbers(&[hash(1), hash(3), hash(4), hash(5)]), [11, 13, 14, 15], "one of them is removed already");
        assert_eq!(numbers(&[hash(1), hash(5)]), [11, 14, 15], "entry 14 is wanted");
    }

    #[test]
    fn what_was_erased_hashes_to_what_the_newest_erasure_says() {
        let told = |erasure: u64, entries: &str, hashes: &[Hash]| EntriesErased {
            erasure,
            username: "erased-1".parse().unwrap(),
            entries: entries.parse().unwrap(),
            hashes: joined(hashes),
        };
        let mut explained = Explained::default();
        // An export is read from its end.
        explained.erase(&told(2, "12", &[hash(22)]));
        explained.erase(&told(1, "12-13", &[hash(12), hash(13)]));
        explained.erase(&told(3, "11,14", &[hash(9)]));
        let sealed: Vec<Hash> = (1..=3).map(hash).collect();
        assert_eq!(explained.hashes(10, &sealed), [hash(1), hash(22), hash(13)]);
        assert_eq!((explained.count_erased(10, 2), explained.count_erased(12, 5)), (1, 1));
    }
}
