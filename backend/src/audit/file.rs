//! Verifies an export on its own, with a public key but without server and database: line by line, newest entry first,
//! with at most the entries of one seal in memory.

use std::io::{BufRead, Read as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use shared::log::{Cursor, Event};
use shared::seal::{FirstBad, SealCheck, Tampering};

use super::compare::Difference;
use super::explained::{Explained, explains};
use super::export::{Before, Carried, ENTRY};
use super::key::Trusted;
use super::seal::{Hash, Head, Opened, Seal, hash};
use super::verify::{FoundEntry, bad, bad_seal, check_range, cut, named, replaced};
use crate::store::StoredSeal;

/// The maximum length of a line, in bytes.
const MAX_LINE: u64 = 256 << 20;

/// The result of verifying an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCheck {
    /// The result, in the form of that for the whole audit log.
    pub check: SealCheck,
    /// Whether the export was filtered, so that missing entries cannot be detected.
    pub part: bool,
}

/// Verifies an export in JSON lines. With the head of a seal that was kept elsewhere, also checks that the export
/// contains that seal.
pub fn verify_file(file: impl BufRead, trusted: &Trusted, expected: Option<&Head>) -> std::io::Result<FileCheck> {
    let mut reading = FileReader {
        trusted,
        expected,
        part: false,
        newest: None,
        open: None,
        line: 0,
        holding: 0,
        waiting: 0,
        explained: Explained::default(),
        in_archives: 0,
        erased: 0,
    };
    let first_bad = reading.all(file)?.err();
    let entries = reading.holding + reading.waiting;
    let head = reading.newest.map(|head| head.to_string());
    let (sealed, archived, erased) = (reading.holding, reading.in_archives, reading.erased);
    let check = SealCheck { valid: first_bad.is_none(), entries, sealed, archived, erased, head, first_bad };
    Ok(FileCheck { check, part: reading.part })
}

struct FileReader<'a> {
    trusted: &'a Trusted,
    expected: Option<&'a Head>,
    part: bool,
    newest: Option<Head>,
    /// The seal whose entries are being read.
    open: Option<Range>,
    /// The number of the current line, from 1.
    line: u64,
    holding: u64,
    waiting: u64,
    /// The archived and erased entries according to sealed entries of the file. They precede the entries that they
    /// explain.
    explained: Explained,
    in_archives: u64,
    erased: u64,
}

/// A seal with its entries in the file so far, newest first.
struct Range {
    opened: Opened,
    found: Vec<FoundEntry>,
    lines: Vec<u64>,
    /// The entries that explain older ones.
    explaining: Vec<Event>,
}

impl FileReader<'_> {
    /// Reads the whole file. The outer error: the file cannot be read. The inner one: it is not valid.
    fn all(&mut self, mut file: impl BufRead) -> std::io::Result<Result<(), FirstBad>> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = (&mut file).take(MAX_LINE).read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(self.end());
            }
            self.line += 1;
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            if let Err(bad) = self.entry(&line) {
                return Ok(Err(bad));
            }
        }
    }

    fn entry(&mut self, line: &[u8]) -> Result<(), FirstBad> {
        let number = self.line;
        let no_entry = || bad(Tampering::Changed, format!("line {number} is not an entry of an export in JSON lines"));
        let text = std::str::from_utf8(line).map_err(|_| no_entry())?;
        let (before, event) = split(text).ok_or_else(no_entry)?;
        let (found, explaining) = found(before.cursor, &event);
        let Some(sealed) = before.sealed else {
            if self.open.is_some() {
                let message = format!("line {number} has no seal, but is between sealed entries: it was inserted");
                return Err(FirstBad { cursor: Some(found.cursor), ..bad(Tampering::Added, message) });
            }
            self.waiting += 1;
            return Ok(());
        };
        if let Some(carried) = before.seal {
            let range = self.open_seal(sealed, &carried)?;
            let newer = self.open.replace(range);
            self.part |= carried.part;
            if let Some(newer) = newer {
                self.close(newer)?;
            }
        }
        let part = self.part;
        let range = self.open.as_mut().filter(|range| range.opened.seal.number == sealed);
        let range = range.ok_or_else(|| {
            let message =
                format!("line {number} belongs to seal {sealed}, but the earlier line with this seal is missing");
            FirstBad { seal: Some(sealed), ..bad(Tampering::Removed, message) }
        })?;
        if range.found.len() > range.opened.hashes.len() {
            return Err(range.check(part, &self.explained).err().unwrap_or_else(no_entry));
        }
        range.found.push(found);
        range.explaining.extend(explaining);
        range.lines.push(number);
        Ok(())
    }

    /// Opens a seal, and checks that the newer one follows it.
    fn open_seal(&mut self, number: u64, carried: &Carried) -> Result<Range, FirstBad> {
        let line = self.line;
        let unreadable = || bad_seal(number, format!("the seal in line {line} cannot be read"));
        let seal: Seal = serde_json::from_str(&carried.body).map_err(|_| unreadable())?;
        let stored = StoredSeal {
            number,
            to: seal.to,
            body: carried.body.clone(),
            signature: BASE64.decode(&carried.signature).map_err(|_| unreadable())?,
            hashes: BASE64.decode(&carried.hashes).map_err(|_| unreadable())?,
        };
        let opened =
            Opened::open(&stored, self.trusted).map_err(|why| bad_seal(number, format!("{why} (line {line})")))?;
        if let Some(bad) = self.expected.and_then(|expected| replaced(&opened, expected)) {
            return Err(bad);
        }
        match &self.open {
            // A filtered export may have no entries of a seal.
            Some(newer) if self.part && newer.opened.seal.number > number + 1 => {}
            Some(newer) => newer
                .opened
                .follows(Some(&opened))
                .map_err(|why| bad_seal(newer.opened.seal.number, format!("{why} (line {line})")))?,
            None => {
                if let Some(bad) = self.expected.and_then(|expected| cut(Some(&opened), expected)) {
                    return Err(bad);
                }
                self.newest = Some(opened.head());
            }
        }
        Ok(Range { opened, found: Vec::new(), lines: Vec::new(), explaining: Vec::new() })
    }

    fn close(&mut self, mut range: Range) -> Result<(), FirstBad> {
        range.check(self.part, &self.explained)?;
        let Seal { before, entries, .. } = range.opened.seal;
        if self.part {
            self.holding += range.found.len() as u64;
        } else {
            self.holding += entries;
            self.in_archives += self.explained.count_archived(before, entries);
            self.erased += self.explained.count_erased(before, entries);
        }
        // These entries are proved now, and explain entries of older seals.
        range.explaining.iter().for_each(|event| self.explained.take(event));
        Ok(())
    }

    fn end(&mut self) -> Result<(), FirstBad> {
        let Some(oldest) = self.open.take() else {
            return self.expected.and_then(|expected| cut(None, expected)).map_or(Ok(()), Err);
        };
        let first = oldest.opened.follows(None);
        let number = oldest.opened.seal.number;
        self.close(oldest)?;
        match first {
            Err(why) if !self.part => Err(bad_seal(number, why)),
            _ => Ok(()),
        }
    }
}

impl Range {
    /// Compares the entries with the seal.
    fn check(&mut self, part: bool, explained: &Explained) -> Result<(), FirstBad> {
        // The file is newest first, seals are oldest first.
        self.found.reverse();
        self.lines.reverse();
        let mut bad = if part {
            let hashes: Vec<Hash> = self.found.iter().map(|found| found.hash).collect();
            let Some(difference) = not_among(&explained.hashes(self.opened.seal.before, &self.opened.hashes), &hashes)
            else {
                return Ok(());
            };
            let bad = named(&self.opened, &self.found, difference, 0);
            let seal = self.opened.seal.number;
            let message = format!("an entry of seal {seal} was changed after it was sealed, or was inserted");
            FirstBad { entry: None, message, ..bad }
        } else {
            let Err(bad) = check_range(&self.opened, &self.found, explained) else { return Ok(()) };
            bad
        };
        let at = self.found.iter().position(|found| Some(&found.cursor) == bad.cursor.as_ref());
        // What was removed followed the named entry in the log, or preceded all entries.
        let at = match (bad.what, at) {
            (Tampering::Removed, Some(at)) => Some(at + 1),
            (Tampering::Removed, None) => Some(0),
            (_, at) => at,
        };
        let line = at.and_then(|at| self.lines.get(at)).or(self.lines.last());
        bad.message = format!("{} (line {})", bad.message, line.copied().unwrap_or_default());
        Err(bad)
    }
}

/// Returns the first hash that was not sealed, or not in this order.
fn not_among(sealed: &[Hash], found: &[Hash]) -> Option<Difference> {
    let mut rest = sealed.iter();
    let at = found.iter().position(|found| !rest.any(|sealed| sealed == found))?;
    Some(Difference { at, what: Tampering::Changed })
}

/// Splits a line into the members before the event and the text that was hashed.
fn split(line: &str) -> Option<(Before, String)> {
    let at = line.find(ENTRY)?;
    let before = line[..at].strip_suffix(',')?;
    let before = serde_json::from_str(&format!("{before}}}")).ok()?;
    Some((before, format!("{{{}", &line[at..])))
}

/// Parses an entry. Also returns its event if it explains other entries.
fn found(cursor: Cursor, text: &str) -> (FoundEntry, Option<Event>) {
    match serde_json::from_str::<Event>(text) {
        Ok(event) => {
            let found = FoundEntry::read(hash(text), cursor, &event);
            (found, Some(event).filter(explains))
        }
        Err(error) => (FoundEntry::unreadable(cursor, error.to_string()), None),
    }
}
