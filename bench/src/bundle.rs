//! The size of the console as browsers load it.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::report::Row;

/// All of the bundle's files, each compressed as the server sends it.
pub fn size(folder: &Path) -> Result<Row> {
    let mut total = 0_usize;
    for entry in std::fs::read_dir(folder).with_context(|| format!("{} is not built", folder.display()))? {
        let path = entry?.path();
        if path.is_file() {
            total += compressed(&path)?;
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a bundle is small")]
    let kilobytes = total as f64 / 1000.0;
    Ok(crate::below("bundle", kilobytes, "KB brotli", 700.0))
}

fn compressed(path: &Path) -> Result<usize> {
    let mut child = Command::new("brotli")
        .args(["--stdout", "--quality=11"])
        .arg(path)
        .stdout(Stdio::piped())
        .spawn()
        .context("the program `brotli` is needed to measure the bundle; please install it")?;
    let mut bytes = Vec::new();
    child.stdout.take().context("no output")?.read_to_end(&mut bytes)?;
    if !child.wait()?.success() {
        bail!("brotli failed on {}", path.display());
    }
    Ok(bytes.len())
}
