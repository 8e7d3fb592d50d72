//! The proof of the audit log: how far it is sealed, and whether the sealed entries are still valid. `docs/audit.md`
//! explains it.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::id::RunId;
use crate::log::{Cursor, EntryKind};
use crate::time::Timestamp;

/// `GET /api/v1/audit/seal`: the newest seal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SealHead {
    /// `<number>:<SHA-256 of the seal, in hex>`. If you keep it elsewhere, you can prove later that nothing before it
    /// was changed or cut off.
    pub head: String,
    /// The number of sealed entries.
    pub sealed: u64,
    /// The time of the seal.
    pub sealed_at: Timestamp,
}

/// `GET /api/v1/audit/verify`: whether every entry is still as it was sealed.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SealCheck {
    /// Whether everything sealed is valid.
    pub valid: bool,
    /// The number of checked entries: the valid ones, and those that are not sealed yet.
    pub entries: u64,
    /// The number of valid sealed entries.
    pub sealed: u64,
    /// The number of sealed entries in archives, as the audit log records: their hashes are valid, and their content is
    /// checked with the archive files.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub archived: u64,
    /// The number of sealed entries from which a person was erased, as the audit log records: they match the hashes
    /// recorded since.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub erased: u64,
    /// The newest valid seal, as in [`SealHead::head`].
    pub head: Option<String>,
    /// The first error; nothing after it was checked.
    pub first_bad: Option<FirstBad>,
}

/// The first part of the audit log that is not as it was sealed.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FirstBad {
    /// The kind of change.
    pub what: Tampering,
    /// A message for people, with the place.
    pub message: String,
    /// The number of the entry in the audit log, from 1; none if a seal itself is not valid.
    pub entry: Option<u64>,
    /// The number, from 1, of the invalid seal, or of the entry's seal; missing for an entry that is not sealed, and
    /// for an archive.
    pub seal: Option<u64>,
    /// The entry's place in the log; for a removed entry, the place before it.
    pub cursor: Option<Cursor>,
    /// The kind of the entry now.
    pub kind: Option<EntryKind>,
    /// The run of the entry now.
    pub run_id: Option<RunId>,
}

/// The kind of change to a part of the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Tampering {
    /// An entry was changed.
    Changed,
    /// An entry was removed.
    Removed,
    /// An entry was inserted.
    Added,
    /// The order of entries was changed.
    Reordered,
    /// A seal was forged, changed or removed.
    Seal,
    /// An archive file is missing, or differs from the audit log.
    Archive,
    /// The end of the audit log was cut off: the expected seal and its entries are missing.
    Cut,
}
