//! Checks the relative links in the documentation: each must lead to an existing file, and to a heading in it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

/// The folders with documentation, relative to the root of the tree.
const FOLDERS: [&str; 5] = ["", "docs", "docs/design", "flows", ".github"];

/// Returns a message for each broken link.
pub fn breaches(root: &Path) -> Result<Vec<String>> {
    let mut breaches = Vec::new();
    for folder in FOLDERS {
        for entry in fs::read_dir(root.join(folder))? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            let text = fs::read_to_string(&path)?;
            for link in links(&text) {
                if let Some(why) = breach(&path, &text, link)? {
                    let shown = path.strip_prefix(root).unwrap_or(&path).display();
                    breaches.push(format!("{shown}: the link to {link} {why}"));
                }
            }
        }
    }
    Ok(breaches)
}

/// Why a link is broken. `None` for a valid link, and for one to another site.
fn breach(page: &Path, text: &str, link: &str) -> Result<Option<&'static str>> {
    if link.contains("://") || link.starts_with("mailto:") {
        return Ok(None);
    }
    let (file, heading) = link.split_once('#').map_or((link, None), |(file, heading)| (file, Some(heading)));
    let target: PathBuf = page.parent().unwrap_or(page).join(file);
    if !file.is_empty() && !target.exists() {
        return Ok(Some("leads to no file"));
    }
    let Some(heading) = heading else { return Ok(None) };
    let target = if file.is_empty() { text.to_owned() } else { fs::read_to_string(target)? };
    Ok(if prose(&target).any(|line| anchor(line).as_deref() == Some(heading)) {
        None
    } else {
        Some("leads to no heading")
    })
}

/// The targets of all inline links, outside of code.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let outside = |line| str::split(line, '`').step_by(2);
    let targets = |part: &str| -> Vec<(usize, usize)> {
        part.match_indices("](").filter_map(|(at, _)| Some((at + 2, part[at..].find(')')? + at))).collect()
    };
    prose(text).flat_map(outside).flat_map(move |part| targets(part).into_iter().map(|(from, to)| &part[from..to]))
}

/// The lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n```").step_by(2).flat_map(str::lines)
}

/// The anchor of a heading: lower case, with `-` between words. `None` if the line is not a heading.
fn anchor(line: &str) -> Option<String> {
    let heading = line.strip_prefix('#')?.trim_start_matches('#').strip_prefix(' ')?;
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    Some(kept.collect::<String>().to_lowercase().replace(' ', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str =
        "# What an entry has\n[a](b.md) and [c](#what-an-entry-has), `[x](y.md)`\n```\n[z](none.md)\n# No\n```\n";

    #[test]
    fn links_are_found_outside_of_code_only() {
        assert_eq!(links(PAGE).collect::<Vec<_>>(), ["b.md", "#what-an-entry-has"]);
    }

    #[test]
    fn a_link_leads_to_a_file_and_a_heading_that_are_there() -> Result<()> {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("none.md");
        let why = |link| breach(&page, PAGE, link);
        assert_eq!(why("Cargo.toml")?, None);
        assert_eq!(why("#what-an-entry-has")?, None);
        assert_eq!(why("https://example.org")?, None);
        assert_eq!(why("gone.md")?, Some("leads to no file"));
        assert_eq!(why("#no")?, Some("leads to no heading"), "a comment in code is no heading");
        Ok(())
    }
}
