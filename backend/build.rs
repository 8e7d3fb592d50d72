//! Embeds the console in a release: `frontend/dist`, built by `cargo xtask console`, becomes part of the binary. A debug
//! build reads these files when it runs (`http/console_folder.rs`).
use std::{fs, path::Path};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if cfg!(debug_assertions) {
        return;
    }
    let dist = Path::new("../frontend/dist");
    if !dist.join("index.html").exists() {
        fs::create_dir_all(dist).expect("frontend/dist can be made");
        // Shown where the server was built before the console was.
        let placeholder = include_str!("src/http/console_placeholder.html");
        fs::write(dist.join("index.html"), placeholder).expect("frontend/dist can be written");
    }
    memory_serve::load_directory(dist);
}
