//! Joins the console's style sheets into one, which takes one request, and compresses to two thirds of the separate
//! files.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::process::root;

/// The sheets in the order in which they apply, shared ones first.
const SHEETS: &str = "tokens base content shell palette inbox review diff graph schema_form editor timeline decided \
                      runs run flows flow audit insights people contrast print";
/// The name of the joined sheet, to which `frontend/index.html` refers.
const ALL: &str = "all";

/// Writes `frontend/style/all.css`, which joins all [`SHEETS`]. Fails if the folder has a sheet that is not listed
/// there.
pub fn write() -> Result<()> {
    let folder = root().join("frontend/style");
    for entry in fs::read_dir(&folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let Some(sheet) = name.strip_suffix(".css") else { continue };
        let known = sheet == ALL || SHEETS.split(' ').any(|known| known == sheet);
        ensure!(known, "frontend/style/{name} has no place yet: name it in SHEETS of xtask/src/styles.rs");
    }
    let mut all = String::new();
    for sheet in SHEETS.split(' ') {
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
