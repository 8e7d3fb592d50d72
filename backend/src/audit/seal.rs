//! One seal: its content, how it is created and read, and the relation between two consecutive ones.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use shared::log::{Cursor, Event};
use shared::time::Timestamp;

use super::key::{SealKey, Trusted};
use crate::store::StoredSeal;

/// The SHA-256 of an entry.
pub type Hash = [u8; 32];

/// Returns the text of an entry that is hashed: its JSON without spaces, in the order of [`Event`]'s members. An export
/// has the same bytes.
pub fn sealed_text(event: &Event) -> Result<String, serde_json::Error> {
    serde_json::to_string(event)
}

/// Hashes the text of an entry.
pub fn hash(text: &str) -> Hash {
    Sha256::digest(text).into()
}

/// The content of a seal. Its JSON is signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Seal {
    /// The format number of the seal.
    pub format: u32,
    /// The number of the seal, from 1 without gaps.
    pub number: u64,
    /// The position in the log after which the seal begins: the end of the previous seal.
    pub from: Cursor,
    /// The position of its last row.
    pub to: Cursor,
    /// The number of entries that are sealed before it.
    pub before: u64,
    /// The number of entries that it seals.
    pub entries: u64,
    /// `sha256:` and the hash of the concatenated hashes of its entries.
    pub digest: String,
    /// `sha256:` and the hash of the previous seal; `None` in the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// The time of sealing, by the server's clock.
    pub sealed_at: Timestamp,
    /// The id of the key that signs it.
    pub key: String,
    /// Whether all its rows are authenticated by the server that wrote them, and all later rows must be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub authenticated: bool,
}

/// Format 1 had no authenticated rows.
const FORMAT: u32 = 2;

/// A seal with a valid signature of a trusted key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Opened {
    pub seal: Seal,
    pub hashes: Vec<Hash>,
    /// `sha256:` and the hash of the seal's body, which the next seal names as `previous`.
    pub hash: String,
    /// The current position of its last row. The seal itself, and the next one, name the position at the time of
    /// sealing, and an upgrade may have renumbered the log since.
    pub to: Cursor,
}

impl Opened {
    /// Creates and signs the seal over these entries that follows `last`.
    pub fn make(
        last: Option<&Self>,
        from: Cursor,
        to: Cursor,
        hashes: Vec<Hash>,
        authenticated: bool,
        key: &SealKey,
        now: Timestamp,
    ) -> Result<(Self, StoredSeal), serde_json::Error> {
        let seal = Seal {
            format: FORMAT,
            number: last.map_or(1, |last| last.seal.number + 1),
            from,
            to,
            before: last.map_or(0, Self::sealed),
            entries: hashes.len() as u64,
            digest: digest(hashes.as_flattened()),
            previous: last.map(|last| last.hash.clone()),
            sealed_at: now,
            key: key.public().id(),
            authenticated,
        };
        let body = serde_json::to_string(&seal)?;
        let stored = StoredSeal {
            number: seal.number,
            to: seal.to.clone(),
            signature: key.sign(body.as_bytes()),
            hashes: hashes.as_flattened().to_vec(),
            body,
        };
        Ok((Self { hashes, hash: digest(stored.body.as_bytes()), to: stored.to.clone(), seal }, stored))
    }

    /// Opens a stored seal. `Err` says why it cannot be trusted.
    pub fn open(stored: &StoredSeal, trusted: &Trusted) -> Result<Self, String> {
        let number = stored.number;
        let seal: Seal = serde_json::from_str(&stored.body).map_err(|_| format!("seal {number} cannot be read"))?;
        if seal.format > FORMAT {
            return Err(format!("seal {number} has the format {} of a newer countersign", seal.format));
        }
        match trusted.has_signed(&seal.key, stored.body.as_bytes(), &stored.signature) {
            Some(true) => {}
            Some(false) => return Err(format!("seal {number} was changed or forged: its signature is not valid")),
            None => {
                return Err(format!(
                    "seal {number} is signed by the key {}, which is not trusted: it was forged, or the public key is \
                     missing beside the private one",
                    seal.key
                ));
            }
        }
        let (hashes, rest) = stored.hashes.as_chunks::<32>();
        if !rest.is_empty() || hashes.len() as u64 != seal.entries || digest(&stored.hashes) != seal.digest {
            return Err(format!("the hashes of seal {number} were changed after they were signed"));
        }
        if seal.format > 1 && stored.to != seal.to {
            return Err(format!("seal {number} was moved to another place in the log"));
        }
        if number != seal.number {
            return Err(format!("seal {} is in the place of seal {number}", seal.number));
        }
        Ok(Self { hashes: hashes.to_vec(), hash: digest(stored.body.as_bytes()), to: stored.to.clone(), seal })
    }

    /// Returns the number of entries that are sealed up to the end of this seal.
    pub fn sealed(&self) -> u64 {
        self.seal.before.saturating_add(self.seal.entries)
    }

    /// Returns the head to keep elsewhere.
    pub fn head(&self) -> Head {
        Head { number: self.seal.number, hash: self.hash.trim_start_matches(SHA256).to_owned() }
    }

    /// Whether this seal follows `before`, or is the first if that is `None`. `Err` says what is wrong.
    pub fn follows(&self, before: Option<&Self>) -> Result<(), String> {
        let number = self.seal.number;
        let expected = before.map_or(1, |before| before.seal.number + 1);
        if number != expected {
            return Err(match number.checked_sub(expected) {
                None => format!("seal {number} is where seal {expected} belongs"),
                Some(1) => format!("seal {expected} and its entries were removed"),
                Some(_) => format!("seals {expected} to {} and their entries were removed", number - 1),
            });
        }
        let fits = match before {
            None => self.seal.previous.is_none() && self.seal.before == 0,
            Some(before) => {
                self.seal.previous.as_ref() == Some(&before.hash)
                    && self.seal.before == before.sealed()
                    && self.seal.from == before.seal.to
            }
        };
        if fits { Ok(()) } else { Err(format!("seal {number} does not follow the seal before it: one was replaced")) }
    }
}

/// The number and hash of the newest seal, for storing elsewhere: `<number>:<SHA-256>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The seal's number, from 1.
    pub number: u64,
    hash: String,
}

impl std::fmt::Display for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.number, self.hash)
    }
}

impl FromStr for Head {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.trim().split_once(':').and_then(|(number, hash)| {
            let hash = hash.to_ascii_lowercase();
            let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_hash.then_some(Self { number: number.parse().ok().filter(|number| *number > 0)?, hash })
        });
        parsed.ok_or_else(|| "a head is `<number>:<64 hex digits>`, as `countersign audit head` prints it".to_owned())
    }
}

const SHA256: &str = "sha256:";

fn digest(bytes: &[u8]) -> String {
    format!("{SHA256}{}", hex::encode(Sha256::digest(bytes)))
}
