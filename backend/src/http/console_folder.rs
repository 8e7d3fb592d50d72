//! The files of the console in a debug build: those that are in `frontend/dist` when the first router is made. They are
//! read at each request, so the server need not be compiled again when the console was. A release has them embedded.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use memory_serve::Asset;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../frontend/dist");
const PAGE: &str = "/index.html";
const PLACEHOLDER: &str = include_str!("console_placeholder.html");

static FILES: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let mut files = Vec::new();
    add(Path::new(FOLDER), "", &mut files);
    if !files.iter().any(|file| file.route == PAGE) {
        files.push(Asset { bytes: Some(PLACEHOLDER.as_bytes()), etag: "placeholder", ..asset(PAGE, "", "text/html") });
    }
    files
});

pub(super) fn files() -> &'static [Asset] {
    &FILES
}

/// Adds the files of a folder, whose paths in the console begin with `route`. A folder that cannot be read has none.
fn add(folder: &Path, route: &str, files: &mut Vec<Asset>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, route) = (entry.path(), format!("{route}/{}", entry.file_name().to_string_lossy()));
        if path.is_dir() {
            add(&path, &route, files);
        } else if let Some(content_type) = content_type(&path) {
            files.push(asset(route.leak(), path.to_string_lossy().into_owned().leak(), content_type));
        }
    }
}

/// Without a tag, the file is read at each request.
fn asset(route: &'static str, path: &'static str, content_type: &'static str) -> Asset {
    Asset { route, path, content_type, etag: "", bytes: None, is_compressed: false, should_compress: false }
}

/// The type of a file. `None` for files that the console does not have.
fn content_type(path: &Path) -> Option<&'static str> {
    Some(match path.extension()?.to_str()? {
        "html" => "text/html",
        "js" => "text/javascript",
        "css" => "text/css",
        "wasm" => "application/wasm",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "txt" => "text/plain",
        _ => return None,
    })
}
