//! What the audit proves of itself: how far it is sealed, and whether what is sealed still holds. `docs/audit.md` says
//! what that means.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::id::RunId;
use crate::log::{Cursor, EntryKind};
use crate::time::Timestamp;

/// `GET /api/v1/audit/seal`: the newest seal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SealHead {
    /// `<number>:<SHA-256 of the seal, in hex>`. Whoever keeps it elsewhere can prove later that nothing before it was
    /// changed or cut.
    pub head: String,
    /// How many entries are sealed.
    pub sealed: u64,
    /// When it was made.
    pub sealed_at: Timestamp,
}

/// `GET /api/v1/audit/verify`: whether every entry is what it was when it was sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SealCheck {
    /// Whether all that is sealed holds.
    pub valid: bool,
    /// How many entries were looked at: those that hold, and those that wait for their seal.
    pub entries: u64,
    /// How many of them are sealed, and hold.
    pub sealed: u64,
    /// How many of the sealed ones are in archives, as the record itself says: their hashes hold, and what they tell is
    /// looked at where the archives are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub archived: u64,
    /// How many of the sealed ones no longer have the name and the words of somebody who was erased, as the record itself
    /// says: they are what it says that they are since.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub erased: u64,
    /// The newest seal that holds, as in [`SealHead::head`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The first thing that does not hold; what lies behind it was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_bad: Option<FirstBad>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The first thing in the record that is not as it was sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FirstBad {
    /// What happened to it.
    pub what: Tampering,
    /// The same for people, with the place.
    pub message: String,
    /// The number of the entry in the record, from 1; none where a seal itself does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<u64>,
    /// The number, from 1, of the seal that does not hold, or that has the entry; missing for an entry that is not
    /// sealed, and for an archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<u64>,
    /// The entry's place in the log. Of one that is gone: the place after which it stood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    /// What the entry tells now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<EntryKind>,
    /// The run that it speaks of now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
}

/// What happened to a part of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Tampering {
    /// An entry is not what it was.
    Changed,
    /// An entry is gone.
    Removed,
    /// An entry was put between others.
    Added,
    /// Entries stand in another order.
    Reordered,
    /// A seal was forged, changed or removed.
    Seal,
    /// A file of the archive is gone, or is not what the record says.
    Archive,
    /// The end of the record is gone: the seal that was expected, and all that it held.
    Cut,
}
