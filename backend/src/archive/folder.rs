//! The folder of archives: one process at a time writes there, and only after the end of a file that the database
//! knows.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use shared::log::RunsArchived;

use super::piece::{self, ArchiveLine, Header};
use crate::files;

/// The file that is locked while a process writes.
const LOCK: &str = "lock";

/// The reason why a file of the archive cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The operating system reported an error.
    #[error("{path}: {source}")]
    Io {
        /// The path of the file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file does not match what the database records.
    #[error("{path}: {why}")]
    Unexpected {
        /// The path of the file of archives that is not as expected.
        path: PathBuf,
        /// What is wrong, and the remedy.
        why: String,
    },
}

/// A folder of archives.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
}

/// The exclusive right to write to the folder, until it is dropped or its process ends.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

impl Folder {
    /// Names the folder at a path. It is created when something is written.
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a file in the folder.
    pub fn path_of(&self, file: &str) -> PathBuf {
        self.path.join(file)
    }

    /// Locks the folder for writing. Returns `None` while another process holds the lock.
    pub fn lock(&self) -> Result<Option<FolderLock>, FolderError> {
        let path = self.path_of(LOCK);
        let failed = |source| FolderError::Io { path: path.clone(), source };
        files::make_private_folder(&self.path).map_err(failed)?;
        Ok(files::lock(&path).map_err(failed)?.map(|file| FolderLock { _file: file }))
    }

    /// Writes an archive at `end`, the end of the file's last archive that the database knows, and waits until it is on
    /// disk. Overwrites what a crash has left there.
    pub fn append(
        &self,
        file: &str,
        end: u64,
        header: &Header,
        archive: &mut impl io::Read,
    ) -> Result<(), FolderError> {
        let path = self.path_of(file);
        let failed = |source| FolderError::Io { path: path.clone(), source };
        let is_new = !path.exists();
        files::make_private(&path).map_err(failed)?;
        let mut open = OpenOptions::new().read(true).write(true).open(&path).map_err(failed)?;
        let length = open.metadata().map_err(failed)?.len();
        if length < end {
            let why = format!(
                "it has {length} bytes, but the archives of this database end at {end}; restore the whole file or, if \
                 several servers archive, give them the same folder (`archive` in the settings)"
            );
            return Err(FolderError::Unexpected { path, why });
        }
        if length > end {
            let mut rest = Vec::new();
            open.seek(SeekFrom::Start(end)).map_err(failed)?;
            open.read_to_end(&mut rest).map_err(failed)?;
            if let Some(why) = not_ours_to_write_over(&rest, header) {
                return Err(FolderError::Unexpected { path, why });
            }
            open.set_len(end).map_err(failed)?;
        }
        open.seek(SeekFrom::Start(end)).map_err(failed)?;
        io::copy(archive, &mut open).map_err(failed)?;
        open.sync_all().map_err(failed)?;
        if is_new {
            // The directory entry of a new file must be synced with its folder.
            files::sync_folder(&self.path).map_err(failed)?;
        }
        Ok(())
    }

    /// Reads the bytes of an archive. Fails if they do not match the recorded digest.
    pub fn read(&self, told: &RunsArchived) -> Result<Vec<u8>, FolderError> {
        let path = self.path_of(&told.file);
        let failed = |source| FolderError::Io { path: path.clone(), source };
        if !is_name(&told.file) {
            let why = format!("the audit log names {:?}, which is not an archive file", told.file);
            return Err(FolderError::Unexpected { path, why });
        }
        let mut file = File::open(&path).map_err(failed)?;
        file.seek(SeekFrom::Start(told.position)).map_err(failed)?;
        let mut bytes = Vec::new();
        file.take(told.bytes).read_to_end(&mut bytes).map_err(failed)?;
        if digest(&bytes) == told.digest {
            return Ok(bytes);
        }
        let why = format!(
            "archive {} was changed or cut: the {} bytes from {} on are not those that the audit log records",
            told.archive, told.bytes, told.position
        );
        Err(FolderError::Unexpected { path, why })
    }
}

/// Whether this is the name of an archive file, such as `2026-08-25.jsonl.gz`, so that a manipulated record cannot lead
/// to another folder.
fn is_name(file: &str) -> bool {
    let day = file.strip_suffix(".jsonl.gz").unwrap_or_default();
    day.len() == 10 && day.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// Returns the SHA-256 of bytes, as `sha256:…`.
pub fn digest(bytes: &[u8]) -> String {
    digest_of(Sha256::new_with_prefix(bytes))
}

/// Returns a finished SHA-256 as `sha256:…`.
pub fn digest_of(hash: Sha256) -> String {
    format!("sha256:{}", hex::encode(hash.finalize()))
}

/// Returns why the data after the last known archive must not be overwritten. `None` if they are an archive that was
/// begun and not committed.
fn not_ours_to_write_over(rest: &[u8], header: &Header) -> Option<String> {
    let mut found = None;
    let read = piece::read(rest, |line| {
        if let ArchiveLine::Header(header) = line {
            found = Some(header);
        }
        Ok(true)
    });
    let of_another = "the file belongs to another database; set another folder (`archive` in the settings)";
    match (found, read) {
        (Some(found), _) if found.log != header.log => Some(of_another.to_owned()),
        (Some(found), _) if found.archive > header.archive => Some(set_back(found.archive)),
        (_, Ok(Some(read))) if read < rest.len() => Some(set_back(header.archive)),
        _ => None,
    }
}

fn set_back(archive: u64) -> String {
    format!(
        "it has archive {archive}, which is not in the database; was an older backup restored? Keep this file, and \
         move it out of the folder; the runs that the database has are archived again"
    )
}
