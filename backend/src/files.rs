//! Files that only their owner may read: they contain texts of people and agents, and digests of passwords. Also their
//! locks, and writing them as a whole.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

/// Creates a folder and its missing parents, for the owner alone. An existing folder stays as it is.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Creates a file for the owner alone, before another program creates it with wider permissions. For an existing file,
/// removes the permissions of everyone except the owner and the group, since a group may have been chosen on purpose.
pub fn make_private(path: &Path) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // An existing file is not opened: closing it would release the locks that SQLite holds on it in this process.
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => narrow(path),
        Err(error) => Err(error),
    }
}

/// Removes the permissions of everyone except the owner and the group. Does nothing if the file does not exist.
pub fn narrow(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mut permissions = match fs::metadata(path) {
            Ok(file) => file.permissions(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        if permissions.mode() & 0o007 != 0 {
            permissions.set_mode(permissions.mode() & !0o007);
            fs::set_permissions(path, permissions)?;
            tracing::info!(path = %path.display(), "the file was readable by all users; it no longer is");
        }
    }
    Ok(())
}

/// Locks a file, which is created if necessary, until the returned handle is dropped or the process ends. Returns
/// `None` while another process holds the lock.
pub fn lock(path: &Path) -> io::Result<Option<File>> {
    make_private(path)?;
    let file = fs::OpenOptions::new().write(true).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Writes a temporary file beside `path`, for the owner alone, and waits until it is on disk. The caller persists it at
/// `path`, so that the file there is always complete; otherwise it is removed on drop.
pub fn draft(path: &Path, text: &str) -> io::Result<NamedTempFile> {
    let mut draft = tempfile::Builder::new().prefix(".draft-").tempfile_in(folder_of(path))?;
    draft.write_all(text.as_bytes())?;
    draft.as_file().sync_all()?;
    Ok(draft)
}

/// Waits until the directory entries of a folder are on disk.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    // Windows has no equivalent, and cannot open folders as files.
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

/// Returns the folder that contains a file: `.` for a bare file name.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("a file").permissions().mode() & 0o777
    }

    #[test]
    fn files_are_their_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (data, file) = (folder.path().join("a/data"), folder.path().join("a/data/file"));
        make_private_folder(&data).unwrap();
        make_private(&file).unwrap();
        assert_eq!((mode(&data), mode(&file)), (0o700, 0o600));
        fs::write(&file, "kept").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        make_private(&file).unwrap();
        assert_eq!((mode(&file), fs::read_to_string(&file).unwrap().as_str()), (0o640, "kept"));
        narrow(&folder.path().join("none")).unwrap();
    }
}
