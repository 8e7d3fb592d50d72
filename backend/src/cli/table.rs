//! Tables for people, and JSON for programs.

use serde::Serialize;
use shared::time::Timestamp;

use super::print;
use super::terminal::text;

/// Prints rows below their headings, with each column as wide as its longest cell. Cells are made harmless for a
/// terminal.
pub fn print_table<const N: usize>(heads: [&str; N], rows: &[[String; N]]) {
    let rows: Vec<[String; N]> = rows.iter().map(|row| row.each_ref().map(|cell| text::line(cell))).collect();
    let mut widths = heads.map(|head| head.chars().count());
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &[String; N]| {
        let cells = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        print(cells.collect::<Vec<_>>().join("  ").trim_end());
    };
    line(&heads.map(str::to_owned));
    rows.iter().for_each(line);
}

/// Prints a value as JSON on standard output, for programs to read.
pub fn print_json(value: &impl Serialize) {
    print(&text::json(value));
}

/// Formats a time in UTC, in whole seconds.
pub fn time(at: Timestamp) -> String {
    let mut text = at.to_string();
    text.truncate(19);
    text + "Z"
}

/// Parses a value by its word in the API, for use as a clap value parser.
pub fn parse_word<T: serde::de::DeserializeOwned>(word: &str) -> Result<T, String> {
    serde_json::from_value(serde_json::Value::from(word)).map_err(|error| error.to_string())
}
