//! The audit log: its export as files, and the proof that its entries were not changed.
//!
//! The log is sealed in ranges: the hashes of a range's entries, in order, are signed together with the hash of the
//! previous seal, with a key that is not in the database. `docs/audit.md` explains what this proves, and against whom.

mod compare;
mod explained;
mod export;
mod file;
mod head_file;
mod key;
mod key_registration;
mod numbering;
mod row_authentication;
mod seal;
mod sealer;
mod seals;
#[cfg(test)]
pub(crate) mod tests;
mod verify;

pub use explained::{Explained, archive_entry, joined};
pub use export::{Export, ExportError, Format};
pub use file::{FileCheck, verify_file};
pub use head_file::{HeadError, HeadFile};
pub use key::{KeyError, PublicKey, SealKey, Trusted};
pub use key_registration::{RegisterError, register};
pub use numbering::{Numbered, NumberingError, numbers, sealed_hashes, seals_before};
pub use seal::{Hash, Head, hash, sealed_text};
pub use sealer::{SealError, Sealer};
pub use seals::Seals;
pub(crate) use verify::bad;
pub use verify::verify;
