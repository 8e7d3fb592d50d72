//! The report of measured figures: a table for people, or lines of JSON for programs.

use std::io::Write;

use anyhow::{Result, bail};
use serde::Serialize;

/// A measured figure, with its target.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The name of the figure, such as `cycles_sqlite`.
    pub name: String,
    /// The measured value, in `unit`.
    pub value: f64,
    /// The unit that is printed beside it, such as `ms`.
    pub unit: &'static str,
    /// The figure that a bare rival reached in the same run. `None` without a rival.
    pub limit: Option<f64>,
    /// The value divided by the limit. `None` without a rival.
    pub ratio: Option<f64>,
    /// The target for the value, or for the ratio if the row is a share of the limit.
    pub target: f64,
    /// Whether the target was met.
    pub met: bool,
}

impl Row {
    /// Adds the figure that a bare rival reached in the same run, which shows how fast the machine was.
    pub fn beside(mut self, limit: f64) -> Self {
        self.limit = Some(limit);
        self.ratio = Some(self.value / limit);
        self
    }
}

pub struct Report {
    json: bool,
    rows: Vec<Row>,
}

impl Report {
    /// An empty report; with `json`, rows are printed as lines of JSON.
    pub fn new(json: bool) -> Self {
        Self { json, rows: Vec::new() }
    }

    /// Adds rows, and prints them at once.
    pub fn add(&mut self, rows: impl IntoIterator<Item = Row>) {
        rows.into_iter().for_each(|row| self.add_row(row));
    }

    fn add_row(&mut self, row: Row) {
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
        // A closed standard output is no reason to stop measuring.
        let _ = writeln!(std::io::stdout(), "{line}");
        self.rows.push(row);
    }

    /// Fails if a target was missed, and names the rows. Fails too if nothing was measured, so that a misspelt `--only`
    /// does not look like success.
    pub fn finish(self) -> Result<()> {
        if self.rows.is_empty() {
            bail!("nothing was measured; see `--only` and `--postgres`");
        }
        let missed: Vec<_> = self.rows.iter().filter(|row| !row.met).map(|row| row.name.as_str()).collect();
        if missed.is_empty() { Ok(()) } else { bail!("targets missed: {}", missed.join(", ")) }
    }
}
