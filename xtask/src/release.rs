//! Prepares a release (its version and changelog), and prints the notes of a tagged one.

use std::fs;
use std::io::Write as _;

use anyhow::{Context, Result, ensure};

use crate::process::{cargo, output, program, root, run as run_command, say};

/// The heading under which changes are collected.
const UNRELEASED: &str = "## Unreleased";

/// Sets the workspace's version, and adds its heading to the changelog. Commit and tag are left to whoever releases.
pub fn prepare(version: &str) -> Result<()> {
    let clean = output(program("git").args(["status", "--porcelain"])).is_some_and(|changes| changes.is_empty());
    ensure!(clean, "commit or put aside what is changed first: a release holds nothing else");
    let today = output(program("date").args(["-u", "+%F"])).context("`date` does not say which day it is")?;
    let (manifest, changelog) = (root().join("Cargo.toml"), root().join("CHANGELOG.md"));
    let old = current_version()?;
    let text = fs::read_to_string(&manifest)?;
    fs::write(&manifest, text.replacen(&version_line(&old), &version_line(version), 1))?;
    fs::write(&changelog, cut(&fs::read_to_string(&changelog)?, version, &today)?)?;
    run_command(cargo().args(["update", "--workspace", "--offline", "--quiet"]))?;
    say(&format!(
        "Look at `git diff`, then: \
         git commit -am 'Release {version}' && git tag v{version} && git push origin HEAD v{version}"
    ));
    Ok(())
}

/// Prints the changelog's section for a tag, such as `v0.1.0`, which must be the version of the workspace.
pub fn notes(tag: &str) -> Result<()> {
    let version = tag.strip_prefix('v').unwrap_or(tag);
    let current = current_version()?;
    ensure!(version == current, "the tag is {tag}, but Cargo.toml says {current}: `cargo xtask release {version}`");
    let changelog = fs::read_to_string(root().join("CHANGELOG.md"))?;
    let notes = section(&changelog, version).with_context(|| format!("CHANGELOG.md has no section {version}"))?;
    writeln!(std::io::stdout(), "{notes}")?;
    Ok(())
}

fn version_line(version: &str) -> String {
    format!("\nversion = \"{version}\"\n")
}

fn current_version() -> Result<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml"))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = \""));
    line.and_then(|rest| rest.strip_suffix('"')).map(str::to_owned).context("Cargo.toml has no version")
}

/// Returns the changelog with a heading for this version above the unreleased entries. Fails if there are none.
fn cut(changelog: &str, version: &str, date: &str) -> Result<String> {
    ensure!(section(changelog, version).is_none(), "CHANGELOG.md has a section {version} already");
    let unreleased = section(changelog, "Unreleased").context("CHANGELOG.md has no section Unreleased")?;
    ensure!(!unreleased.is_empty(), "nothing stands under Unreleased in CHANGELOG.md");
    Ok(changelog.replacen(UNRELEASED, &format!("{UNRELEASED}\n\n## {version} ({date})"), 1))
}

/// The text under the heading of a version, up to the next one. `None` if there is no such heading.
fn section<'a>(changelog: &'a str, version: &str) -> Option<&'a str> {
    let mut sections = changelog.split("\n## ").skip(1);
    sections.find_map(|section| {
        let (heading, body) = section.split_once('\n').unwrap_or((section, ""));
        (heading.split_whitespace().next() == Some(version)).then(|| body.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGELOG: &str = "# Changelog\n\n## Unreleased\n\n- New.\n\n## 0.1.0 (2026-01-01)\n\n- First.\n";

    #[test]
    fn a_release_takes_what_was_unreleased() -> Result<()> {
        let after = cut(CHANGELOG, "0.2.0", "2026-02-02")?;
        assert_eq!(section(&after, "0.2.0"), Some("- New."));
        assert_eq!(section(&after, "0.1.0"), Some("- First."));
        assert_eq!(section(&after, "Unreleased"), Some(""));
        assert!(after.contains("\n## 0.2.0 (2026-02-02)\n"), "{after}");
        assert!(cut(CHANGELOG, "0.1.0", "2026-02-02").is_err(), "a version is released once");
        assert!(cut(&after, "0.3.0", "2026-03-03").is_err(), "nothing is no release");
        Ok(())
    }

    #[test]
    fn the_tree_has_a_version_that_the_manifest_names_once() -> Result<()> {
        let manifest = fs::read_to_string(root().join("Cargo.toml"))?;
        assert_eq!(manifest.matches(&version_line(&current_version()?)).count(), 1);
        Ok(())
    }
}
