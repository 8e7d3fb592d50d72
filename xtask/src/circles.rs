//! Finds circles of files in a crate. A file may use files below it, which must not use it back, so that a stranger can
//! read the crate from the bottom up.
//!
//! A file uses another if it imports an item from it, or names an item by its path. An item that a module re-exports
//! (`pub use`) counts for the file that defines it. Method calls on a type whose methods are spread over files count
//! too, since they need no import.
//!
//! A module and the files inside it are one house: the module's own file declares the others, and may also hold what
//! they share. So an arrow from it down to them does not count if they use it back without leaving the module.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::code::{Code, Import};

/// Types whose methods are spread over the files of a module: the module, the type, and the names of its variables
/// there.
const SPREAD_TYPES: &[(&str, &str, [&str; 2])] =
    &[("engine", "Builder", ["self", "builder"]), ("store::writer", "Group", ["self", "group"])];
/// The most re-exports that are followed from one path, so that circular ones end.
const MAX_HANDOVERS: usize = 8;

/// The modules that each module uses directly. A module stands for its file.
type Arrows = BTreeMap<String, BTreeSet<String>>;
/// The code of each module.
type Codes<'c> = BTreeMap<String, &'c Code>;
/// The imports of each module, with paths from the root of the crate.
type Imports<'m> = BTreeMap<&'m str, Vec<Import>>;

/// Returns a message for each circle of files in the crate whose sources are in the folder `source`.
pub fn breaches(source: &Path, files: &BTreeMap<PathBuf, Code>) -> Vec<String> {
    let has_library = files.contains_key(&source.join("lib.rs"));
    let module = |path: &Path| {
        let file = path.strip_prefix(source).ok()?.with_extension("").display().to_string();
        let is_other_crate = has_library && file == "main";
        (!is_other_crate && !file.split('/').any(|part| part == "tests")).then(|| module(&file))
    };
    let codes = files.iter().filter_map(|(path, code)| Some((module(path)?, code))).collect();
    let shown = source.parent().and_then(Path::file_name).unwrap_or_default().display();
    let breach = |circle: Vec<String>| format!("{shown}: these use each other in a circle: {}", circle.join(", "));
    circles(&codes).into_iter().map(breach).collect()
}

/// Returns the modules of each circle.
fn circles(codes: &Codes<'_>) -> Vec<Vec<String>> {
    let arrows = without_houses(&arrows(codes));
    let below: BTreeMap<&String, BTreeSet<&String>> =
        arrows.keys().map(|module| (module, reachable(&arrows, module, |_| true))).collect();
    let mut circles: Vec<Vec<String>> = Vec::new();
    for (module, reached) in below.iter().filter(|(module, reached)| reached.contains(*module)) {
        if circles.iter().all(|circle| !circle.contains(module)) {
            let circle = reached.iter().filter(|other| below.get(*other).is_some_and(|back| back.contains(module)));
            circles.push(circle.map(|other| (*other).clone()).collect());
        }
    }
    circles
}

/// Finds out which module uses which.
fn arrows(codes: &Codes<'_>) -> Arrows {
    let imports: Imports<'_> =
        codes.iter().map(|(module, code)| (module.as_str(), imports(module, code, codes))).collect();
    let owner = |path: &str| owner(path, codes, &imports, 0);
    let mut arrows = Arrows::new();
    for (module, code) in codes {
        let imported = imports.get(module.as_str()).into_iter().flatten();
        let imported = imported.filter(|import| !import.is_handed_on || code.words.contains(import.name()));
        let named = code.paths.iter().filter_map(|path| absolute(module, path, codes));
        let mut used: BTreeSet<String> =
            imported.map(|import| import.path.clone()).chain(named).filter_map(|path| owner(&path)).collect();
        used.extend(owners_of_methods(module, code, codes));
        used.remove(module);
        arrows.insert(module.clone(), used);
    }
    arrows
}

/// Removes the arrows from a module down to modules inside it that use it back without leaving it.
fn without_houses(arrows: &Arrows) -> Arrows {
    let kept = arrows.iter().map(|(module, used)| {
        let is_inside = |other: &str| other.strip_prefix(module.as_str()).is_some_and(|rest| rest.starts_with("::"));
        let uses_back = |other: &String| {
            arrows.get(other).is_some_and(|used| used.contains(module))
                || reachable(arrows, other, is_inside)
                    .into_iter()
                    .any(|inner| arrows.get(inner).is_some_and(|used| used.contains(module)))
        };
        let kept = used.iter().filter(|other| !(is_inside(other) && uses_back(other))).cloned();
        (module.clone(), kept.collect())
    });
    kept.collect()
}

/// The path of a file's module, such as `engine::builder`: that of the folder for a `mod.rs`, empty for the crate's
/// root.
fn module(file: &str) -> String {
    let name = file.strip_suffix("/mod").unwrap_or(file);
    if matches!(name, "mod" | "lib" | "main") { String::new() } else { name.replace('/', "::") }
}

/// Returns the imports of a file from its own crate, with paths from the root of the crate.
fn imports(module: &str, code: &Code, codes: &Codes<'_>) -> Vec<Import> {
    let inside = |import: &Import| Some(Import { path: absolute(module, &import.path, codes)?, ..*import });
    code.imports.iter().filter_map(inside).collect()
}

/// Resolves a path in `module` to one from the root of the crate. `None` for a path into another crate.
fn absolute(module: &str, path: &str, codes: &Codes<'_>) -> Option<String> {
    let join = |outer: &str, rest: &str| match (outer, rest) {
        ("", rest) => rest.to_owned(),
        (outer, "") => outer.to_owned(),
        (outer, rest) => format!("{outer}::{rest}"),
    };
    let (first, rest) = path.trim().split_once("::").unwrap_or((path.trim(), ""));
    match first {
        "crate" => Some(rest.to_owned()),
        "self" => Some(join(module, rest)),
        "super" => {
            let outer = module.rsplit_once("::").map_or("", |(outer, _)| outer);
            let is_further = rest == "super" || rest.starts_with("super::");
            if is_further { absolute(outer, rest, codes) } else { Some(join(outer, rest)) }
        }
        first => codes.contains_key(&join(module, first)).then(|| join(module, path.trim())),
    }
}

/// The module that defines the item of a path, found through re-exports. `None` if no module is known.
fn owner(path: &str, codes: &Codes<'_>, imports: &Imports<'_>, handovers: usize) -> Option<String> {
    let ends = path.match_indices("::").map(|(at, _)| at).chain([path.len()]).collect::<Vec<_>>();
    let owner = ends.into_iter().rev().map(|end| &path[..end]).find(|name| codes.contains_key(*name)).unwrap_or("");
    let rest = path[owner.len()..].trim_start_matches("::");
    let (name, further) = rest.split_once("::").unwrap_or((rest, ""));
    let known = imports.get(owner).into_iter().flatten().find(|import| !name.is_empty() && import.name() == name);
    match known.filter(|_| handovers < MAX_HANDOVERS) {
        Some(import) if further.is_empty() => self::owner(&import.path, codes, imports, handovers + 1),
        Some(import) => self::owner(&format!("{}::{further}", import.path), codes, imports, handovers + 1),
        None => codes.contains_key(owner).then(|| owner.to_owned()),
    }
}

/// The modules whose methods of a spread type (see [`SPREAD_TYPES`]) a file calls.
fn owners_of_methods(module: &str, code: &Code, codes: &Codes<'_>) -> Vec<String> {
    let mut owners = Vec::new();
    for (house, name, receivers) in SPREAD_TYPES {
        let is_inside = |module: &str| module == *house || module.starts_with(&format!("{house}::"));
        if is_inside(module) {
            let defines = |code: &Code, called: &str| code.methods.iter().any(|(of, fun)| of == name && fun == called);
            let calls: Vec<_> = code.calls.iter().filter(|(on, _)| receivers.contains(&on.as_str())).collect();
            let others = codes
                .iter()
                .filter(|(other, code)| is_inside(other) && calls.iter().any(|(_, called)| defines(code, called)));
            owners.extend(others.map(|(other, _)| other.clone()));
        }
    }
    owners
}

/// The modules that `from` uses, directly or indirectly. Modules that `by_way_of` refuses are neither followed nor
/// returned.
fn reachable<'a>(arrows: &'a Arrows, from: &str, by_way_of: impl Fn(&str) -> bool) -> BTreeSet<&'a String> {
    let mut seen = BTreeSet::new();
    let mut next: Vec<&String> = arrows.get(from).into_iter().flatten().collect();
    while let Some(module) = next.pop() {
        if by_way_of(module) && seen.insert(module) {
            next.extend(arrows.get(module).into_iter().flatten());
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[(&str, &str)]) -> Vec<String> {
        let parsed: Vec<_> = texts.iter().map(|(module, text)| (*module, Code::parse(text).unwrap())).collect();
        let codes = parsed.iter().map(|(module, code)| ((*module).to_owned(), code)).collect();
        circles(&codes).into_iter().map(|circle| circle.join(" ")).collect()
    }

    #[test]
    fn files_that_use_each_other_are_named_whether_by_import_by_path_or_by_method() {
        let above = "use crate::engine::builder::Builder;\nimpl Builder<'_> {\n    fn high(&self) {\n        self.low();\n    }\n}\n";
        let with = |below: &str| {
            found(&[("engine::above", above), ("engine::inner::below", below), ("engine::builder", "struct Builder;")])
        };
        let nothing = [""; 0];
        assert_eq!(with("use super::super::builder::Builder;\nimpl Builder<'_> {\n    fn low(&self) {}\n}\n"), nothing);
        let both = ["engine::above engine::inner::below"];
        assert_eq!(with("impl Builder<'_> {\n    fn low(&self) {\n        self.high();\n    }\n}\n"), both);
        let import = "use crate::engine::{above::{High, Higher}, builder};\n";
        let path = "fn high() -> super::super::above::High {}\n";
        for back in [import, path] {
            assert_eq!(with(&format!("{back}impl Builder<'_> {{\n    fn low(&self) {{}}\n}}\n")), both);
        }
        let test = "#[cfg(test)]\nmod tests {\n    use crate::engine::above::High;\n}\n";
        assert_eq!(with(&format!("// crate::engine::above::High\n{test}")), nothing);
    }

    #[test]
    fn what_is_handed_on_is_of_the_file_that_has_it() {
        let face = ("shop", "mod order;\nmod price;\npub use order::Order;\npub use price::{Price, Sum as Total};\n");
        let order = ("shop::order", "use super::Price;\npub struct Order(Price);\n");
        assert_eq!(found(&[face, order, ("shop::price", "pub struct Price;\n")]), [""; 0]);
        let price = ("shop::price", "pub struct Price(crate::shop::Order);\n");
        assert_eq!(found(&[face, order, price]), ["shop::order shop::price"]);
    }

    #[test]
    fn a_module_and_what_is_inside_it_may_use_each_other_but_not_by_way_of_others() {
        let outer = ("shop", "use self::list::List;\npub struct Shared(List);\n");
        let list = ("shop::list", "use super::till::Till;\n");
        let till = |text| ("shop::till", text);
        assert_eq!(found(&[outer, list, till("use super::Shared;\n")]), [""; 0]);
        let other = ("bank", "use crate::shop::Shared;\n");
        assert_eq!(found(&[outer, list, till("use crate::bank::Bank;\n"), other]), ["bank shop shop::list shop::till"]);
    }
}
