//! Holds the log in the database against its seals: seal after seal, page after page, in constant memory. Stops at the
//! first thing that does not hold, and names it.

use std::sync::{Arc, Mutex, PoisonError};

use shared::id::RunId;
use shared::log::{Cursor, EntryKind, Event};
use shared::seal::{FirstBad, SealCheck, SealHead, Tampering};
use shared::time::Timestamp;

use super::compare::{Difference, compare};
use super::key::Trusted;
use super::seal::{Hash, Head, Opened, hash, sealed_text};
use crate::store::{self, Store, StoredSeal};

/// How many seals are read at once.
const SEALS: u32 = 8;
/// How many rows of the log are read at once.
pub(super) const ROWS: u32 = 64;
/// How many entries more than were sealed are looked at before a range is called wrong.
const BEYOND: usize = 64;

/// What a server knows of its seals: whose are trusted, and which was the newest that it saw. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Seals {
    trusted: Arc<Trusted>,
    seen: Arc<Mutex<Option<Head>>>,
    /// One check at a time: it reads the whole log.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Seals {
    /// Trusts these keys.
    pub fn new(trusted: Trusted) -> Self {
        Self { trusted: Arc::new(trusted), ..Self::default() }
    }

    /// Checks everything, and that the newest seal that this server saw is still there.
    pub async fn check(&self, store: &Store) -> Result<SealCheck, store::Error> {
        let _turn = self.turn.lock().await;
        let seen = self.seen();
        verify(store, &self.trusted, seen.as_ref()).await
    }

    /// The newest seal, where there is one and it is signed by a key that is trusted.
    pub async fn head(&self, store: &Store) -> Result<Option<SealHead>, store::Error> {
        let last = store.last_seal().await?.and_then(|stored| Opened::open(&stored, &self.trusted).ok());
        Ok(last.map(|last| SealHead {
            head: last.head().to_string(),
            sealed: last.sealed(),
            sealed_at: last.seal.sealed_at,
        }))
    }

    pub(super) fn trusted(&self) -> &Trusted {
        &self.trusted
    }

    pub(super) fn seen(&self) -> Option<Head> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn see(&self, head: Head) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(head);
    }
}

/// An entry as it was found.
pub(super) struct Found {
    pub hash: Hash,
    pub cursor: Cursor,
    /// What it tells, or why it cannot be read.
    pub told: Result<Told, String>,
}

/// As much of an entry as names it.
pub(super) struct Told {
    pub kind: EntryKind,
    pub at: Timestamp,
    pub run_id: Option<RunId>,
}

impl Found {
    /// An entry of the log.
    pub fn of(cursor: Cursor, event: &Event) -> Self {
        match sealed_text(event) {
            Ok(text) => Self::read(hash(&text), cursor, event),
            Err(error) => Self::unreadable(cursor, error.to_string()),
        }
    }

    /// The same, where its hash is known.
    pub fn read(hash: Hash, cursor: Cursor, event: &Event) -> Self {
        Self { hash, cursor, told: Ok(Told { kind: event.kind, at: event.at, run_id: event.run_id }) }
    }

    /// What can no longer be read: no entry has this hash.
    pub fn unreadable(cursor: Cursor, why: String) -> Self {
        Self { hash: [0; 32], cursor, told: Err(why) }
    }
}

/// Holds the whole log against its seals. With the head of a seal that was kept elsewhere: also that it is still there.
pub async fn verify(store: &Store, trusted: &Trusted, expected: Option<&Head>) -> Result<SealCheck, store::Error> {
    let mut last: Option<Opened> = None;
    loop {
        let number = last.as_ref().map_or(0, |last| last.seal.number);
        let seals = store.seals(number, SEALS).await?;
        if seals.is_empty() {
            break;
        }
        for stored in seals {
            match check_seal(store, trusted, last.as_ref(), &stored).await? {
                Ok(opened) => {
                    if let Some(bad) = expected.and_then(|expected| replaced(&opened, expected)) {
                        return Ok(found_bad(last.as_ref(), bad));
                    }
                    last = Some(opened);
                }
                Err(bad) => return Ok(found_bad(last.as_ref(), bad)),
            }
        }
    }
    if let Some(bad) = expected.and_then(|expected| cut(last.as_ref(), expected)) {
        return Ok(found_bad(last.as_ref(), bad));
    }
    let sealed = last.as_ref().map_or(0, Opened::sealed);
    let (waiting, bad) = waiting(store, last.as_ref()).await?;
    let head = last.as_ref().map(|last| last.head().to_string());
    Ok(SealCheck { valid: bad.is_none(), entries: sealed + waiting, sealed, head, first_bad: bad })
}

/// One seal, and the entries of its range.
async fn check_seal(
    store: &Store,
    trusted: &Trusted,
    last: Option<&Opened>,
    stored: &StoredSeal,
) -> Result<Result<Opened, FirstBad>, store::Error> {
    let bad = |why: String| Ok(Err(bad_seal(stored.number, why)));
    let opened = match Opened::open(stored, trusted) {
        Ok(opened) => opened,
        Err(why) => return bad(why),
    };
    if let Err(why) = opened.follows(last) {
        return bad(why);
    }
    let from = if last.is_some() { opened.seal.from.clone() } else { store.origin().await? };
    if stored.to != opened.seal.to || from != opened.seal.from {
        return bad(format!("seal {} was moved to another place in the log", stored.number));
    }
    let Some(found) = range(store, from, &opened).await? else {
        return bad(format!("seal {} is of another log", stored.number));
    };
    let hashes: Vec<Hash> = found.iter().map(|found| found.hash).collect();
    Ok(match compare(&opened.hashes, &hashes) {
        None => Ok(opened),
        Some(difference) => Err(named(&opened, &found, pushed_out(store, &opened, difference).await?)),
    })
}

/// An entry whose place another one has, and that stands behind the range now, was not changed: something was put in
/// before it.
async fn pushed_out(store: &Store, opened: &Opened, difference: Difference) -> Result<Difference, store::Error> {
    let wanted = match opened.hashes.get(difference.at) {
        Some(wanted) if difference.what == Tampering::Changed => wanted,
        _ => return Ok(difference),
    };
    let Some(behind) = store.record(&opened.seal.to, None, ROWS).await? else { return Ok(difference) };
    let entries = behind.rows.into_iter().filter_map(|row| row.entries.ok()).flatten();
    let is_there = entries.map(|(cursor, event)| Found::of(cursor, &event)).any(|found| found.hash == *wanted);
    Ok(if is_there { Difference { what: Tampering::Added, ..difference } } else { difference })
}

/// The entries of a seal's range, as they are now.
async fn range(store: &Store, from: Cursor, opened: &Opened) -> Result<Option<Vec<Found>>, store::Error> {
    let mut found = Vec::with_capacity(opened.hashes.len());
    let mut after = from;
    loop {
        let Some(page) = store.record(&after, Some(&opened.seal.to), ROWS).await? else { return Ok(None) };
        for row in page.rows {
            match row.entries {
                Ok(entries) => found.extend(entries.into_iter().map(|(cursor, event)| Found::of(cursor, &event))),
                Err(why) => found.push(Found::unreadable(row.row.clone(), why)),
            }
            after = row.row;
        }
        if !page.more || found.len() > opened.hashes.len() + BEYOND {
            return Ok(Some(found));
        }
    }
}

/// How many entries wait for their seal. One that cannot be read never gets one.
async fn waiting(store: &Store, last: Option<&Opened>) -> Result<(u64, Option<FirstBad>), store::Error> {
    let mut after = match last {
        Some(last) => last.seal.to.clone(),
        None => store.origin().await?,
    };
    let mut count = 0;
    while let Some(page) = store.record(&after, None, ROWS).await? {
        for row in page.rows {
            match row.entries {
                Ok(entries) => count += entries.len() as u64,
                Err(why) => {
                    let number = last.map_or(0, Opened::sealed) + count + 1;
                    let message = format!("entry {number}, which is not sealed yet, can no longer be read: {why}");
                    let bad =
                        FirstBad { entry: Some(number), cursor: Some(row.row), ..bad(Tampering::Changed, message) };
                    return Ok((count, Some(bad)));
                }
            }
            after = row.row;
        }
        if !page.more {
            break;
        }
    }
    Ok((count, None))
}

/// Whether a seal is another one than the one of its number that was kept elsewhere.
pub(super) fn replaced(opened: &Opened, expected: &Head) -> Option<FirstBad> {
    let number = expected.number;
    (opened.seal.number == number && opened.head() != *expected)
        .then(|| bad_seal(number, format!("seal {number} is not the one that was expected: the record was made anew")))
}

/// Whether the seal that was kept elsewhere lies behind the last one.
pub(super) fn cut(last: Option<&Opened>, expected: &Head) -> Option<FirstBad> {
    let newest = last.map_or(0, |last| last.seal.number);
    let message = match newest {
        0 => format!("seal {} was expected, and there is none: the record was cut", expected.number),
        _ => format!("the record ends with seal {newest}, and seal {} was expected: its end was cut", expected.number),
    };
    (expected.number > newest).then(|| FirstBad { seal: Some(expected.number), ..bad(Tampering::Cut, message) })
}

/// The answer where something does not hold.
pub(super) fn found_bad(last: Option<&Opened>, bad: FirstBad) -> SealCheck {
    let sealed = last.map_or(0, Opened::sealed);
    let head = last.map(|last| last.head().to_string());
    SealCheck { valid: false, entries: sealed, sealed, head, first_bad: Some(bad) }
}

pub(super) fn bad(what: Tampering, message: String) -> FirstBad {
    FirstBad { what, message, entry: None, seal: None, cursor: None, kind: None, run_id: None }
}

/// A seal that does not hold.
pub(super) fn bad_seal(number: u64, message: String) -> FirstBad {
    FirstBad { seal: Some(number), ..bad(Tampering::Seal, message) }
}

/// Names the entry of a difference.
pub(super) fn named(opened: &Opened, found: &[Found], difference: Difference) -> FirstBad {
    let Difference { at, what } = difference;
    let number = opened.seal.before + at as u64 + 1;
    let seal = opened.seal.number;
    let there = found.get(at).filter(|_| what != Tampering::Removed);
    let before = at.checked_sub(1).and_then(|at| found.get(at));
    let is = there.map(words).unwrap_or_default();
    let message = match what {
        Tampering::Changed => match there.map(|found| &found.told) {
            Some(Err(why)) => format!("entry {number} was changed, and can no longer be read: {why}"),
            _ => format!("entry {number} ({is}) was changed after it was sealed"),
        },
        Tampering::Added => format!("an entry ({is}) was put in where entry {number} stood"),
        Tampering::Reordered => format!("entry {number} is now {is}: the order of entries was changed"),
        _ => match before {
            Some(before) => format!("entry {number} was removed; it stood behind {}", words(before)),
            None => format!("entry {number} was removed; it was the first of seal {seal}"),
        },
    };
    let told = there.and_then(|found| found.told.as_ref().ok());
    FirstBad {
        entry: Some(number),
        seal: Some(seal),
        cursor: there.or(before).map(|found| found.cursor.clone()),
        kind: told.map(|told| told.kind),
        run_id: told.and_then(|told| told.run_id),
        ..bad(what, message)
    }
}

fn words(found: &Found) -> String {
    match &found.told {
        Ok(Told { kind, at, run_id: Some(run) }) => format!("{kind} of run {run} at {at}"),
        Ok(Told { kind, at, run_id: None }) => format!("{kind} at {at}"),
        Err(_) => "an entry that cannot be read".to_owned(),
    }
}
