//! The console's style sheets, put together: one file is fetched once, and compresses to two thirds of what seventeen do.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::process::root;

/// The sheets in the order in which they apply: what all share first.
const SHEETS: &[&str] = &[
    "tokens",
    "base",
    "content",
    "shell",
    "inbox",
    "review",
    "diff",
    "graph",
    "schema_form",
    "editor",
    "timeline",
    "runs",
    "run",
    "flows",
    "flow",
    "audit",
    "insights",
    "people",
];
/// What they become; `frontend/index.html` names it.
const ALL: &str = "all";

/// Writes `frontend/style/all.css`: all of [`SHEETS`], one after the other. A sheet that is not named there is an
/// error.
pub fn write() -> Result<()> {
    let folder = root().join("frontend/style");
    for entry in fs::read_dir(&folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let Some(sheet) = name.strip_suffix(".css") else { continue };
        let known = sheet == ALL || SHEETS.contains(&sheet);
        ensure!(known, "frontend/style/{name} has no place yet: name it in SHEETS of xtask/src/styles.rs");
    }
    let mut all = String::new();
    for sheet in SHEETS {
        let path = folder.join(sheet).with_extension("css");
        all += &fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        all.push('\n');
    }
    let path = folder.join(ALL).with_extension("css");
    // An unchanged file keeps its time, so that nothing is built again.
    if fs::read_to_string(&path).is_ok_and(|old| old == all) {
        return Ok(());
    }
    fs::write(&path, all).with_context(|| format!("writing {}", path.display()))
}
