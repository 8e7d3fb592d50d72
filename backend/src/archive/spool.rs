//! An archive before it has its place in a file: in memory while it is small, then in a file without a name, so that a
//! crash leaves nothing behind.

use std::io::{self, Read, Seek as _, SeekFrom, Write};
use std::path::Path;

use sha2::{Digest as _, Sha256};
use tempfile::SpooledTempFile;

use super::folder::digest_of;

/// How much is kept in memory.
const IN_MEMORY: usize = 16 << 20;

/// What was written so far.
pub struct Spool {
    out: SpooledTempFile,
    bytes: u64,
    hash: Sha256,
}

/// All that was written, to be read once.
pub struct Spooled {
    content: SpooledTempFile,
    /// How many bytes that is.
    pub bytes: u64,
    /// `sha256:` of them.
    pub digest: String,
}

impl Spool {
    /// An empty one, whose file would be in this folder.
    pub fn new(folder: &Path) -> Self {
        Self { out: tempfile::spooled_tempfile_in(IN_MEMORY, folder), bytes: 0, hash: Sha256::new() }
    }

    /// Nothing more is written.
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
