//! The newest head, stored in a file beside the key. The next seal must continue it: an attacker who can write the
//! database, but not this file, cannot replace the sealed audit log by another one.
//!
//! The file is replaced as a whole (temporary file, fsync, rename), and only its owner can read it. Servers that share
//! it take a lock while they write, and its number only increases, unless an operator accepts another head.

use std::fs::{self, File};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::seal::Head;
use crate::files;

/// The number of attempts to lock the file while another process holds the lock, and the pause between them.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// The error of reading, locking or writing the file.
#[derive(Debug, thiserror::Error)]
#[error("the head of the audit log in {path}: {source}; set COUNTERSIGN_SEAL_HEAD to use another file")]
pub struct HeadError {
    path: String,
    source: Error,
}

/// The file that keeps the newest head.
#[derive(Debug, Clone)]
pub struct HeadFile {
    path: PathBuf,
}

impl HeadFile {
    /// Names the file at this path, which need not exist yet.
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that the file can be read, locked and replaced.
    pub fn check(&self) -> Result<(), HeadError> {
        self.read()?;
        self.locked(|| tempfile::NamedTempFile::new_in(files::folder_of(&self.path)).map(drop))
    }

    /// Returns the stored head. `None` if the file does not exist.
    pub fn read(&self) -> Result<Option<Head>, HeadError> {
        self.read_file().map_err(|source| self.error(source))
    }

    /// Stores a head if it is newer than the stored one.
    pub fn advance(&self, head: &Head) -> Result<(), HeadError> {
        self.locked(|| match self.read_file()? {
            Some(kept) if kept.number >= head.number => Ok(()),
            _ => self.write(head),
        })
    }

    /// Stores a head, whatever was stored before. `None` removes the file, so that the audit log begins anew.
    pub fn replace(&self, head: Option<&Head>) -> Result<(), HeadError> {
        self.locked(|| match head {
            Some(head) => self.write(head),
            None => match fs::remove_file(&self.path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => files::sync_folder(files::folder_of(&self.path)),
            },
        })
    }

    fn read_file(&self) -> Result<Option<Head>, Error> {
        match fs::read_to_string(&self.path) {
            Ok(text) => text.parse().map(Some).map_err(|why: String| Error::new(ErrorKind::InvalidData, why)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write(&self, head: &Head) -> Result<(), Error> {
        let draft = files::draft(&self.path, &format!("{head}\n"))?;
        self.keep_owner(draft.path());
        draft.persist(&self.path).map_err(|error| error.error)?;
        files::sync_folder(files::folder_of(&self.path))
    }

    /// Keeps the owner of the file, so that an operator who is root does not take it away from the server.
    fn keep_owner(&self, draft: &Path) {
        #[cfg(unix)]
        if let Ok(old) = fs::metadata(&self.path).or_else(|_| fs::metadata(files::folder_of(&self.path))) {
            use std::os::unix::fs::{MetadataExt as _, chown};
            let same = fs::metadata(draft).is_ok_and(|new| (new.uid(), new.gid()) == (old.uid(), old.gid()));
            if !same && let Err(error) = chown(draft, Some(old.uid()), Some(old.gid())) {
                tracing::debug!(%error, "the file with the head of the audit log has a different owner now");
            }
        }
    }

    /// Runs `work` while no other process writes the file.
    fn locked(&self, work: impl FnOnce() -> Result<(), Error>) -> Result<(), HeadError> {
        let lock = self.lock().map_err(|source| self.error(source))?;
        let done = work();
        drop(lock);
        done.map_err(|source| self.error(source))
    }

    fn lock(&self) -> Result<File, Error> {
        let mut name = self.path.clone().into_os_string();
        name.push(".lock");
        for _ in 0..TRIES {
            if let Some(lock) = files::lock(Path::new(&name))? {
                self.keep_owner(Path::new(&name));
                return Ok(lock);
            }
            std::thread::sleep(PAUSE);
        }
        Err(Error::new(ErrorKind::WouldBlock, "another process has held its lock for several seconds"))
    }

    fn error(&self, source: Error) -> HeadError {
        HeadError { path: self.path.display().to_string(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(number: u64) -> Head {
        format!("{number}:{}", "0f".repeat(32)).parse().unwrap()
    }

    #[test]
    fn the_newest_head_is_kept_whoever_writes_last() {
        let folder = tempfile::tempdir().unwrap();
        let file = HeadFile::at(folder.path().join("seal.head"));
        assert_eq!(file.read().unwrap(), None);
        std::thread::scope(|scope| {
            for first in 1..=4 {
                let file = &file;
                scope.spawn(move || (first..=40).step_by(4).for_each(|number| file.advance(&head(number)).unwrap()));
            }
        });
        assert_eq!(file.read().unwrap(), Some(head(40)));
        file.advance(&head(39)).unwrap();
        assert_eq!(file.read().unwrap(), Some(head(40)));
        file.replace(Some(&head(7))).unwrap();
        assert_eq!(file.read().unwrap(), Some(head(7)));
        // Nothing but the file and its lock is left behind, for their owner only.
        for entry in fs::read_dir(folder.path()).unwrap().flatten() {
            assert!(entry.file_name().to_string_lossy().starts_with("seal.head"), "{entry:?}");
            #[cfg(unix)]
            assert_eq!(std::os::unix::fs::MetadataExt::mode(&entry.metadata().unwrap()) & 0o777, 0o600);
        }
        file.replace(None).unwrap();
        assert_eq!(file.read().unwrap(), None);
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let file = HeadFile::at(folder.path().join("missing/seal.head"));
        let error = file.check().unwrap_err().to_string();
        assert!(error.contains("missing/seal.head") && error.contains("COUNTERSIGN_SEAL_HEAD"), "{error}");
        let file = HeadFile::at(folder.path().join("seal.head"));
        fs::write(file.path(), "garbage").unwrap();
        assert!(file.read().is_err());
    }
}
