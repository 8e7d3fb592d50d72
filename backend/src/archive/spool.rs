//! An archive before it is appended to its file: in memory while it is small, then in an unnamed file, so that a crash
//! leaves nothing behind.

use std::io::{self, Read, Seek as _, SeekFrom, Write};
use std::path::Path;

use sha2::{Digest as _, Sha256};
use tempfile::SpooledTempFile;

use super::folder::digest_of;

/// The maximum number of bytes kept in memory.
const IN_MEMORY: usize = 16 << 20;

/// Collects an archive, with its length and digest.
pub struct Spool {
    out: SpooledTempFile,
    bytes: u64,
    hash: Sha256,
}

/// A complete archive, which can be read once.
pub struct Spooled {
    content: SpooledTempFile,
    /// The length of the archive, in bytes.
    pub bytes: u64,
    /// The digest of the archive, as `sha256:…`.
    pub digest: String,
}

impl Spool {
    /// Creates an empty spool. Its file, if one is needed, is in this folder.
    pub fn new(folder: &Path) -> Self {
        Self { out: tempfile::spooled_tempfile_in(IN_MEMORY, folder), bytes: 0, hash: Sha256::new() }
    }

    /// Finishes writing, and returns the archive for reading.
    pub fn finish(mut self) -> io::Result<Spooled> {
        self.out.seek(SeekFrom::Start(0))?;
        Ok(Spooled { content: self.out, bytes: self.bytes, digest: digest_of(self.hash) })
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Read for Spooled {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.content.read(into)
    }
}
