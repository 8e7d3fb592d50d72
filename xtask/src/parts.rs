//! Builds the console's program: compiles it, splits it into the parts that its pages load, and binds it to JavaScript.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use wasm_bindgen_cli_support::Bindgen;
use wasm_split_cli_support::{Options, transform};

use crate::process::{cargo, root, run, target};
use crate::setup;

/// The folder of the program, beside the page; `frontend/index.html` refers to its files by that name.
const FOLDER: &str = "program";
/// The name of the program's package, folder, and files.
const NAME: &str = "frontend";

/// Writes `frontend/program`: the part that is loaded first, and the parts that are loaded with certain pages.
pub fn write(profile: &str) -> Result<()> {
    let mut build = cargo();
    // They would replace the flags in .cargo/config.toml, without which the program cannot be split.
    build.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    build.envs(setup::console_environment()).args(["build", "--locked", "--package", NAME, "--bin", NAME]);
    run(build.args(["--target", setup::WASM, "--profile", profile]))?;
    let compiled = target().join(setup::WASM).join(profile).join(NAME).with_extension("wasm");
    let whole = fs::read(&compiled).with_context(|| format!("reading {}", compiled.display()))?;
    let folder = root().join(NAME).join(FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    let first = compiled.with_file_name("first.wasm");
    let mut options = Options::new(&whole);
    options.output_dir = &folder;
    options.main_out_path = &first;
    options.main_module = "./frontend.js";
    transform(options).map_err(|error| anyhow!("cutting {} into parts: {error:#}", compiled.display()))?;
    let mut bindgen = Bindgen::new();
    bindgen.input_path(&first).out_name(NAME).typescript(false).keep_lld_exports(true);
    // The module itself names the program, in case it is started without it.
    bindgen.omit_default_module_path(false);
    bindgen
        .web(true)
        .and_then(|bindgen| bindgen.generate(&folder))
        .with_context(|| format!("binding {} to JavaScript", first.display()))
}

/// Removes the element with `data-trunk-skip` from the page, which tells Trunk to ignore the program, and which Trunk
/// leaves in.
pub fn take_out_marker(stage: &Path) -> Result<()> {
    change_page(stage, |html| {
        let marker = html.find("data-trunk-skip")?;
        let (start, end) = (html[..marker].rfind('<')?, marker + html[marker..].find('>')? + 1);
        Some(format!("{}{}", &html[..start], &html[end..]))
    })
}

fn change_page(stage: &Path, change: impl FnOnce(&str) -> Option<String>) -> Result<()> {
    let page = stage.join("index.html");
    let html = fs::read_to_string(&page).with_context(|| format!("reading {}", page.display()))?;
    let changed = change(&html).with_context(|| format!("{} is not as expected", page.display()))?;
    fs::write(&page, changed).with_context(|| format!("writing {}", page.display()))
}

/// Adds a hash of the content to the name of the program's folder. Its files refer to each other by relative paths, so
/// none of them changes.
pub fn name_by_hash(stage: &Path) -> Result<()> {
    let folder = stage.join(FOLDER);
    let hashed = format!("{FOLDER}-{:016x}", hash(&folder)?);
    fs::rename(&folder, stage.join(&hashed)).with_context(|| format!("renaming {}", folder.display()))?;
    change_page(stage, |html| Some(html.replace(&format!("/{FOLDER}/"), &format!("/{hashed}/"))))
}

fn hash(folder: &Path) -> Result<u64> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        hasher.write(file.file_name().unwrap_or_default().as_encoded_bytes());
        if file.is_dir() {
            hasher.write_u64(hash(&file)?);
        } else {
            hasher.write(&fs::read(&file).with_context(|| format!("reading {}", file.display()))?);
        }
    }
    Ok(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_the_folder_by_the_hash_of_what_is_in_it() -> Result<()> {
        let stage = std::env::temp_dir().join(format!("countersign-program-{}", std::process::id()));
        let named = |content: &str| -> Result<String> {
            if stage.exists() {
                fs::remove_dir_all(&stage)?;
            }
            fs::create_dir_all(stage.join("program"))?;
            fs::write(stage.join("program/frontend.js"), content)?;
            fs::write(stage.join("index.html"), r#"<script>import "/program/frontend.js"</script>"#)?;
            name_by_hash(&stage)?;
            let page = fs::read_to_string(stage.join("index.html"))?;
            let named = page.split('"').nth(1).context("the page imports nothing")?.to_owned();
            assert_eq!(fs::read_to_string(stage.join(&named[1..]))?, content);
            Ok(named)
        };
        let first = named("one")?;
        assert_eq!(named("one")?, first);
        assert_ne!(named("two")?, first);
        fs::remove_dir_all(&stage)?;
        Ok(())
    }
}
