//! Makes the console's compiled program into the files that the server serves: the program with its JavaScript, the
//! style sheet, the icon, and the page that names them.
//!
//! `bundler PROGRAM.wasm FRONTEND_FOLDER OUTPUT_FOLDER plain|hashed`; called by `cargo xtask console`, which knows
//! where these are.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use wasm_bindgen_cli_support::Bindgen;

/// The page that names all other files.
const PAGE: &str = "index.html";
/// What lies in the folder of the frontend as it is served.
const FILES: [&str; 2] = ["style/all.css", "style/icon.svg"];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, frontend, output, names] = arguments.as_slice() else {
        bail!("bundler PROGRAM.wasm FRONTEND_FOLDER OUTPUT_FOLDER plain|hashed")
    };
    bundle(Path::new(program), Path::new(frontend), Path::new(output), names == "hashed")
}

/// Writes everything into a folder of its own.
fn bundle(program: &Path, frontend: &Path, output: &Path, hashed: bool) -> Result<()> {
    if output.exists() {
        fs::remove_dir_all(output).with_context(|| format!("emptying {}", output.display()))?;
    }
    fs::create_dir_all(output).with_context(|| format!("making {}", output.display()))?;
    let mut bindings = Bindgen::new();
    bindings.input_path(program).web(true)?.typescript(false).omit_default_module_path(true);
    bindings.generate(output).with_context(|| format!("making JavaScript for {}", program.display()))?;
    for file in FILES {
        let from = frontend.join(file);
        let name = from.file_name().context("a file has a name")?;
        fs::copy(&from, output.join(name)).with_context(|| format!("copying {}", from.display()))?;
    }
    let page = frontend.join(PAGE);
    let page = fs::read_to_string(&page).with_context(|| format!("reading {}", page.display()))?;
    let page = name_files(output, page, hashed)?;
    fs::write(output.join(PAGE), page).context("writing the page")
}

/// Holds the page against the files: it names each of them, and by its hash where names are to change with what is in
/// the file, so that browsers may keep it for ever.
fn name_files(output: &Path, mut page: String, hashed: bool) -> Result<String> {
    for entry in fs::read_dir(output)? {
        let path = entry?.path();
        if !path.is_file() {
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let quoted = format!("\"/{name}\"");
        ensure!(page.contains(&quoted), "{PAGE} does not name {quoted}");
        if hashed {
            let new = hashed_name(&name, &fs::read(&path)?);
            fs::rename(&path, path.with_file_name(&new))?;
            page = page.replace(&quoted, &format!("\"/{new}\""));
        }
    }
    Ok(page)
}

/// `frontend_bg.wasm` becomes `frontend-0123456789abcdef_bg.wasm`: the server knows such names.
fn hashed_name(name: &str, content: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(content);
    let (stem, rest) = name.split_at(name.find(['_', '.']).unwrap_or(name.len()));
    format!("{stem}-{:016x}{rest}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_each_file_and_a_hash_that_changes_with_it() -> Result<()> {
        let folder = std::env::temp_dir().join(format!("countersign-bundler-{}", std::process::id()));
        let named = |content: &str, page: &str| {
            fs::create_dir_all(&folder)?;
            fs::write(folder.join("all.css"), content)?;
            let page = name_files(&folder, page.to_owned(), true);
            fs::remove_dir_all(&folder)?;
            page
        };
        let page = r#"<link href="/all.css" />"#;
        let (one, other) = (named("a {}", page)?, named("b {}", page)?);
        assert_ne!(one, other);
        assert_eq!(one.len(), page.len() + "-0123456789abcdef".len());
        assert!(named("a {}", "<p>none</p>").is_err(), "a file that no page loads is a mistake");
        Ok(())
    }

    #[test]
    fn the_server_knows_the_names() {
        let name = hashed_name("frontend_bg.wasm", b"x");
        assert!(name.starts_with("frontend-") && name.ends_with("_bg.wasm"), "{name}");
        assert_eq!(name.len(), "frontend-0123456789abcdef_bg.wasm".len());
    }
}
