//! Which entries of the record are archived, as the record itself says: by its entries `runs.archived`, which are sealed
//! like any other, or were written by a server with the key.
//!
//! The table of archives only says where these entries stand. One that names no such entry explains nothing.

use shared::entry_numbers::EntryNumbers;
use shared::log::{Event, EventData, RunsArchived};

use super::seal::Hash;
use crate::store::{self, Archive, Authenticity, Store};

/// How many archives are looked up at once.
pub(super) const ARCHIVES: u32 = 500;

/// The numbers of all entries that are archived.
#[derive(Debug, Default)]
pub struct Archived {
    numbers: EntryNumbers,
    /// The last archive that was looked at.
    last: u64,
}

impl Archived {
    /// As the record says now.
    pub async fn read(store: &Store) -> Result<Self, store::Error> {
        let mut archived = Self::default();
        archived.refresh(store).await?;
        Ok(archived)
    }

    /// Takes in what was archived since; says whether there was anything.
    pub async fn refresh(&mut self, store: &Store) -> Result<bool, store::Error> {
        let before = self.last;
        loop {
            let archives = store.archives(self.last, ARCHIVES).await?;
            if archives.is_empty() {
                return Ok(self.last > before);
            }
            for archive in archives {
                self.last = archive.number;
                if let Some(told) = told(store, &archive).await? {
                    self.numbers.add_all(&told.entries);
                }
            }
        }
    }

    /// Takes in what an entry says; nothing where it says something else.
    pub(super) fn take(&mut self, event: &Event) {
        if let Some(EventData::RunsArchived(told)) = event.read() {
            self.numbers.add_all(&told.entries);
        }
    }

    /// How many of a seal's entries, behind so many, are archived.
    pub(super) fn count(&self, before: u64, entries: u64) -> u64 {
        (before + 1..=before + entries).filter(|number| self.numbers.has(*number)).count() as u64
    }

    /// The numbers of the entries of a seal that must be there, with their hashes. `before`: how many are sealed before
    /// it. An archived entry may still be there: it is taken where it stands.
    pub(super) fn expected(&self, before: u64, sealed: &[Hash], found: &[Hash]) -> Vec<(u64, Hash)> {
        let mut found = found.iter().peekable();
        let mut expected = Vec::with_capacity(sealed.len());
        for (number, hash) in (before + 1..).zip(sealed) {
            let is_next = found.peek().is_some_and(|next| *next == hash);
            if is_next {
                found.next();
            }
            if is_next || !self.numbers.has(number) {
                expected.push((number, *hash));
            }
        }
        expected
    }
}

/// What the record says of an archive; none where it says nothing that counts.
pub async fn told(store: &Store, archive: &Archive) -> Result<Option<RunsArchived>, store::Error> {
    let Some(row) = store.row_of_record(archive.row).await? else { return Ok(None) };
    let sealed = store.seals_of_rows(&[archive.row]).await?.first().copied().flatten().is_some();
    if !sealed && row.mac != Authenticity::Authentic {
        return Ok(None);
    }
    let events = row.entries.into_iter().flatten();
    let told = |event: &Event| match event.read() {
        Some(EventData::RunsArchived(told)) if told.archive == archive.number => Some(told),
        _ => None,
    };
    Ok(events.rev().find_map(|(_, event)| told(&event)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_archived_may_be_missing_and_nothing_else() {
        let hash = |byte: u8| [byte; 32];
        let sealed: Vec<Hash> = (1..=5).map(hash).collect();
        let archived = Archived { numbers: "12-13".parse().unwrap(), last: 1 };
        let numbers = |found: &[Hash]| -> Vec<u64> {
            archived.expected(10, &sealed, found).into_iter().map(|(number, _)| number).collect()
        };
        assert_eq!(numbers(&[hash(1), hash(4), hash(5)]), [11, 14, 15]);
        assert_eq!(numbers(&sealed), [11, 12, 13, 14, 15]);
        assert_eq!(numbers(&[hash(1), hash(3), hash(4), hash(5)]), [11, 13, 14, 15], "one of them is removed already");
        assert_eq!(numbers(&[hash(1), hash(5)]), [11, 14, 15], "entry 14 is wanted");
    }
}
