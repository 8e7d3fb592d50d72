//! Exports entries as CSV (RFC 4180) and as JSON lines, which contain everything needed to verify them without the
//! server.
//!
//! A JSON line is an entry. From its member `kind` on, it has the bytes that were hashed; before that are `cursor`,
//! `sealed`, and, with the newest entry of each seal, the seal.

use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use shared::log::{Cursor, Entry};

use super::seal::sealed_text;
use crate::store::{self, Store, StoredSeal};

/// How entries are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// CSV for spreadsheets: a row for each entry, with its data as JSON in the last column.
    Csv,
    /// For programs: whole entries, as the API shows them.
    JsonLines,
}

/// An entry that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// An entry, its place in the log, or its seal could not be serialised.
    #[error("an entry of the audit log could not be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The row of an entry could not be written, for this reason.
    #[error("an entry of the audit log could not be written as CSV: {0}")]
    Csv(String),
    /// Its seal could not be read.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl FromStr for Format {
    type Err = String;
    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "csv" => Ok(Self::Csv),
            "jsonl" => Ok(Self::JsonLines),
            _ => Err("`csv` or `jsonl`".to_owned()),
        }
    }
}

impl Format {
    /// How its files end.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::JsonLines => "jsonl",
        }
    }

    /// Its media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::JsonLines => "application/x-ndjson",
        }
    }

    /// What comes before all entries.
    pub fn head(self) -> &'static str {
        match self {
            Self::Csv => "cursor,at,kind,actor,run_id,review_id,data\r\n",
            Self::JsonLines => "",
        }
    }
}

/// What stands before an entry in its line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Before {
    /// Its place in the log.
    pub cursor: Cursor,
    /// The number of its seal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<u64>,
    /// The seal, with the newest of its entries in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Carried>,
}

/// A seal in a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Carried {
    /// What is signed.
    pub body: String,
    /// The signature of the body, in base64.
    pub signature: String,
    /// Base64 of 32 bytes for each entry, in the order of the log.
    pub hashes: String,
    /// Whether entries were left out, because somebody asked for some of them only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub part: bool,
}

/// Where the entry begins in a line.
pub(super) const ENTRY: &str = "\"kind\":";

/// Writes entries, newest first.
#[derive(Debug, Clone)]
pub struct Lines {
    format: Format,
    part: bool,
    /// The newest seal when the export began: what is sealed meanwhile counts as not sealed, or the file would hold a
    /// part of that seal's entries only.
    newest: u64,
    /// The seal that was written last.
    carried: Option<u64>,
}

impl Lines {
    /// An export that begins now. `part`: of some entries only.
    pub async fn begin(format: Format, part: bool, store: &Store) -> Result<Self, store::Error> {
        let newest = store.last_seal().await?.map_or(0, |seal| seal.number);
        Ok(Self { format, part, newest, carried: None })
    }

    /// Writes one entry, and its seal where the file has not got it yet.
    pub async fn write(&mut self, entry: &Entry, store: &Store, out: &mut String) -> Result<(), WriteError> {
        if self.format == Format::Csv {
            out.push_str(&csv_row(entry)?);
            return Ok(());
        }
        let sealed = entry.sealed.filter(|number| *number <= self.newest);
        let seal = match sealed {
            Some(number) if self.carried != Some(number) => {
                self.carried = Some(number);
                let seal = store.seals(number - 1, 1).await?.pop();
                seal.map(|StoredSeal { body, signature, hashes, .. }| Carried {
                    body,
                    signature: BASE64.encode(signature),
                    hashes: BASE64.encode(hashes),
                    part: self.part,
                })
            }
            _ => None,
        };
        let before = serde_json::to_string(&Before { cursor: entry.cursor.clone(), sealed, seal })?;
        // Two objects become one: the first without its end, the second without its beginning.
        out.push_str(&before[..before.len() - 1]);
        out.push(',');
        out.push_str(&sealed_text(&entry.event)?[1..]);
        out.push('\n');
        Ok(())
    }
}

fn csv_row(entry: &Entry) -> Result<String, WriteError> {
    let event = &entry.event;
    let text = |value: Option<String>| value.unwrap_or_default();
    let cells = [
        entry.cursor.to_string(),
        event.at.to_string(),
        event.kind.to_string(),
        text(event.actor.as_ref().map(ToString::to_string)),
        text(event.run_id.map(|id| id.to_string())),
        text(event.review_id.map(|id| id.to_string())),
        serde_json::to_string(&event.data)?,
    ];
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    writer.write_record(cells.into_iter().map(harmless)).map_err(|error| WriteError::Csv(error.to_string()))?;
    let bytes = writer.into_inner().map_err(|error| WriteError::Csv(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| WriteError::Csv(error.to_string()))
}

/// A cell that no spreadsheet takes for a formula: people choose names, and an admin opens the file.
fn harmless(cell: String) -> String {
    if cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) { format!("'{cell}") } else { cell }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_of_a_spreadsheet_is_never_a_formula() {
        let entry: Entry = serde_json::from_value(json!({
            "cursor": "=1+1", "kind": "user.created", "at": "2026-01-02T03:04:05Z", "actor": "ana",
            "data": { "username": "=cmd|' /C calc'!A0", "note": "a \"quote\", and\na line" }
        }))
        .unwrap();
        let text = format!("{}{}", Format::Csv.head(), csv_row(&entry).unwrap());
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        assert_eq!(reader.headers().unwrap().len(), 7);
        let row = reader.records().next().unwrap().unwrap();
        assert_eq!(&row[0], "'=1+1");
        assert_eq!(&row[3], "ana");
        assert!(row[6].starts_with('{'), "{row:?}");
    }
}
