//! Makes one folder a copy of another. Files that are already the same keep their modification times, so that nothing
//! that depends on them is built again.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Makes `to` a copy of `from`: writes files that differ, removes those not in `from`, and leaves the rest untouched.
pub fn mirror(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("making {}", to.display()))?;
    for entry in fs::read_dir(to).with_context(|| format!("reading {}", to.display()))? {
        let old = entry?.path();
        let Some(name) = old.file_name() else { continue };
        if fs::metadata(from.join(name)).is_ok_and(|new| new.is_dir() == old.is_dir()) {
            continue;
        }
        let removed = if old.is_dir() { fs::remove_dir_all(&old) } else { fs::remove_file(&old) };
        removed.with_context(|| format!("removing {}", old.display()))?;
    }
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let new = entry?.path();
        let Some(name) = new.file_name() else { continue };
        let old = to.join(name);
        if new.is_dir() {
            mirror(&new, &old)?;
            continue;
        }
        let content = fs::read(&new).with_context(|| format!("reading {}", new.display()))?;
        if !fs::read(&old).is_ok_and(|known| known == content) {
            fs::write(&old, content).with_context(|| format!("writing {}", old.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_the_same_keeps_its_time_and_what_is_gone_goes() -> Result<()> {
        let folder = std::env::temp_dir().join(format!("countersign-mirror-{}", std::process::id()));
        let (from, to) = (folder.join("from"), folder.join("to"));
        fs::create_dir_all(from.join("snippets"))?;
        fs::create_dir_all(to.join("gone"))?;
        for (path, content) in [
            ("from/same.js", "same"),
            ("to/same.js", "same"),
            ("from/changed.css", "new"),
            ("to/changed.css", "old"),
            ("from/snippets/inner.js", "inner"),
            ("to/frontend-0ld.wasm", "old"),
            ("to/gone/file", "old"),
        ] {
            fs::write(folder.join(path), content)?;
        }
        let same = fs::File::options().write(true).open(to.join("same.js"))?;
        let before = same.metadata()?.modified()? - Duration::from_hours(1);
        same.set_modified(before)?;

        mirror(&from, &to)?;
        assert_eq!(fs::metadata(to.join("same.js"))?.modified()?, before);
        assert_eq!(fs::read_to_string(to.join("changed.css"))?, "new");
        assert_eq!(fs::read_to_string(to.join("snippets/inner.js"))?, "inner");
        assert!(!to.join("frontend-0ld.wasm").exists() && !to.join("gone").exists());

        let folder_time = fs::metadata(&to)?.modified()?;
        mirror(&from, &to)?;
        assert_eq!(fs::metadata(&to)?.modified()?, folder_time, "a second time touches nothing");
        fs::remove_dir_all(&folder)?;
        Ok(())
    }
}
