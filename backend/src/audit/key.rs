//! The keys of seals: the private key in its own file, and beside it the trusted public keys.
//!
//! `seal.key` is PKCS#8 in PEM, as `openssl genpkey -algorithm ed25519` creates it. `seal.pub` has one public key per
//! line: the newest first, then those that it replaced, so that their seals stay valid.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::hkdf;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use sha2::{Digest as _, Sha256};
use tempfile::PersistError;

use crate::clock::Clock;
use crate::files;
use crate::store::{RowKey, RowKeys};

/// The bytes before the 32 bytes of a private key in PKCS#8 (RFC 8410).
const PKCS8: [u8; 16] = *b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";
const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";
/// The prefix of a public key in text form.
const ED25519_WORD: &str = "ed25519:";

/// The reason why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file of the private key, or of the public ones, cannot be read or written.
    #[error("the key of the audit log in {path}: {source}; set COUNTERSIGN_SEAL_KEY to use another file")]
    File {
        /// The path of the private key's file, or of the `.pub` file beside it.
        path: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file does not contain a private key of the required form.
    #[error("{path} is not a key for the audit log: it must be Ed25519, PKCS#8 in PEM (`countersign audit key --new`)")]
    NoKey {
        /// The path of the file that should hold the private key.
        path: String,
    },
    /// The text is not a public key.
    #[error(
        "{0:?} is not a public key: expected `ed25519:` followed by 32 bytes in base64, or a file that contains such a line"
    )]
    NoPublicKey(String),
    /// There is no public key to check seals with.
    #[error(
        "there is no public key in {0}, so nothing can be verified: name the server's folder (--data) or its settings \
         (--config), or a key (--public-key)"
    )]
    NothingTrusted(String),
}

/// The private key of the audit log, and the keys derived from it.
pub struct SealKey {
    pair: Ed25519KeyPair,
    public: PublicKey,
    /// The key that authenticates rows of the log.
    rows: RowKey,
    /// The key that encrypts cookies of sign-ins.
    cookies: [u8; 32],
    callbacks: [u8; 32],
    /// The row keys of the private keys that this one has replaced.
    previous: Vec<RowKey>,
}

impl SealKey {
    /// Reads the key, or creates it for the owner alone if there is none. Also returns the public keys to trust.
    pub fn open(path: &Path, clock: &dyn Clock) -> Result<(Self, Trusted), KeyError> {
        let key = match Self::existing(path)? {
            Some(key) => key,
            None => Self { previous: previous(path), ..Self::make(path, clock)? },
        };
        warn_of_others(path);
        let mut trusted = Trusted::beside(path)?;
        if trusted.add(key.public) {
            // If the folder is read-only (such as a mounted secret), this key is trusted without being written.
            if let Err(error) = trusted.write(path, key.public) {
                tracing::debug!(%error, "the public key of the audit log could not be written beside the private one");
            }
        }
        Ok((key, trusted))
    }

    /// Reads the key. Returns `None` if there is none; nothing is created.
    pub fn existing(path: &Path) -> Result<Option<Self>, KeyError> {
        match fs::read_to_string(path) {
            Ok(text) => Ok(Some(Self { previous: previous(path), ..Self::read(path, &text)? })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(file_error(path, source)),
        }
    }

    /// Reads the key. Returns `None` if it does not exist or cannot be read.
    pub fn find(path: &Path) -> Option<Self> {
        Self::existing(path).ok().flatten()
    }

    /// Returns the keys that authenticate rows of the log, derived from this key and those that it has replaced.
    pub fn row_keys(&self) -> RowKeys {
        RowKeys::new(self.rows.clone(), self.previous.clone())
    }

    /// Returns the key that encrypts cookies of sign-ins, derived from this key, so that all servers of a database have
    /// the same.
    pub fn cookie_key(&self) -> [u8; 32] {
        self.cookies
    }

    /// Returns the key of the secrets in callback URLs, derived from this key.
    pub fn callback_key(&self) -> [u8; 32] {
        self.callbacks
    }

    /// Replaces the key by a new one, or creates the first. The old one stays trusted, so that its seals stay valid.
    pub fn renew(path: &Path, clock: &dyn Clock) -> Result<(Self, Trusted), KeyError> {
        let failed = |source| file_error(path, source);
        let (old, mut trusted) = (Self::existing(path)?, Trusted::beside(path)?);
        let text = private_text(clock);
        let new = Self::read(path, &text)?;
        // Whatever needs space on the disk comes before the old key is moved away.
        let draft = files::draft(path, &text).map_err(failed)?;
        for key in old.iter().chain([&new]) {
            trusted.add(key.public);
        }
        trusted.write(path, new.public)?;
        if let Some(old) = old {
            fs::rename(path, path.with_extension(format!("key.{}", old.public.id()))).map_err(failed)?;
        }
        draft.persist_noclobber(path).map_err(|error| failed(error.error))?;
        Ok((Self { previous: previous(path), ..new }, trusted))
    }

    /// Returns the public key.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// Signs a message: 64 bytes of Ed25519 (RFC 8032).
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.pair.sign(message).as_ref().to_vec()
    }

    fn read(path: &Path, text: &str) -> Result<Self, KeyError> {
        let no_key = || KeyError::NoKey { path: path.display().to_string() };
        let inside = text.trim().strip_prefix(BEGIN).and_then(|text| text.strip_suffix(END)).ok_or_else(no_key)?;
        let inside: String = inside.split_whitespace().collect();
        let der = BASE64.decode(inside).map_err(|_| no_key())?;
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).map_err(|_| no_key())?;
        let public: PublicKey = pair.public_key().as_ref().try_into().map(PublicKey).map_err(|_| no_key())?;
        let secret = der.get(PKCS8.len()..PKCS8.len() + 32).ok_or_else(no_key)?;
        let rows = RowKey::new(public.short(), &derived_key(secret, b"rows of the log"));
        let (cookies, callbacks) = (derived_key(secret, b"cookies"), derived_key(secret, b"callbacks"));
        Ok(Self { rows, cookies, callbacks, previous: Vec::new(), pair, public })
    }

    /// Creates a key. If two servers start on one folder at the same time, both get the same key.
    fn make(path: &Path, clock: &dyn Clock) -> Result<Self, KeyError> {
        let text = private_text(clock);
        let failed = |source| file_error(path, source);
        match files::draft(path, &text).map_err(failed)?.persist_noclobber(path) {
            Ok(_) => {
                tracing::info!(path = %path.display(), "created the key of the audit log; keep a copy elsewhere");
                Self::read(path, &text)
            }
            Err(PersistError { error, .. }) if error.kind() == ErrorKind::AlreadyExists => {
                Self::read(path, &fs::read_to_string(path).map_err(failed)?)
            }
            Err(PersistError { error, .. }) => Err(failed(error)),
        }
    }
}

/// Returns the text of the file of a new private key.
fn private_text(clock: &dyn Clock) -> String {
    let der = [&PKCS8[..], &clock.random(), &clock.random()].concat();
    format!("{BEGIN}\n{}\n{END}\n", BASE64.encode(der))
}

/// Derives a key for one purpose, by HKDF with SHA-256.
fn derived_key(secret: &[u8], purpose: &[u8]) -> [u8; 32] {
    let secret = hkdf::Salt::new(hkdf::HKDF_SHA256, b"countersign").extract(secret);
    let mut key = [0; 32];
    let info = [purpose];
    let expanded = secret.expand(&info, hkdf::HKDF_SHA256);
    expanded.and_then(|expanded| expanded.fill(&mut key)).expect("HKDF gives as many bytes as its hash has");
    key
}

/// Reads the row keys of the replaced private keys, which [`SealKey::renew`] keeps beside this one. If such a file is
/// removed, rows that were written with its key and are not sealed yet are no longer trusted.
fn previous(path: &Path) -> Vec<RowKey> {
    let Some(stem) = path.file_stem() else { return Vec::new() };
    let prefix = format!("{}.key.", stem.to_string_lossy());
    let files = fs::read_dir(files::folder_of(path)).into_iter().flatten().flatten();
    let files = files.filter(|file| file.file_name().to_string_lossy().starts_with(&prefix));
    let keys = files.filter_map(|file| SealKey::read(&file.path(), &fs::read_to_string(file.path()).ok()?).ok());
    keys.map(|key| key.rows).collect()
}

/// Warns if others than the owner can read the key.
fn warn_of_others(path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        if fs::metadata(path).is_ok_and(|file| file.mode() & 0o077 != 0) {
            tracing::warn!(path = %path.display(), "others can read the key of the audit log; run chmod 600 on it");
        }
    }
}

fn file_error(path: &Path, source: std::io::Error) -> KeyError {
    KeyError::File { path: path.display().to_string(), source }
}

/// A public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Returns the id by which seals name this key.
    pub fn id(self) -> String {
        hex::encode(self.short())
    }

    fn short(self) -> [u8; 8] {
        let mut id = [0; 8];
        id.copy_from_slice(&Sha256::digest(self.0)[..8]);
        id
    }

    fn verifies(self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.0).verify(message, signature).is_ok()
    }
}

impl std::fmt::Display for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{ED25519_WORD}{}", BASE64.encode(self.0))
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        let bytes = text.trim().strip_prefix(ED25519_WORD).and_then(|text| BASE64.decode(text).ok());
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| KeyError::NoPublicKey(text.to_owned()))
    }
}

/// The public keys whose seals are trusted, by id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trusted(BTreeMap<String, PublicKey>);

impl Trusted {
    /// Reads the file beside a private key. Empty if there is no such file.
    pub fn beside(key: &Path) -> Result<Self, KeyError> {
        let path = public_file(key);
        match fs::read_to_string(&path) {
            Ok(text) => Self::of_lines(&text),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(file_error(&path, source)),
        }
    }

    /// Whether no key is trusted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Parses public keys, or reads them from files.
    pub fn named(names: &[String]) -> Result<Self, KeyError> {
        let mut trusted = Self::default();
        for name in names {
            if name.starts_with(ED25519_WORD) {
                trusted.add(name.parse()?);
                continue;
            }
            let text = fs::read_to_string(name).map_err(|_| KeyError::NoPublicKey(name.clone()))?;
            trusted.0.extend(Self::of_lines(&text)?.0);
        }
        Ok(trusted)
    }

    fn of_lines(text: &str) -> Result<Self, KeyError> {
        let mut trusted = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            trusted.add(line.parse()?);
        }
        Ok(trusted)
    }

    /// Trusts another key. Returns whether it is new.
    pub fn add(&mut self, key: PublicKey) -> bool {
        self.0.insert(key.id(), key).is_none()
    }

    /// Whether the key with this id has signed the message. `None` if the key is not trusted.
    pub(super) fn has_signed(&self, id: &str, message: &[u8], signature: &[u8]) -> Option<bool> {
        self.0.get(id).map(|key| key.verifies(message, signature))
    }

    /// Returns the keys as lines of a file.
    pub(super) fn lines(&self) -> Vec<String> {
        self.0.values().map(ToString::to_string).collect()
    }

    /// Replaces the file beside a private key, with the newest key first. Everyone may read it.
    fn write(&self, key: &Path, newest: PublicKey) -> Result<(), KeyError> {
        let path = public_file(key);
        let failed = |source| file_error(&path, source);
        let rest = self.0.values().filter(|other| **other != newest);
        let lines: Vec<String> = std::iter::once(&newest).chain(rest).map(ToString::to_string).collect();
        let draft = files::draft(&path, &(lines.join("\n") + "\n")).map_err(failed)?;
        #[cfg(unix)]
        {
            let readable: fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o644);
            draft.as_file().set_permissions(readable).map_err(failed)?;
        }
        draft.persist(&path).map_err(|error| failed(error.error))?;
        Ok(())
    }
}

fn public_file(key: &Path) -> PathBuf {
    key.with_extension("pub")
}
