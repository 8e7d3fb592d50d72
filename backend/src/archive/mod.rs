//! The archive: files with finished runs, one per day, which are older than the retention of the database.
//!
//! A file is a sequence of archives, each a gzip member of JSON lines, so that every gzip tool can read the whole file.
//! An archive is written and synced; then [`crate::store`] marks its runs as archived and records its entries and its
//! SHA-256 in the audit log; only then is anything removed. Data that a crash leaves after the last archive of a file
//! is overwritten.

mod archiver;
mod folder;
mod lookup;
mod piece;
mod spool;
#[cfg(test)]
mod tests;
mod verify;

pub use archiver::{ArchiveError, Archiver, Retention};
pub use folder::{Folder, FolderError};
pub use lookup::{ArchivedContent, look_up};
pub use verify::verify;
