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

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// CSV for spreadsheets: a row for each entry, with its data as JSON in the last column.
    Csv,
    /// JSON lines for programs: whole entries, as the API shows them.
    JsonLines,
}

/// The reason why an entry could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// An entry, its position in the log, or its seal could not be serialised.
    #[error("an entry of the audit log could not be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The row of an entry could not be written; the message says why.
    #[error("an entry of the audit log could not be written as CSV: {0}")]
    Csv(String),
    /// The seal of the entry could not be read.
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
    /// Returns the file extension.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::JsonLines => "jsonl",
        }
    }

    /// Returns the media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::JsonLines => "application/x-ndjson",
        }
    }

    /// Returns the text before the first entry.
    pub fn head(self) -> &'static str {
        match self {
            Self::Csv => "cursor,at,kind,actor,run_id,review_id,data\r\n",
            Self::JsonLines => "",
        }
    }
}

/// The members before the event in the line of an entry.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Before {
    /// The position of the entry in the log.
    pub cursor: Cursor,
    /// The number of the entry's seal; `None` if it is not sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<u64>,
    /// The seal, only on the newest of its entries in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Carried>,
}

/// A seal in an export.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Carried {
    /// The signed text.
    pub body: String,
    /// The signature of the body, in base64.
    pub signature: String,
    /// The base64 of 32 bytes for each entry, in the order of the log.
    pub hashes: String,
    /// Whether the export was filtered, so that entries may be missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub part: bool,
}

/// The beginning of the event in the line of an entry.
pub(super) const ENTRY: &str = "\"kind\":";

/// Writes entries, newest first.
#[derive(Debug, Clone)]
pub struct Lines {
    format: Format,
    part: bool,
    /// The newest seal when the export began. Later seals are ignored, since the file would have only some of their
    /// entries.
    newest: u64,
    /// The number of the seal that was written last.
    carried: Option<u64>,
}

impl Lines {
    /// Begins an export. `part`: it is filtered.
    pub async fn begin(format: Format, part: bool, store: &Store) -> Result<Self, store::Error> {
        let newest = store.last_seal().await?.map_or(0, |seal| seal.number);
        Ok(Self { format, part, newest, carried: None })
    }

    /// Writes an entry, with its seal if the file does not have it yet.
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
        // Joins two objects: the first without its closing brace, the second without its opening one.
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

/// Escapes a cell that a spreadsheet would take for a formula: people choose names, and an admin opens the file.
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
