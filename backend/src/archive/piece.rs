//! One archive in a file: a gzip member of JSON lines. The first line describes the archive. Then follow, run by run,
//! the run with its steps, reviews and messages, each row of the log with the inputs of the engine, and the row's
//! entries. From its member `kind` on, an entry has the bytes that were hashed when it was sealed.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::id::RunId;
use shared::log::Event;
use shared::review::Review;
use shared::run::Step;
use shared::time::Timestamp;

use crate::audit::sealed_text;
use crate::engine::RunState;
use crate::store::RunRow;

/// The format number of new archives.
const FORMAT: u32 = 1;
/// The maximum length of a line, in bytes.
const MAX_LINE: u64 = 256 << 20;

/// The first line of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The format number of the lines.
    pub format: u32,
    /// The id of the log that the runs belong to.
    pub log: String,
    /// The number of the archive, from 1.
    pub archive: u64,
    /// The day of the last change of each of its runs.
    pub day: String,
}

impl Header {
    /// Creates the header of a new archive.
    pub fn new(log: String, archive: u64, day: String) -> Self {
        Self { format: FORMAT, log, archive, day }
    }
}

/// The line of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunLine {
    /// The id of the run. This member comes first, since it distinguishes this line from other kinds.
    pub run: RunId,
    /// The last stored state, with large values inserted.
    pub state: RunState,
    /// All visits of nodes, in order.
    pub steps: Vec<Step>,
    /// Its reviews, in the order in which they were asked.
    pub reviews: Vec<Review>,
    /// The notifications that were sent about its reviews.
    pub deliveries: Vec<Value>,
}

/// The line of a row of the log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RowLine {
    /// The number of the row in the log.
    pub row: i64,
    /// The run whose commit wrote the row.
    pub run: RunId,
    /// The time of the commit.
    pub at: Timestamp,
    /// The inputs of the engine.
    pub inputs: Value,
}

/// The members before the event in the line of an entry.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryBefore {
    entry: u64,
    row: i64,
}

/// A line of an archive. Its first member determines the kind.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it is read line by line")]
pub enum ArchiveLine {
    /// The first line.
    Header(Header),
    /// A run with its steps, reviews and messages; its rows follow.
    Run(RunLine),
    /// A row of the log.
    Row(RowLine),
    /// An entry: its number in the audit log, and the text that was hashed.
    Entry(u64, String),
}

/// The beginning of the event in the line of an entry.
const ENTRY: &str = "\"kind\":";

/// Writes an archive.
pub struct Writer<W: io::Write> {
    out: GzEncoder<W>,
    /// The total length of the lines so far, in bytes.
    length: usize,
}

impl<W: io::Write> Writer<W> {
    /// Begins an archive with the line of its header.
    pub fn new(header: &Header, out: W) -> io::Result<Self> {
        let mut writer = Self { out: GzEncoder::new(out, Compression::default()), length: 0 };
        writer.line(&serde_json::to_string(header)?)?;
        Ok(writer)
    }

    /// Adds the line of a run. Its rows must follow.
    pub fn run(&mut self, run: &RunLine) -> io::Result<()> {
        self.line(&serde_json::to_string(run)?)
    }

    /// Adds a row of the run, with the numbers of its entries.
    pub fn row(&mut self, run: RunId, row: RunRow, entries: impl Iterator<Item = u64>) -> io::Result<()> {
        let number = row.number;
        let line = RowLine { row: number, run, at: row.at, inputs: row.inputs };
        self.line(&serde_json::to_string(&line)?)?;
        for (entry, event) in entries.zip(row.entries) {
            let before = serde_json::to_string(&EntryBefore { entry, row: number })?;
            // Joins two objects: the first without its closing brace, the second without its opening one.
            self.line(&format!("{},{}", &before[..before.len() - 1], &sealed_text(&event)?[1..]))?;
        }
        Ok(())
    }

    /// Returns the total length of the lines so far, in bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Finishes the archive, and returns the underlying writer.
    pub fn finish(self) -> io::Result<W> {
        self.out.finish()
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        self.length += line.len();
        self.out.write_all(line.as_bytes())?;
        self.out.write_all(b"\n")
    }
}

/// Reads an archive line by line until `each` returns `false`. Returns the length of the archive in the file, in bytes,
/// or `None` if it was not read to its end.
pub fn read(bytes: &[u8], mut each: impl FnMut(ArchiveLine) -> io::Result<bool>) -> io::Result<Option<usize>> {
    let mut reader = BufReader::new(GzDecoder::new(bytes));
    let mut line = Vec::new();
    loop {
        line.clear();
        if (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(Some(bytes.len() - reader.into_inner().into_inner().len()));
        }
        if !each(parsed(&line)?)? {
            return Ok(None);
        }
    }
}

fn parsed(line: &[u8]) -> io::Result<ArchiveLine> {
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let text = std::str::from_utf8(line).map_err(|error| wrong(error.to_string()))?;
    let text = text.strip_suffix('\n').ok_or_else(|| wrong("the last line is incomplete".to_owned()))?;
    if text.starts_with("{\"entry\":") {
        let at = text.find(ENTRY).ok_or_else(|| wrong("an entry without a kind".to_owned()))?;
        let before: EntryBefore = serde_json::from_str(&format!("{}}}", text[..at].trim_end_matches(',')))?;
        return Ok(ArchiveLine::Entry(before.entry, format!("{{{}", &text[at..])));
    }
    Ok(if text.starts_with("{\"run\":") {
        ArchiveLine::Run(serde_json::from_str(text)?)
    } else if text.starts_with("{\"row\":") {
        ArchiveLine::Row(serde_json::from_str(text)?)
    } else {
        let header: Header = serde_json::from_str(text)?;
        if header.format > FORMAT {
            return Err(wrong(format!("it has the format {} of a newer countersign", header.format)));
        }
        ArchiveLine::Header(header)
    })
}

/// Parses the event of an entry from the text that was hashed.
pub fn event(text: &str) -> io::Result<Event> {
    Ok(serde_json::from_str(text)?)
}
