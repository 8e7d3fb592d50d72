//! Embeds the console: `frontend/dist`, built by `cargo xtask console`, becomes part of the binary.
use std::{fs, path::Path};

/// Shown where the server was built before the console was.
const PLACEHOLDER: &str = "<!doctype html><title>Countersign</title><p>The console is not part of this build. \
    Run <code>cargo xtask build</code> or <code>cargo xtask run</code>.</p>\n";

fn main() {
    let dist = Path::new("../frontend/dist");
    if !dist.join("index.html").exists() {
        fs::create_dir_all(dist).expect("frontend/dist can be made");
        fs::write(dist.join("index.html"), PLACEHOLDER).expect("frontend/dist can be written");
    }
    memory_serve::load_directory("../frontend/dist");
}
