//! The size of the console as browsers load it.

use std::path::Path;

use anyhow::{Context, Result};
use brotli::enc::BrotliEncoderParams;

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

/// The size of a file as the server sends it, which compresses it once, as well as it can.
fn compressed(path: &Path) -> Result<usize> {
    let content = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let mut compressed = Vec::new();
    brotli::BrotliCompress(&mut content.as_slice(), &mut compressed, &BrotliEncoderParams::default())?;
    Ok(compressed.len())
}
