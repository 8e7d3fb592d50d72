//! The size of the console as browsers load it.

use std::path::Path;

use anyhow::{Context, Result};
use brotli::enc::BrotliEncoderParams;

use crate::report::Row;

/// Measures the files that the inbox loads, each compressed as the server sends it.
pub fn size(folder: &Path) -> Result<Row> {
    let size = total(folder)?;
    #[expect(clippy::cast_precision_loss, reason = "a bundle is small")]
    let kilobytes = size as f64 / 1000.0;
    Ok(crate::below("bundle", kilobytes, "KB brotli", 700.0))
}

/// The compressed size, in bytes, of the files in a folder and its subfolders, without the parts of the program that
/// other pages load on demand.
fn total(folder: &Path) -> Result<usize> {
    let mut total = 0;
    for entry in std::fs::read_dir(folder).with_context(|| format!("{} is not built", folder.display()))? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() {
            total += self::total(&path)?;
        } else if !(name.starts_with("split_") || name.starts_with("chunk_")) {
            total += compressed(&path)?;
        }
    }
    Ok(total)
}

/// The size, in bytes, of a file as the server sends it: compressed once, at the highest quality.
fn compressed(path: &Path) -> Result<usize> {
    let content = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let mut compressed = Vec::new();
    brotli::BrotliCompress(&mut content.as_slice(), &mut compressed, &BrotliEncoderParams::default())?;
    Ok(compressed.len())
}
