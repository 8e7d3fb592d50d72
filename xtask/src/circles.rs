//! Circles among the files of the engine. A file may use those below it, and none of them may use it back: a stranger then
//! reads it from the bottom up. Methods of the one type that the files share count too, since they need no import.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

/// The type whose methods are spread over the files.
const SHARED_TYPE: &str = "Builder";

/// Names the files of a folder that use each other in a circle. `prefix`: what its modules begin with in imports.
pub fn breaches(folder: &Path, prefix: &str, files: &[PathBuf]) -> Result<Vec<String>> {
    let mut texts = BTreeMap::new();
    for path in files {
        let Ok(inside) = path.strip_prefix(folder) else { continue };
        let file = inside.with_extension("").display().to_string();
        if !file.starts_with("tests") {
            let text = fs::read_to_string(path)?;
            let code: Vec<_> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
            texts.insert(module(&file), code.join("\n"));
        }
    }
    let circles = circles(prefix, &texts);
    let shown = folder.file_name().unwrap_or_default().display();
    let breach = format!("{shown}: these files use each other in a circle: {}", circles.join(", "));
    Ok(if circles.is_empty() { Vec::new() } else { vec![breach] })
}

/// The modules that use each other in a circle.
fn circles(prefix: &str, texts: &BTreeMap<String, String>) -> Vec<String> {
    let methods: BTreeMap<&str, BTreeSet<&str>> = texts.iter().map(|(file, code)| (&**file, methods(code))).collect();
    let uses = texts.iter().map(|(file, code)| {
        let calls = called(code);
        let owners = methods.iter().filter(|(_, own)| !own.is_disjoint(&calls)).map(|(owner, _)| (*owner).to_owned());
        let mut used: BTreeSet<String> = owners.chain(imported(file, prefix, code, texts)).collect();
        used.remove(file);
        (file.clone(), used)
    });
    let uses: BTreeMap<String, BTreeSet<String>> = uses.collect();
    uses.keys().filter(|file| reachable(&uses, file).contains(*file)).cloned().collect()
}

/// The module of a file; that of the folder for its `mod.rs`.
fn module(file: &str) -> String {
    let name = file.strip_suffix("/mod").unwrap_or(file);
    if name == "mod" { String::new() } else { name.replace('/', "::") }
}

/// The methods that a file gives to the shared type.
fn methods(code: &str) -> BTreeSet<&str> {
    let is_head = |at: usize| code[..at].rsplit('\n').next().is_some_and(|line| line.starts_with("impl"));
    let heads = code.match_indices(SHARED_TYPE).filter(|(at, _)| is_head(*at));
    let bodies = heads.map(|(at, _)| code[at..].split("\n}").next().unwrap_or_default());
    bodies.flat_map(|body| body.match_indices("fn ").map(|(at, found)| word(&body[at + found.len()..]))).collect()
}

/// What a file calls of the shared type.
fn called(code: &str) -> BTreeSet<&str> {
    let calls = ["self", "builder"].into_iter().flat_map(|receiver| {
        code.match_indices(receiver)
            .filter_map(move |(at, found)| code[at + found.len()..].trim_start().strip_prefix('.'))
    });
    calls.filter(|rest| rest[word(rest).len()..].starts_with('(')).map(word).collect()
}

/// The files that a file names in its imports.
fn imported(file: &str, prefix: &str, code: &str, files: &BTreeMap<String, String>) -> Vec<String> {
    let statements = code.split(';').filter_map(|statement| statement.trim_start().strip_prefix("use "));
    let paths = statements.flat_map(|statement| match statement.split_once('{') {
        Some((base, list)) => {
            list.trim_end_matches('}').split(',').map(|item| format!("{base}{}", item.trim())).collect()
        }
        None => vec![statement.to_owned()],
    });
    let absolute = paths.filter_map(|path| {
        let (mut from, mut rest) = (file, path.trim());
        if let Some(inside) = rest.strip_prefix(prefix) {
            return Some(inside.to_owned());
        }
        while let Some(outer) = rest.strip_prefix("super::") {
            (from, rest) = (from.rsplit_once("::").map_or("", |(outer, _)| outer), outer);
        }
        (rest.len() < path.trim().len())
            .then(|| if from.is_empty() { rest.to_owned() } else { format!("{from}::{rest}") })
    });
    // The longest beginning that is a file.
    let file_of = |path: String| {
        let ends = path.match_indices("::").map(|(at, _)| at).chain([path.len()]).collect::<Vec<_>>();
        ends.into_iter().rev().map(|end| word_path(&path[..end])).find(|name| files.contains_key(name))
    };
    absolute.filter_map(file_of).collect()
}

fn word_path(path: &str) -> String {
    path.split("::").map(word).collect::<Vec<_>>().join("::")
}

fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

fn reachable<'a>(uses: &'a BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<&'a String> {
    let mut seen = BTreeSet::new();
    let mut next: Vec<&String> = uses.get(from).into_iter().flatten().collect();
    while let Some(file) = next.pop() {
        if seen.insert(file) {
            next.extend(uses.get(file).into_iter().flatten());
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_use_each_other_are_named_whether_by_import_or_by_method() {
        let above = "use crate::engine::builder::Builder;\nimpl Builder<'_> {\n    fn high(&self) {\n        self.low();\n    }\n}\n";
        let found = |below: &str| {
            let texts = [("above", above), ("inner::below", below), ("builder", "struct Builder;")];
            circles("crate::engine::", &texts.map(|(file, code)| (file.to_owned(), code.to_owned())).into())
        };
        assert_eq!(
            found("use super::super::builder::Builder;\nimpl Builder<'_> {\n    fn low(&self) {}\n}\n"),
            [""; 0]
        );
        let both = ["above", "inner::below"];
        assert_eq!(found("impl Builder<'_> {\n    fn low(&self) {\n        self.high();\n    }\n}\n"), both);
        assert_eq!(
            found("use crate::engine::{above::High, builder};\nimpl Builder<'_> {\n    fn low(&self) {}\n}\n"),
            both
        );
    }
}
