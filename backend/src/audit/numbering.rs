//! The numbers of entries in the audit log, by their rows in the log. They are assigned only if the rows are as they
//! were sealed.

use std::collections::{BTreeMap, BTreeSet};

use shared::seal::FirstBad;

use super::explained::Explained;
use super::key::Trusted;
use super::seal::{Hash, Opened};
use super::verify::{SEALS, bad_seal, check_range, range};
use crate::store::{self, Store};

/// The reason why entries have no numbers.
#[derive(Debug, thiserror::Error)]
pub enum NumberingError {
    /// The rows or their seals cannot be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The audit log is not valid at these rows.
    #[error("the audit log is not valid: {0} (`countersign audit verify`, docs/audit.md)")]
    Broken(String),
}

/// The number and hash of an entry of the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbered {
    /// The entry's number in the audit log, from 1.
    pub number: u64,
    /// The hash of the entry, after an erasure if there was one.
    pub hash: Hash,
}

/// Returns the entries of rows, in their order. A row that is not sealed yet is missing in the result. Reads again what
/// was archived or erased meanwhile, into `explained`.
pub async fn numbers(
    store: &Store,
    trusted: &Trusted,
    explained: &mut Explained,
    rows: &[i64],
) -> Result<BTreeMap<i64, Vec<Numbered>>, NumberingError> {
    let seals: BTreeSet<u64> = store.seals_of_rows(rows).await?.into_iter().flatten().collect();
    let wanted: BTreeSet<i64> = rows.iter().copied().collect();
    let mut numbers: BTreeMap<i64, Vec<Numbered>> = BTreeMap::new();
    for seal in seals {
        let (before, opened) = open(store, trusted, seal).await?;
        let from = before.map_or_else(|| store.origin(), |before| before.to);
        let broken = |bad: FirstBad| NumberingError::Broken(bad.message);
        let gone = || broken(bad_seal(seal, format!("seal {seal} is of another log")));
        let mut found = range(store, from.clone(), &opened).await?.ok_or_else(gone)?;
        let mut placed = check_range(&opened, &found, explained);
        // Entries may have been archived or erased since they were recorded in `explained`.
        while placed.is_err() && explained.refresh(store).await? {
            found = range(store, from.clone(), &opened).await?.ok_or_else(gone)?;
            placed = check_range(&opened, &found, explained);
        }
        for (found, number) in found.iter().zip(placed.map_err(broken)?) {
            if wanted.contains(&found.row) {
                numbers.entry(found.row).or_default().push(Numbered { number, hash: found.hash });
            }
        }
    }
    Ok(numbers)
}

/// Returns the number of entries before each seal, in the order of the seals.
pub async fn seals_before(store: &Store, trusted: &Trusted) -> Result<Vec<u64>, NumberingError> {
    let mut before = Vec::new();
    loop {
        let seals = store.seals(before.len() as u64, SEALS).await?;
        if seals.is_empty() {
            return Ok(before);
        }
        for stored in seals {
            before.push(Opened::open(&stored, trusted).map_err(NumberingError::Broken)?.seal.before);
        }
    }
}

/// Returns the number of entries before a seal, and the hashes of its own.
pub async fn sealed_hashes(store: &Store, trusted: &Trusted, seal: u64) -> Result<(u64, Vec<Hash>), NumberingError> {
    let (_, opened) = open(store, trusted, seal).await?;
    Ok((opened.seal.before, opened.hashes))
}

/// Opens a seal and the one before it, and checks that they are consecutive.
async fn open(store: &Store, trusted: &Trusted, number: u64) -> Result<(Option<Opened>, Opened), NumberingError> {
    let broken = |why: String| NumberingError::Broken(why);
    let mut opened = Vec::new();
    for stored in store.seals(number.saturating_sub(2), 2).await?.iter().filter(|stored| stored.number <= number) {
        opened.push(Opened::open(stored, trusted).map_err(broken)?);
    }
    let last = opened.pop().filter(|last| last.seal.number == number);
    let last = last.ok_or_else(|| broken(format!("seal {number} is gone")))?;
    let before = opened.pop();
    last.follows(before.as_ref()).map_err(broken)?;
    Ok((before, last))
}
