//! The folder of archives: one process at a time writes there, and only after the end of a file that the database
//! knows.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use shared::log::RunsArchived;

use super::piece::{self, Header, Line};
use crate::files;

/// Whoever writes holds a lock on this file.
const LOCK: &str = "lock";

/// Why a file of the archive cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The system says no.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What it says.
        source: io::Error,
    },
    /// It is not what the database knows of it.
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

/// The right to write in a folder, until it is dropped or its process ends.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

impl Folder {
    /// The folder at a path; it is made when something is written.
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file in it.
    pub fn path_of(&self, file: &str) -> PathBuf {
        self.path.join(file)
    }

    /// The right to write; none while another process has it.
    pub fn lock(&self) -> Result<Option<FolderLock>, FolderError> {
        let path = self.path_of(LOCK);
        let failed = |source| FolderError::Io { path: path.clone(), source };
        files::make_private_folder(&self.path).map_err(failed)?;
        Ok(files::lock(&path).map_err(failed)?.map(|file| FolderLock { _file: file }))
    }

    /// Puts an archive behind `end`, where those end in a file that the database knows, and waits until it is on disk.
    /// What a crash left there is written over.
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
            // The name of a new file is on disk with its folder.
            files::sync_folder(&self.path).map_err(failed)?;
        }
        Ok(())
    }

    /// The bytes of an archive, where they are those that the record tells of; else why not.
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

/// Whether a file is called as archives are, such as `2026-08-25.jsonl.gz`: what the database says leads nowhere else.
fn is_name(file: &str) -> bool {
    let day = file.strip_suffix(".jsonl.gz").unwrap_or_default();
    day.len() == 10 && day.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// `sha256:` of bytes.
pub fn digest(bytes: &[u8]) -> String {
    digest_of(Sha256::new_with_prefix(bytes))
}

/// The same of bytes that were hashed as they came.
pub fn digest_of(hash: Sha256) -> String {
    format!("sha256:{}", hex::encode(hash.finalize()))
}

/// Why what stands behind the last archive of a file may not be written over: it is none that was begun and not
/// committed.
fn not_ours_to_write_over(rest: &[u8], header: &Header) -> Option<String> {
    let mut found = None;
    let read = piece::read(rest, |line| {
        if let Line::Header(header) = line {
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
