//! Verifies the files of the archive against the audit log: each exists, is the recorded one, and has exactly the
//! entries that were sealed.

use std::collections::BTreeMap;

use shared::entry_numbers::EntryNumbers;
use shared::log::RunsArchived;
use shared::seal::{FirstBad, SealCheck, Tampering};

use super::archiver::ArchiveError;
use super::folder::Folder;
use super::piece::{self, ArchiveLine};
use crate::audit::{Explained, Hash, Head, NumberingError, Trusted, archive_entry, bad, hash, seals_before};
use crate::store::Store;

/// The number of archives per query.
const ARCHIVES: u32 = 100;

/// Verifies the log against its seals, as [`crate::audit::verify`] does, and then the archives.
pub async fn verify(
    store: &Store,
    trusted: &Trusted,
    expected: &[Head],
    folder: &Folder,
) -> Result<SealCheck, ArchiveError> {
    let check = crate::audit::verify(store, trusted, expected).await?;
    if !check.valid {
        return Ok(check);
    }
    let seals = seals_before(store, trusted).await?;
    let explained = Explained::read(store).await?;
    let mut last = 0;
    loop {
        let archives = store.archives(last, ARCHIVES).await?;
        if archives.is_empty() {
            return Ok(check);
        }
        for archive in archives {
            last = archive.number;
            // Without a record in the audit log, no entry counts as archived here.
            let Some(told) = archive_entry(store, &archive).await? else { continue };
            if let Err(why) = holds(store, trusted, (&seals, &explained), folder, &told).await? {
                let bad = FirstBad { entry: told.entries.iter().next(), ..bad(Tampering::Archive, why) };
                return Ok(SealCheck { valid: false, first_bad: Some(bad), ..check });
            }
        }
    }
}

/// Verifies one archive. The inner error says what does not match.
async fn holds(
    store: &Store,
    trusted: &Trusted,
    (seals, explained): (&[u64], &Explained),
    folder: &Folder,
    told: &RunsArchived,
) -> Result<Result<(), String>, ArchiveError> {
    let bytes = match folder.read(told) {
        Ok(bytes) => bytes,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let mut found: BTreeMap<u64, Hash> = BTreeMap::new();
    let read = piece::read(&bytes, |line| {
        if let ArchiveLine::Entry(number, text) = line {
            found.insert(number, hash(&text));
        }
        Ok(true)
    });
    let place = format!("archive {} in {}", told.archive, folder.path_of(&told.file).display());
    if let Err(error) = read {
        return Ok(Err(format!("{place} cannot be read: {error}")));
    }
    let numbers: EntryNumbers = found.keys().copied().collect();
    if numbers != told.entries {
        return Ok(Err(format!("{place} has the entries {numbers}, but the audit log records {}", told.entries)));
    }
    let mut open: Option<(u64, Vec<Hash>)> = None;
    for (number, hash) in found {
        // Seals are numbered from 1, and each begins after the last entry of the previous one.
        let seal = seals.partition_point(|before| *before < number) as u64;
        let sealed = |(before, hashes): &(u64, Vec<Hash>)| -> Option<Hash> {
            hashes.get(usize::try_from(number.checked_sub(before + 1)?).ok()?).copied()
        };
        let mut wanted = open.as_ref().and_then(sealed);
        if wanted.is_none() {
            open = match crate::audit::sealed_hashes(store, trusted, seal).await {
                Ok(hashes) => Some(hashes),
                Err(NumberingError::Broken(why)) => return Ok(Err(why)),
                Err(NumberingError::Store(error)) => return Err(error.into()),
            };
            wanted = open.as_ref().and_then(sealed);
        }
        // An entry that was erased in the database before it was archived has another hash.
        let wanted = explained.erased(number).or(wanted);
        if wanted != Some(hash) {
            return Ok(Err(format!("entry {number} in {place} is not the entry that was sealed")));
        }
    }
    Ok(Ok(()))
}
