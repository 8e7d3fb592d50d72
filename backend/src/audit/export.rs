//! Entries as CSV (RFC 4180) and as JSON lines.

use std::str::FromStr;

use shared::log::Entry;

/// How entries are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For spreadsheets.
    Csv,
    /// For programs: whole entries, as the API shows them.
    JsonLines,
}

/// An entry that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// As JSON.
    #[error("an entry of the audit could not be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// As CSV.
    #[error("an entry of the audit could not be written as CSV: {0}")]
    Csv(String),
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

    /// Writes one entry.
    pub fn write(self, entry: &Entry, out: &mut String) -> Result<(), WriteError> {
        match self {
            Self::Csv => out.push_str(&csv_row(entry)?),
            Self::JsonLines => {
                out.push_str(&serde_json::to_string(entry)?);
                out.push('\n');
            }
        }
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
        let mut text = String::from(Format::Csv.head());
        Format::Csv.write(&entry, &mut text).unwrap();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        assert_eq!(reader.headers().unwrap().len(), 7);
        let row = reader.records().next().unwrap().unwrap();
        assert_eq!(&row[0], "'=1+1");
        assert_eq!(&row[3], "ana");
        assert!(row[6].starts_with('{'), "{row:?}");
    }

    #[test]
    fn a_line_of_json_is_the_entry() {
        let entry: Entry = serde_json::from_value(json!({
            "cursor": "c", "kind": "run.started", "at": "2026-01-02T03:04:05Z", "data": {}
        }))
        .unwrap();
        let mut text = String::new();
        Format::JsonLines.write(&entry, &mut text).unwrap();
        assert_eq!(serde_json::from_str::<Entry>(text.trim_end()).unwrap(), entry);
        assert_eq!(text.lines().count(), 1);
    }
}
