//! Checks every response in every test against `/api/openapi.json`.

use std::sync::LazyLock;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use jsonschema::{Registry, Validator};
use serde_json::{Value, json};

use super::{Client, Site};
use crate::http::openapi;

const URI: &str = "urn:api";

static DOCUMENT: LazyLock<Value> = LazyLock::new(openapi::whole);
static REGISTRY: LazyLock<Registry<'static>> =
    LazyLock::new(|| Registry::new().add(URI, &*DOCUMENT).unwrap().prepare().unwrap());

/// Panics if a response of the API is not described, or differs from its description.
pub fn check(method: &str, path: &str, status: StatusCode, headers: &HeaderMap, body: &Value) {
    // The framework answers HEAD wherever GET is described, without a body.
    if method == "head" {
        return;
    }
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let described = paths.iter().filter(|(template, item)| is_at(template, path) && item[method].is_object());
    // A path without parameters comes before one with them.
    let Some((template, item)) = described.min_by_key(|(template, _)| template.contains('{')) else {
        let refused = status.is_client_error() || !path.starts_with("/api/");
        assert!(refused, "{method} {path} is served, but not described");
        return;
    };
    let responses = &item[method]["responses"];
    let response = if responses[status.as_str()].is_object() { status.as_str() } else { "default" };
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !content_type.contains("json") || content_type.contains("ndjson") {
        return;
    }
    let schema = ["paths", template, method, "responses", response, "content", content_type, "schema"]
        .map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1")))
        .concat();
    let described = DOCUMENT.pointer(&schema).is_some_and(Value::is_object);
    assert!(described, "{method} {path} answers {status} as {content_type}, which is not described");
    let mistakes: Vec<_> = validator(&schema).iter_errors(body).map(|error| error.to_string()).collect();
    assert!(mistakes.is_empty(), "{method} {path}: {mistakes:#?} in {body:#}");
}

/// Returns a validator for the schema at a JSON pointer into the document.
fn validator(pointer: &str) -> Validator {
    let schema = json!({ "$ref": format!("{URI}#{}", pointer.replace('{', "%7B").replace('}', "%7D")) });
    jsonschema::options().with_registry(&REGISTRY).should_validate_formats(true).build(&schema).unwrap()
}

fn is_at(template: &str, path: &str) -> bool {
    let (mut wanted, mut given) = (template.split('/'), path.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some(wanted), Some(given)) if wanted == given || wanted.starts_with('{') => {}
            _ => return false,
        }
    }
}

#[tokio::test]
async fn what_is_described_is_served() {
    let site = Site::new().await;
    let nobody = Client { site: &site, cookie: None };
    for (template, item) in DOCUMENT["paths"].as_object().unwrap() {
        // The live socket is served outside of this router, and callbacks answer `404` without a valid secret.
        let elsewhere = ["/api/v1/live", "/api/v1/callbacks/{secret}"];
        for method in item.as_object().unwrap().keys().filter(|_| !elsewhere.contains(&template.as_str())) {
            let path = template.replace("{id}", "01900000-0000-7000-8000-000000000001").replace("{username}", "ana");
            let request = nobody.request(&method.to_uppercase(), &path).body(Body::empty()).unwrap();
            let answer = site.send(request).await;
            assert!(![404, 405].contains(&answer.status.as_u16()), "{method} {path}: {answer:?}");
        }
    }
}

#[test]
fn what_a_client_says_fits_its_description_and_what_is_wrong_does_not() {
    let named = |name: &str| validator(&format!("/components/schemas/{name}"));
    let digest = "sha256:00";
    let decision = json!({ "revision": 1, "digest": digest, "verdict": { "type": "choose", "option": "yes" } });
    assert!(named("DecisionRequest").is_valid(&decision));
    assert!(!named("Run").is_valid(&json!({ "status": "running" })));
    for (place, wrong) in [("revision", json!("1")), ("verdict", json!({ "type": "shout" })), ("extra", json!(1))] {
        let mut decision = decision.clone();
        decision[place] = wrong;
        assert!(!named("DecisionRequest").is_valid(&decision), "{decision}");
    }
    let mut said = decision;
    said["type"] = json!("decide");
    said["ref"] = json!("1");
    said["review"] = json!("01900000-0000-7000-8000-000000000001");
    assert!(named("ClientMessage").is_valid(&said));
    assert!(named("ClientMessage").is_valid(&json!({ "type": "subscribe", "topics": ["reviews"] })));
    assert!(!named("ClientMessage").is_valid(&json!({ "type": "subscribe", "topics": "reviews" })));
}
