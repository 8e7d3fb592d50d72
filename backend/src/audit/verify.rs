//! Verifies the log in the database against its seals: seal by seal, page by page, in constant memory. It stops at the
//! first error, and names it.

use shared::id::RunId;
use shared::log::{Cursor, EntryKind, Event};
use shared::seal::{FirstBad, SealCheck, Tampering};
use shared::time::Timestamp;

use super::compare::{Difference, compare};
use super::explained::Explained;
use super::key::Trusted;
use super::row_authentication::MustBeAuthentic;
use super::seal::{Hash, Head, Opened, hash, sealed_text};
use crate::store::{self, Authenticity, RecordRow, Store, StoredSeal};

/// The number of seals per query.
pub(super) const SEALS: u32 = 8;
/// The number of rows of the log per query.
pub(super) const ROWS: u32 = 64;
/// The number of surplus entries that are read before a range is reported as wrong.
const BEYOND: usize = 64;

/// An entry as found in the log or in a file.
pub(super) struct FoundEntry {
    pub hash: Hash,
    pub cursor: Cursor,
    /// The number of its row; 0 if it comes from a file.
    pub row: i64,
    pub run_id: Option<RunId>,
    /// Whether the row is as it was written; `Unchecked` if it comes from a file.
    pub mac: Authenticity,
    /// The kind and time of the entry, or why it cannot be read.
    pub told: Result<EntryHead, String>,
}

/// The part of an entry that describes it in messages.
pub(super) struct EntryHead {
    pub kind: EntryKind,
    pub at: Timestamp,
}

impl FoundEntry {
    /// Creates a found entry from an event, and hashes it.
    pub fn of(cursor: Cursor, event: &Event) -> Self {
        match sealed_text(event) {
            Ok(text) => Self::read(hash(&text), cursor, event),
            Err(error) => Self::unreadable(cursor, error.to_string()),
        }
    }

    /// Creates a found entry from an event whose hash is known.
    pub fn read(hash: Hash, cursor: Cursor, event: &Event) -> Self {
        let told = Ok(EntryHead { kind: event.kind, at: event.at });
        Self { hash, cursor, row: 0, run_id: event.run_id, mac: Authenticity::Unchecked, told }
    }

    /// Creates a found entry that cannot be read. No entry has the hash 0.
    pub fn unreadable(cursor: Cursor, why: String) -> Self {
        Self { hash: [0; 32], cursor, row: 0, run_id: None, mac: Authenticity::Unchecked, told: Err(why) }
    }

    fn of_row(row: RecordRow) -> Vec<Self> {
        let RecordRow { row, number, run_id, mac, entries } = row;
        match entries {
            Ok(entries) => {
                let found = entries.into_iter().map(|(cursor, event)| Self::of(cursor, &event));
                found.map(|found| Self { mac: mac.clone(), row: number, ..found }).collect()
            }
            Err(why) => vec![Self { run_id, mac, row: number, ..Self::unreadable(row, why) }],
        }
    }
}

/// Verifies the whole log against its seals. With heads that were kept elsewhere, also checks that these seals still
/// exist.
pub async fn verify(store: &Store, trusted: &Trusted, expected: &[Head]) -> Result<SealCheck, store::Error> {
    let mut last: Option<Opened> = None;
    let mut explained = Explained::read(store).await?;
    let (mut archived, mut erased) = (0, 0);
    loop {
        let number = last.as_ref().map_or(0, |last| last.seal.number);
        let seals = store.seals(number, SEALS).await?;
        if seals.is_empty() {
            break;
        }
        for stored in seals {
            let mut checked = check_seal(store, trusted, last.as_ref(), &stored, &explained).await?;
            // Entries may have been archived or erased since they were recorded in `explained`.
            while checked.is_err() && explained.refresh(store).await? {
                checked = check_seal(store, trusted, last.as_ref(), &stored, &explained).await?;
            }
            match checked {
                Ok(opened) => {
                    archived += explained.count_archived(opened.seal.before, opened.seal.entries);
                    erased += explained.count_erased(opened.seal.before, opened.seal.entries);
                    if let Some(bad) = expected.iter().find_map(|expected| replaced(&opened, expected)) {
                        return Ok(found_bad(last.as_ref(), bad));
                    }
                    last = Some(opened);
                }
                Err(bad) => return Ok(found_bad(last.as_ref(), bad)),
            }
        }
    }
    if let Some(bad) = expected.iter().find_map(|expected| cut(last.as_ref(), expected)) {
        return Ok(found_bad(last.as_ref(), bad));
    }
    let sealed = last.as_ref().map_or(0, Opened::sealed);
    let (waiting, bad) = waiting(store, last.as_ref()).await?;
    let head = last.as_ref().map(|last| last.head().to_string());
    let entries = sealed + waiting;
    Ok(SealCheck { valid: bad.is_none(), entries, sealed, archived, erased, head, first_bad: bad })
}

/// Verifies one seal, and the entries of its range.
async fn check_seal(
    store: &Store,
    trusted: &Trusted,
    last: Option<&Opened>,
    stored: &StoredSeal,
    explained: &Explained,
) -> Result<Result<Opened, FirstBad>, store::Error> {
    let bad = |why: String| Ok(Err(bad_seal(stored.number, why)));
    let opened = match Opened::open(stored, trusted) {
        Ok(opened) => opened,
        Err(why) => return bad(why),
    };
    if let Err(why) = opened.follows(last) {
        return bad(why);
    }
    let from = last.map_or_else(|| store.origin(), |last| last.to.clone());
    // A position from before a renumbering means nothing; the order of the hashes suffices.
    if stored.to != opened.seal.to && store.place(&opened.seal.to).is_some() {
        return bad(format!("seal {} was moved to another place in the log", stored.number));
    }
    let Some(found) = range(store, from, &opened).await? else {
        return bad(format!("seal {} is of another log", stored.number));
    };
    Ok(match check_range(&opened, &found, explained) {
        Ok(_) => Ok(opened),
        Err(bad) if bad.what == Tampering::Changed => Err(pushed_out(store, &opened, &found, bad).await?),
        Err(bad) => Err(bad),
    })
}

/// Compares the entries of a seal's range with the seal. Returns their numbers.
pub(super) fn check_range(opened: &Opened, found: &[FoundEntry], explained: &Explained) -> Result<Vec<u64>, FirstBad> {
    let there: Vec<Hash> = found.iter().map(|found| found.hash).collect();
    let expected = explained.expected(opened.seal.before, &opened.hashes, &there);
    let (numbers, hashes): (Vec<u64>, Vec<Hash>) = expected.into_iter().unzip();
    if let Some(difference) = compare(&hashes, &there) {
        let number = numbers.get(difference.at).copied().unwrap_or(opened.sealed() + 1);
        return Err(named(opened, found, difference, number));
    }
    match found.iter().position(|found| opened.seal.authenticated && is_bad(&found.mac)) {
        None => Ok(numbers),
        Some(at) => Err(not_as_written(opened, found, at, numbers.get(at).copied().unwrap_or_default())),
    }
}

/// Corrects the finding "changed" to "added" if the expected entry now follows the range: something was inserted before
/// it.
async fn pushed_out(
    store: &Store,
    opened: &Opened,
    found: &[FoundEntry],
    bad: FirstBad,
) -> Result<FirstBad, store::Error> {
    let at = bad.cursor.as_ref().and_then(|cursor| found.iter().position(|found| found.cursor == *cursor));
    let index = bad.entry.and_then(|number| usize::try_from(number.checked_sub(opened.seal.before + 1)?).ok());
    let (Some(at), Some(number), Some(wanted)) = (at, bad.entry, index.and_then(|index| opened.hashes.get(index)))
    else {
        return Ok(bad);
    };
    if found[at].hash == *wanted {
        return Ok(bad);
    }
    let Some(behind) = store.record(&opened.to, None, ROWS).await? else { return Ok(bad) };
    let entries = behind.rows.into_iter().filter_map(|row| row.entries.ok()).flatten();
    let is_there = entries.map(|(cursor, event)| FoundEntry::of(cursor, &event)).any(|found| found.hash == *wanted);
    Ok(if is_there { named(opened, found, Difference { at, what: Tampering::Added }, number) } else { bad })
}

/// Returns the current entries of a seal's range. `None` if the positions belong to another log.
pub(super) async fn range(
    store: &Store,
    from: Cursor,
    opened: &Opened,
) -> Result<Option<Vec<FoundEntry>>, store::Error> {
    let mut found = Vec::with_capacity(opened.hashes.len());
    let mut after = from;
    loop {
        let Some(page) = store.record(&after, Some(&opened.to), ROWS).await? else { return Ok(None) };
        for row in page.rows {
            after = row.row.clone();
            found.extend(FoundEntry::of_row(row));
        }
        if !page.more || found.len() > opened.hashes.len() + BEYOND {
            return Ok(Some(found));
        }
    }
}

/// Counts the entries that are not sealed yet. Also returns the first that can never be sealed.
async fn waiting(store: &Store, last: Option<&Opened>) -> Result<(u64, Option<FirstBad>), store::Error> {
    let mut after = last.map_or_else(|| store.origin(), |last| last.to.clone());
    let must = MustBeAuthentic::after(store, last).await?;
    let mut count = 0;
    while let Some(page) = store.record(&after, None, ROWS).await? {
        for row in page.rows {
            let refused = must.refuses(&row).filter(|_| row.mac != Authenticity::Unchecked);
            let number = last.map_or(0, Opened::sealed) + count + 1;
            let found = match (refused, &row.entries) {
                (None, Ok(entries)) => {
                    count += entries.len() as u64;
                    after = row.row;
                    continue;
                }
                (Some(why), _) => bad(Tampering::Added, why),
                (None, Err(why)) => {
                    let message = format!("entry {number}, which is not sealed yet, can no longer be read: {why}");
                    bad(Tampering::Changed, message)
                }
            };
            let kind = row.entries.ok().and_then(|entries| Some(entries.first()?.1.kind));
            let (cursor, run_id, entry) = (Some(row.row), row.run_id, Some(number));
            return Ok((count, Some(FirstBad { entry, cursor, run_id, kind, ..found })));
        }
        if !page.more {
            break;
        }
    }
    Ok((count, None))
}

/// Reports a seal that differs from the seal of the same number that was kept elsewhere.
pub(super) fn replaced(opened: &Opened, expected: &Head) -> Option<FirstBad> {
    let number = expected.number;
    (opened.seal.number == number && opened.head() != *expected)
        .then(|| bad_seal(number, format!("seal {number} is not the expected one: the audit log was rewritten")))
}

/// Reports that the log ends before the seal that was kept elsewhere.
pub(super) fn cut(last: Option<&Opened>, expected: &Head) -> Option<FirstBad> {
    let newest = last.map_or(0, |last| last.seal.number);
    let message = match newest {
        0 => format!("seal {} was expected, but nothing is sealed: the audit log was cut off", expected.number),
        _ => format!(
            "the audit log ends with seal {newest}, but seal {} was expected: its end was cut off",
            expected.number
        ),
    };
    (expected.number > newest).then(|| FirstBad { seal: Some(expected.number), ..bad(Tampering::Cut, message) })
}

/// Builds the result for a log that is not valid.
pub(super) fn found_bad(last: Option<&Opened>, bad: FirstBad) -> SealCheck {
    let sealed = last.map_or(0, Opened::sealed);
    let head = last.map(|last| last.head().to_string());
    SealCheck { valid: false, entries: sealed, sealed, archived: 0, erased: 0, head, first_bad: Some(bad) }
}

pub(crate) fn bad(what: Tampering, message: String) -> FirstBad {
    FirstBad { what, message, entry: None, seal: None, cursor: None, kind: None, run_id: None }
}

/// Builds the finding that a seal is not valid.
pub(super) fn bad_seal(number: u64, message: String) -> FirstBad {
    FirstBad { seal: Some(number), ..bad(Tampering::Seal, message) }
}

/// Whether a sealed row is known not to be as it was written. If the key that wrote it is missing, only the seal
/// counts.
fn is_bad(mac: &Authenticity) -> bool {
    matches!(mac, Authenticity::Missing | Authenticity::Wrong)
}

/// Describes an entry that is as it was sealed, in a row that was changed otherwise.
fn not_as_written(opened: &Opened, found: &[FoundEntry], at: usize, number: u64) -> FirstBad {
    let bad = named(opened, found, Difference { at, what: Tampering::Changed }, number);
    let is = words(&found[at]);
    let message = format!(
        "entry {number} ({is}) is what was sealed, but the row that holds it was changed or moved: its number, its \
         commit, or what the engine was told"
    );
    FirstBad { message, ..bad }
}

/// Describes the entry of a difference. `number` is its number in the audit log.
pub(super) fn named(opened: &Opened, found: &[FoundEntry], difference: Difference, number: u64) -> FirstBad {
    let Difference { at, what } = difference;
    let seal = opened.seal.number;
    let there = found.get(at).filter(|_| what != Tampering::Removed);
    let before = at.checked_sub(1).and_then(|at| found.get(at));
    let is = there.map(words).unwrap_or_default();
    let message = match what {
        Tampering::Changed => match there.map(|found| &found.told) {
            Some(Err(why)) => format!("entry {number} was changed and can no longer be read: {why}"),
            _ => format!("entry {number} ({is}) was changed after it was sealed"),
        },
        Tampering::Added => format!("an entry ({is}) was inserted in the place of entry {number}"),
        Tampering::Reordered => format!("entry {number} is now {is}: the order of entries was changed"),
        _ => match before {
            Some(before) => format!("entry {number} was removed; it was after {}", words(before)),
            None => format!("entry {number} was removed; it was the first of seal {seal}"),
        },
    };
    let told = there.and_then(|found| found.told.as_ref().ok());
    FirstBad {
        entry: Some(number),
        seal: Some(seal),
        cursor: there.or(before).map(|found| found.cursor.clone()),
        kind: told.map(|told| told.kind),
        run_id: there.and_then(|found| found.run_id),
        ..bad(what, message)
    }
}

fn words(found: &FoundEntry) -> String {
    match (&found.told, found.run_id) {
        (Ok(EntryHead { kind, at }), Some(run)) => format!("{kind} of run {run} at {at}"),
        (Ok(EntryHead { kind, at }), None) => format!("{kind} at {at}"),
        (Err(_), _) => "an entry that cannot be read".to_owned(),
    }
}
