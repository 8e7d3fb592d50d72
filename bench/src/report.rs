//! The table of figures, for people or programs.

use std::io::Write;

use anyhow::{Result, bail};
use serde::Serialize;

/// A measured figure, with its target.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What was measured.
    pub name: String,
    /// The measured value, in `unit`.
    pub value: f64,
    /// The unit that is printed beside it, such as `ms`.
    pub unit: &'static str,
    /// What a bare rival reached in the same run.
    pub limit: Option<f64>,
    /// Value over limit.
    pub ratio: Option<f64>,
    /// What it should reach: a value, or the ratio for a share of the limit.
    pub target: f64,
    /// Whether it did.
    pub met: bool,
}

impl Row {
    /// The same beside what a bare rival reached in the same run, which says how good the machine was.
    pub fn beside(mut self, limit: f64) -> Self {
        self.limit = Some(limit);
        self.ratio = Some(self.value / limit);
        self
    }
}

/// Rows as they come.
pub struct Report {
    json: bool,
    rows: Vec<Row>,
}

impl Report {
    /// An empty one.
    pub fn new(json: bool) -> Self {
        Self { json, rows: Vec::new() }
    }

    /// Adds a row, and tells of it at once.
    pub fn add(&mut self, row: Row) {
        let line = if self.json {
            serde_json::to_string(&row).unwrap_or_default()
        } else {
            let beside = match (row.limit, row.ratio) {
                (Some(limit), Some(ratio)) => format!("{limit:>12.1}  {ratio:>6.2}"),
                _ => format!("{:>12}  {:>6}", "", ""),
            };
            let met = if row.met { "met" } else { "NOT MET" };
            format!("{:<28}{:>12.2} {:<10}{beside}   target {:>9.2}   {met}", row.name, row.value, row.unit, row.target)
        };
        // A reader that has gone away is no reason to stop measuring.
        let _ = writeln!(std::io::stdout(), "{line}");
        self.rows.push(row);
    }

    /// Fails where a target was missed.
    pub fn finish(self) -> Result<()> {
        let missed: Vec<_> = self.rows.iter().filter(|row| !row.met).map(|row| row.name.as_str()).collect();
        if missed.is_empty() { Ok(()) } else { bail!("targets missed: {}", missed.join(", ")) }
    }
}
