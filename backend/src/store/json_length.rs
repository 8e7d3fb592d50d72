//! Computes the length of a value as JSON without writing it.

use std::io::{Result as IoResult, Write};

use serde::Serialize;

use super::Error;

/// Returns the length of a value encoded as JSON, in bytes.
pub(super) fn json_length(value: &impl Serialize) -> Result<usize, Error> {
    let mut length = Length(0);
    serde_json::to_writer(&mut length, value).map_err(|error| Error::Stored(error.to_string()))?;
    Ok(length.0)
}

/// Counts the bytes that are written to it.
struct Length(usize);

impl Write for Length {
    fn write(&mut self, bytes: &[u8]) -> IoResult<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> IoResult<()> {
        Ok(())
    }
}
