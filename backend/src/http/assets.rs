//! Serves the console: its files, and its single page for every path that is not a file.

use std::convert::Infallible;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, Method, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memory_serve::{CacheControl, MemoryServe};
use sha2::{Digest, Sha256};
use shared::error::{Code, Problem};
use tower::ServiceExt as _;

#[cfg(debug_assertions)]
use super::console_folder::files;
use super::problem::Refused;

const PAGE: &str = "/index.html";
/// The most bytes of the page that are read, far above its real size.
const MAX_PAGE: usize = 1024 * 1024;
/// The extensions of the console's files, which distinguish them from pages with a dot in their path.
const FILES: [&str; 11] = ["js", "wasm", "css", "map", "svg", "png", "ico", "json", "txt", "webmanifest", "woff2"];

/// The `Cache-Control` of files whose name changes with their content, so that browsers never ask for them again.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// Returns a router for the files of the console. Browsers revalidate them each time, unless [`serve`] says otherwise.
pub(super) fn console() -> Router {
    MemoryServe::new(files())
        .index_file(None)
        .html_cache_control(CacheControl::NoCache)
        .cache_control(CacheControl::NoCache)
        .into_router()
}

/// The files that the build script has embedded.
#[cfg(not(debug_assertions))]
fn files() -> &'static [memory_serve::Asset] {
    let folders: &[(&str, &[memory_serve::Asset])] = include!(concat!(env!("OUT_DIR"), "/memory_serve_assets.rs"));
    folders.first().map_or(&[], |(_, files)| files)
}

/// Answers requests that match no route: with a file, with the page for other paths, and with `404` for writes and
/// paths of the API and of `/.well-known/`, which clients probe.
pub(super) async fn serve(console: Router, request: Request) -> Result<Response, Infallible> {
    let path = request.uri().path();
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if !reads || path == "/api" || path.starts_with("/api/") || path.starts_with("/.well-known/") {
        return Ok(not_found());
    }
    let last = path.rsplit('/').next().unwrap_or_default();
    let is_file = last.rsplit_once('.').is_some_and(|(_, extension)| FILES.contains(&extension));
    if is_file {
        let hashed = path.split('/').any(is_hashed);
        let mut response = console.oneshot(request).await?;
        if !(response.status().is_success() || response.status().is_redirection()) {
            return Ok(not_found());
        }
        if hashed {
            response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(FOR_EVER));
        }
        return Ok(response);
    }
    page(console).await
}

/// Returns the page, with a policy that allows only its own scripts.
///
/// The file is requested again without `Accept-Encoding` and `If-None-Match`: the policy contains the digests of the
/// inline scripts, so it must be made from the same bytes that are sent.
async fn page(console: Router) -> Result<Response, Infallible> {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = axum::http::Uri::from_static(PAGE);
    let response = console.oneshot(request).await?;
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, MAX_PAGE).await else { return Ok(not_found()) };
    match HeaderValue::try_from(policy(&String::from_utf8_lossy(&bytes))) {
        Ok(policy) => parts.headers.insert(header::CONTENT_SECURITY_POLICY, policy),
        Err(_) => return Ok(Refused(Problem::new(Code::Internal)).into_response()),
    };
    Ok(Response::from_parts(parts, Body::from(bytes)))
}

/// Whether the name of a file or folder contains the hash of its content, as the bundler writes it for a release:
/// `all-c134b3cf9488f458.css`. In development, names have no hash and stay the same when the content changes.
fn is_hashed(name: &str) -> bool {
    let is_hash = |part: &str| part.len() == 16 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.split(['-', '_', '.']).skip(1).any(is_hash)
}

fn not_found() -> Response {
    Refused(Problem::new(Code::NotFound)).into_response()
}

/// Returns the content security policy of a page: it allows wasm, and the current inline scripts and styles. Elements
/// may have style attributes, which the graphs of flows need.
fn policy(page: &str) -> String {
    let (scripts, styles) = (digests(page, "script"), digests(page, "style"));
    format!(
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'{scripts}; style-src 'self'{styles}; \
         style-src-attr 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'; \
         manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )
}

/// Returns the policy's sources for the inline elements with this tag (`'sha256-…'`), each after a space.
fn digests(page: &str, tag: &str) -> String {
    let (open, close) = (format!("<{tag}"), format!("</{tag}>"));
    let mut rest = page;
    let mut digests = String::new();
    while let Some((_, after)) = rest.split_once(&open) {
        let Some((attributes, body)) = after.split_once('>') else { break };
        let Some((inline, after)) = body.split_once(&close) else { break };
        if !attributes.contains("src=") && !inline.is_empty() {
            digests.push_str(" 'sha256-");
            STANDARD.encode_string(Sha256::digest(inline), &mut digests);
            digests.push('\'');
        }
        rest = after;
    }
    digests
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn cache_control(path: &str) -> String {
        let file = || async { ([(header::CACHE_CONTROL, "no-cache")], "content") };
        let console = Router::new()
            .route("/frontend-c134b3cf9488f458_bg.wasm", axum::routing::get(file))
            .route("/frontend.js", axum::routing::get(file))
            .route(PAGE, axum::routing::get(file));
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = serve(console, request).await.unwrap();
        response.headers().get(header::CACHE_CONTROL).unwrap().to_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn only_files_whose_names_change_with_their_content_are_kept_for_ever() {
        assert_eq!(cache_control("/frontend-c134b3cf9488f458_bg.wasm").await, "public, max-age=31536000, immutable");
        assert_eq!(cache_control("/frontend.js").await, "no-cache");
        assert_eq!(cache_control("/index.html").await, "no-cache");
        assert_eq!(cache_control("/runs/01a203c6-7302-7001-9ea2-d474c4316ec3").await, "no-cache");
        assert!(
            "/program-c134b3cf9488f458/frontend.js".split('/').any(is_hashed),
            "a folder is named by what is in it"
        );
        assert!(!is_hashed("deadbeefdeadbeef.js"), "a name that is only a hash is somebody's own");
    }

    #[test]
    fn the_policy_names_the_inline_scripts_of_the_page() {
        let page = "<head><script type=\"module\">alert(1)</script><script src=\"/a.js\"></script></head>";
        let policy = policy(page);
        // printf 'alert(1)' | openssl dgst -sha256 -binary | base64
        assert!(
            policy.contains("'wasm-unsafe-eval' 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI=';"),
            "{policy}"
        );
        assert!(!policy.contains("script-src 'self' 'unsafe-inline'"));
    }
}
