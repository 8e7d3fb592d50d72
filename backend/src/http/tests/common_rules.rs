//! Tests of what all paths have in common: bodies, origins, methods, headers, the console's page, the description.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::json;

use super::{Client, HttpOptions, PASSWORD, Site, http_options};
use crate::clock::SystemClock;
use crate::store::testing::Database;

const SESSION: &str = "/api/v1/session";
const ORIGIN: &str = "https://reviews.example.org";

#[tokio::test]
async fn what_is_not_there_is_a_problem_and_what_a_browser_visits_is_the_console() {
    let site = Site::new().await;
    let nobody = Client { site: &site, cookie: None };
    assert_eq!(nobody.get("/api/v1/nothing").await.code(404), "not_found");
    assert_eq!(nobody.get("/api").await.code(404), "not_found");
    assert_eq!(nobody.get("/missing-0123.js").await.code(404), "not_found");
    let wrong = nobody.delete("/api/v1/me").await;
    assert!(wrong.headers[header::ALLOW].to_str().unwrap().contains("GET"));
    assert_eq!(wrong.code(405), "method_not_allowed");
    for path in ["/", "/reviews/0198", "/people/ana.novak", "/index.html"] {
        let page = nobody.get(path).await;
        assert!(page.headers[header::CONTENT_TYPE].to_str().unwrap().starts_with("text/html"), "{path}");
        let policy = page.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.contains("frame-ancestors 'none'") && policy.contains("'wasm-unsafe-eval'"), "{policy}");
        assert_eq!(page.headers["x-content-type-options"], "nosniff");
        page.expect(200);
    }
}

#[tokio::test]
async fn who_is_not_logged_in_is_told_so() {
    let site = Site::new().await;
    let nobody = Client { site: &site, cookie: None };
    let answer = nobody.get("/api/v1/me").await;
    assert_eq!(answer.headers[header::WWW_AUTHENTICATE], "Bearer");
    assert_eq!(answer.headers[header::CACHE_CONTROL], "no-store");
    assert_eq!(answer.code(401), "unauthenticated");
    let forged = Client { site: &site, cookie: Some("countersign_session=cs_session_forged".to_owned()) };
    assert_eq!(forged.get("/api/v1/reviews").await.code(401), "unauthenticated");
}

#[tokio::test]
async fn a_body_that_breaks_a_rule_is_refused() {
    let site = Site::new().await;
    let nobody = Client { site: &site, cookie: None };
    let send = async |content_type: &'static str, body: String| {
        let request = nobody.request("POST", SESSION).header(header::CONTENT_TYPE, content_type);
        site.send(request.body(Body::from(body)).unwrap()).await
    };
    let json = "application/json";
    assert_eq!(send("text/plain", "{}".to_owned()).await.code(415), "unsupported_media_type");
    assert_eq!(send(json, " ".repeat(1024 * 1024 + 1)).await.code(413), "too_large");
    assert_eq!(send(json, "{".to_owned()).await.code(400), "bad_request");
    let twice = send(json, r#"{"username": "a", "username": "b", "password": "c"}"#.to_owned()).await.expect(422);
    assert_eq!((&twice["code"], &twice["errors"][0]["path"]), (&json!("invalid"), &json!("/username")));
    let nul = send(json, r#"{"username": "a\u0000", "password": "c"}"#.to_owned()).await.expect(422);
    assert_eq!(nul["errors"][0]["path"], "/username");
    let deep = format!("{}{}", r#"{"a":"#.repeat(65), "}".repeat(65));
    assert_eq!(send(json, deep).await.code(422), "invalid");
}

#[tokio::test]
async fn a_write_of_another_site_is_refused_before_anything_else() {
    let site = Site::new().await;
    let nobody = Client { site: &site, cookie: None };
    let login = json!({ "username": "admin", "password": PASSWORD });
    for (origin, status) in [("http://evil.example", 403), ("null", 403), ("http://127.0.0.1:8080", 200)] {
        let answer = nobody.post_with(SESSION, &login, &[("origin", origin)]).await;
        assert_eq!(answer.status, status, "{origin}: {}", answer.body);
        if status == 403 {
            assert_eq!(answer.code(403), "foreign_origin");
        }
    }
}

#[tokio::test]
async fn over_https_the_cookie_is_for_this_host_alone_and_the_older_one_goes() {
    let options = HttpOptions { public_origins: [ORIGIN.to_owned()].into(), ..http_options() };
    let site = Site::with(Database::sqlite().unwrap(), Arc::new(SystemClock), options).await;
    let nobody = Client { site: &site, cookie: None };
    let login = json!({ "username": "admin", "password": PASSWORD });
    let answer = nobody.post_with(SESSION, &login, &[("origin", ORIGIN)]).await;
    let cookies: Vec<_> = answer.headers.get_all(header::SET_COOKIE).iter().map(|c| c.to_str().unwrap()).collect();
    let [cookie, older, ..] = cookies[..] else { panic!("{cookies:?}") };
    assert!(cookie.starts_with("__Host-countersign_session=cs_session_") && cookie.contains("; Secure"), "{cookie}");
    assert!(older.starts_with("countersign_session=;") && older.contains("Max-Age=0"), "{older}");
    assert!(answer.headers.contains_key(header::STRICT_TRANSPORT_SECURITY));
    let both = format!("countersign_session=old; {}", cookie.split(';').next().unwrap());
    let me = Client { site: &site, cookie: Some(both) }.get("/api/v1/me").await.expect(200);
    assert_eq!(me["username"], "admin");
}

#[tokio::test]
async fn over_https_a_session_cookie_that_is_not_bound_to_this_host_is_ignored() {
    let options = HttpOptions { public_origins: [ORIGIN.to_owned()].into(), ..http_options() };
    let site = Site::with(Database::sqlite().unwrap(), Arc::new(SystemClock), options).await;
    let nobody = Client { site: &site, cookie: None };
    let login = json!({ "username": "admin", "password": PASSWORD });
    let first_cookie = |answer: &super::Received| {
        let cookie =
            answer.headers.get(header::SET_COOKIE).unwrap_or_else(|| panic!("{}: {}", answer.status, answer.body));
        cookie.to_str().unwrap().split(';').next().unwrap().to_owned()
    };
    let unbound = first_cookie(&nobody.post_with(SESSION, &login, &[]).await);
    assert!(unbound.starts_with("countersign_session="), "a login over http: {unbound}");
    let by_host = Request::post(SESSION).header(header::HOST, "reviews.example.org");
    let by_host = by_host.header(header::CONTENT_TYPE, "application/json").body(Body::from(login.to_string())).unwrap();
    let bound = site.send(by_host).await;
    assert!(first_cookie(&bound).starts_with("__Host-"), "a login of a program without an origin");
    let both = format!("{unbound}; {}", first_cookie(&bound));
    for (host, cookie, status) in [
        ("127.0.0.1:8080", &unbound, 200),
        ("reviews.example.org", &unbound, 401),
        ("Reviews.example.org:443", &unbound, 401),
        ("reviews.example.org", &both, 200),
    ] {
        let request = Request::get("/api/v1/me").header(header::HOST, host).header(header::COOKIE, cookie);
        let answer = site.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status, status, "{host}: {cookie}");
    }
}

#[tokio::test]
async fn the_metrics_of_a_server_with_a_public_address_are_for_nobody_without_a_login() {
    // A proxy on this machine that adds no header looks like a client on this machine.
    let options = HttpOptions { public_origins: [ORIGIN.to_owned()].into(), ..http_options() };
    let site = Site::with(Database::sqlite().unwrap(), Arc::new(SystemClock), options).await;
    let nobody = Client { site: &site, cookie: None };
    assert_eq!(nobody.get("/metrics").await.code(401), "unauthenticated");
    site.login("admin").await.get("/metrics").await.expect(200);
}

#[tokio::test]
async fn the_description_lists_every_call_of_the_contract() {
    let site = Site::new().await;
    let nobody = Client { site: &site, cookie: None };
    let document = nobody.get("/api/openapi.json").await.expect(200);
    assert_eq!(document["openapi"], "3.1.0");
    for (path, methods) in [
        ("/api/v1/session", "post delete"),
        ("/api/v1/me", "get"),
        ("/api/v1/users", "get post"),
        ("/api/v1/users/{username}", "patch"),
        ("/api/v1/me/confirm", "post"),
        ("/api/v1/tokens", "get post"),
        ("/api/v1/tokens/{id}", "delete"),
        ("/api/v1/flows", "get"),
        ("/api/v1/flows/{id}", "get put"),
        ("/api/v1/flows/validate", "post"),
        ("/api/v1/runs", "get post"),
        ("/api/v1/runs/{id}", "get"),
        ("/api/v1/runs/{id}/report", "get"),
        ("/api/v1/runs/{id}/reviews", "get"),
        ("/api/v1/runs/{id}/cancel", "post"),
        ("/api/v1/log", "get"),
        ("/api/v1/live", "get"),
        ("/api/v1/reviews", "get"),
        ("/api/v1/reviews/{id}", "get"),
        ("/api/v1/reviews/{id}/decisions", "post"),
        ("/api/v1/reviews/{id}/claim", "post"),
        ("/api/v1/reviews/{id}/release", "post"),
        ("/api/v1/reviews/{id}/comments", "post"),
        ("/api/v1/reviews/{id}/reassign", "post"),
        ("/api/v1/reviews/{id}/withdraw", "post"),
        ("/api/v1/audit", "get"),
        ("/api/v1/audit/export", "get"),
        ("/healthz", "get"),
        ("/readyz", "get"),
        ("/metrics", "get"),
        ("/api/openapi.json", "get"),
    ] {
        for method in methods.split(' ') {
            assert!(document["paths"][path][method].is_object(), "{method} {path}");
        }
    }
    nobody.get("/healthz").await.expect(200);
    nobody.get("/readyz").await.expect(200);
    nobody.get("/metrics").await.expect(200);
}

#[tokio::test]
async fn only_those_who_may_save_a_flow_may_have_one_checked() {
    let site = Site::new().await;
    let deep = format!("id: a\nnodes: {{ n: {{ set: {{ x: '{{{{ {}1 }}}}' }} }} }}\n", "1+".repeat(30_000));
    for (role, status) in [("reviewer", 403), ("developer", 200)] {
        let who = site.join(role, &[role]).await;
        let request = who.request("POST", "/api/v1/flows/validate").header("content-type", "application/yaml");
        let answer = site.send(request.body(Body::from(deep.clone())).unwrap()).await.expect(status);
        assert!(status == 403 || answer["valid"] == false, "{answer}");
    }
}
