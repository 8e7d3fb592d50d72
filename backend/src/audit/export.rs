//! Exports entries as CSV (RFC 4180) and as JSON lines, which contain everything needed to verify them without the
//! server.
//!
//! A JSON line is an entry. From its member `kind` on, it has the bytes that were hashed; before that are `cursor`,
//! `sealed`, and, with the newest entry of each seal, the seal.

use std::str::FromStr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures::Stream;
use futures::stream::try_unfold;
use serde::{Deserialize, Serialize};
use shared::api::AuditQuery;
use shared::log::{Cursor, Entry};

use super::seal::sealed_text;
use crate::store::{self, Form, Store, StoredSeal};

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// CSV for spreadsheets: a row for each entry, with its data as JSON.
    Csv,
    /// JSON lines for programs: whole entries, as the API shows them.
    JsonLines,
}

/// The reason why an export failed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Entries were archived or erased, and the export would not contain the sealed entry that says so.
    #[error(
        "entries were archived or erased, and no seal in this export says so yet: they would seem to be removed or \
         changed; export again in a few seconds"
    )]
    Unexplained,
    /// As [`Self::Unexplained`], and nothing has been sealed for so long that another attempt does not help.
    #[error(
        "entries were archived or erased, and no seal in this export says so: they would seem to be removed or changed. \
         The oldest unsealed entry has waited for {} s: if sealing has stopped, the server's log says why, and \
         docs/audit.md what to do. Until then, an export with a filter, such as `to`, is possible",
        .0.as_secs()
    )]
    Unsealed(Duration),
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

/// How long an entry waits for its seal at most, unless sealing has stopped or is far behind. A sealer tries again
/// within half a minute.
const SEALED_WITHIN: Duration = Duration::from_mins(1);

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
            Self::Csv => "cursor,at,kind,actor,run_id,review_id,data,token\r\n",
            Self::JsonLines => "",
        }
    }
}

/// The members before the event in the line of an entry.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Before {
    /// The position of the entry in the log.
    pub cursor: Cursor,
    /// The number of the entry's seal; `None` if it is not sealed.
    pub sealed: Option<u64>,
    /// The seal, only on the newest of its entries in the file.
    pub seal: Option<Carried>,
}

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

/// An export of entries, newest first.
pub struct Export {
    store: Store,
    format: Format,
    /// Whether it is filtered.
    part: bool,
    query: AuditQuery,
    /// The newest seal when the export began. Later seals are ignored, since the file would have only some of their
    /// entries.
    newest: u64,
    /// The number of the seal that was written last.
    carried: Option<u64>,
}

impl Export {
    /// Begins an export of the entries that the query selects; its `limit` is the number of entries in a page.
    pub async fn begin(store: Store, format: Format, query: AuditQuery) -> Result<Self, ExportError> {
        let part = AuditQuery { limit: None, ..query.clone() } != AuditQuery::default();
        let newest = store.last_seal().await?.map_or(0, |seal| seal.number);
        let export = Self { store, format, part, query, newest, carried: None };
        export.check_explained().await?;
        Ok(export)
    }

    /// Streams the export page by page, so that a long export does not occupy much memory or a database connection. An
    /// error aborts the transfer, which the client notices.
    pub fn pages(self) -> impl Stream<Item = Result<String, ExportError>> {
        let head = self.format.head().to_owned();
        try_unfold(Some((self, head)), |next| async move {
            let Some((mut export, mut text)) = next else { return Ok(None) };
            let more = export.page(&mut text).await?;
            Ok(Some((text, more.then(|| (export, String::new())))))
        })
    }

    /// Writes the next page. Returns whether more follow.
    async fn page(&mut self, out: &mut String) -> Result<bool, ExportError> {
        // JSON lines are for verification, so they have the sealed form; CSV is for people, and has whole entries.
        let form = if self.format == Format::JsonLines { Form::Sealed } else { Form::Whole };
        let page = self.store.audit(&self.query, form).await?;
        self.check_explained().await?;
        for entry in &page.items {
            self.write(entry, out).await?;
        }
        self.query.cursor = page.next_cursor;
        Ok(self.query.cursor.is_some())
    }

    /// Checks that the seals up to the newest of the export hold the entries about everything that was archived or
    /// erased so far. Each page is read as the database is then, so a later archive or erasure removes or changes older
    /// entries, but its own entry would have been on a page that was already written. In a part, entries may be missing,
    /// and CSV is not verified.
    async fn check_explained(&self) -> Result<(), ExportError> {
        if self.part || self.format == Format::Csv {
            return Ok(());
        }
        let rows = self.store.newest_explanations().await?;
        let seals = self.store.seals_of_rows(&rows).await?;
        let is_held = |seal: &Option<u64>| seal.is_some_and(|number| number <= self.newest);
        if seals.iter().all(is_held) {
            return Ok(());
        }
        let waited = self.store.lag().await?.remove("seals").unwrap_or_default();
        Err(if waited > SEALED_WITHIN { ExportError::Unsealed(waited) } else { ExportError::Unexplained })
    }

    /// Writes an entry, with its seal if the file does not have it yet.
    async fn write(&mut self, entry: &Entry, out: &mut String) -> Result<(), ExportError> {
        if self.format == Format::Csv {
            out.push_str(&csv_row(entry)?);
            return Ok(());
        }
        let sealed = entry.sealed.filter(|number| *number <= self.newest);
        let seal = match sealed {
            Some(number) if self.carried != Some(number) => {
                self.carried = Some(number);
                let seal = self.store.seals(number - 1, 1).await?.pop();
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

fn csv_row(entry: &Entry) -> Result<String, ExportError> {
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
        // Last, for programs that know the columns by their numbers.
        text(event.token.map(|token| token.to_string())),
    ];
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    writer.write_record(cells.into_iter().map(harmless)).map_err(|error| ExportError::Csv(error.to_string()))?;
    let bytes = writer.into_inner().map_err(|error| ExportError::Csv(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| ExportError::Csv(error.to_string()))
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
            "token": "01900000-0000-7000-8000-000000000001",
            "data": { "username": "=cmd|' /C calc'!A0", "note": "a \"quote\", and\na line" }
        }))
        .unwrap();
        let text = format!("{}{}", Format::Csv.head(), csv_row(&entry).unwrap());
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        assert_eq!(reader.headers().unwrap().len(), 8);
        let row = reader.records().next().unwrap().unwrap();
        assert_eq!(&row[0], "'=1+1");
        assert_eq!(&row[3], "ana");
        assert!(row[6].starts_with('{'), "{row:?}");
        assert_eq!(&row[7], "01900000-0000-7000-8000-000000000001", "a program did it");
    }
}
