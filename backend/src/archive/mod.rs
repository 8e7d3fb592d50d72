//! The archive: finished runs in files, one a day, once they are older than they are wanted in the database.
//!
//! A file is a row of archives, each a gzip member of JSON lines, so that every tool that reads gzip reads it whole. An
//! archive is written and synced, then [`crate::store`] makes its runs archived ones and says on the record which entries
//! are in it and what its SHA-256 is, and only then is anything removed. What a crash leaves behind the last archive of
//! a file belongs to nobody, and is written over.
//!
//! Imports `shared`, `crate::background`, `crate::clock`, `crate::files`, `crate::engine`, `crate::store` and `crate::audit` only.

mod archiver;
mod folder;
mod lookup;
mod piece;
#[cfg(test)]
mod tests;
mod verify;

pub use archiver::{ArchiveError, Archiver, Retention};
pub use folder::{Folder, FolderError};
pub use lookup::{ArchivedContent, look_up};
pub use verify::verify;
