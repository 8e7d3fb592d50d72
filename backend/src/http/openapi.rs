//! `/api/openapi.json`: the description of every route, made from the list by which they are served.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::http::header;
use axum::response::{AppendHeaders, IntoResponse};
use serde_json::{Map, Value, json};

use super::AppState;
use super::api::{Api, Endpoint, Operation};

const PATH: &str = "/api/openapi.json";

/// Adds the description of what has been mounted so far, and of itself.
pub(super) fn mount(mut api: Api) -> Router<AppState> {
    let operation = Operation::new("This description", "OpenApi").open();
    api.endpoints.push(Endpoint { method: "get", path: PATH, operation });
    let text: Arc<str> = document(&api.endpoints).to_string().into();
    api.router.route(PATH, axum::routing::get(async move || answer(&text)))
}

fn answer(text: &str) -> impl IntoResponse + use<> {
    (AppendHeaders([(header::CONTENT_TYPE, "application/json")]), text.to_owned())
}

/// The OpenAPI 3.1 document.
fn document(endpoints: &[Endpoint]) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    let mut names = BTreeSet::from(["Problem"]);
    for endpoint in endpoints {
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        path[endpoint.method] = operation(endpoint);
        names.extend(endpoint.operation.body.map(|(name, _)| name));
        names.extend(Some(endpoint.operation.answer).filter(|name| !name.is_empty()));
    }
    let schemas: Map<String, Value> =
        names.into_iter().map(|name| (name.to_owned(), json!({ "title": name }))).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Countersign",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Runs agent flows that stop for people. Errors are RFC 9457 `application/problem+json`; \
                lists are `{items, next_cursor?}`; writes take an `Idempotency-Key`."
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "session": { "type": "apiKey", "in": "cookie", "name": crate::auth::SESSION_COOKIE },
                "token": { "type": "http", "scheme": "bearer" }
            }
        }
    })
}

fn operation(endpoint: &Endpoint) -> Value {
    let Operation { summary, query, body, status, answer, authenticated } = endpoint.operation;
    let mut parameters: Vec<Value> = path_parameters(endpoint.path)
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    parameters.extend(query.iter().map(|name| json!({ "name": name, "in": "query", "schema": { "type": "string" } })));
    let secret = matches!(body, Some(("LoginRequest" | "NewUser", _)));
    if endpoint.method != "get" && authenticated && !secret {
        let schema = json!({ "type": "string", "maxLength": 255 });
        parameters.push(json!({ "name": "Idempotency-Key", "in": "header", "schema": schema }));
    }
    let mut good = json!({ "description": summary });
    if !answer.is_empty() {
        good["content"] = json!({ content_type(answer): { "schema": reference(answer) } });
    }
    let problem = json!({
        "description": "What went wrong",
        "content": { "application/problem+json": { "schema": reference("Problem") } }
    });
    let mut operation = json!({
        "summary": summary,
        "parameters": parameters,
        "responses": { status.to_string(): good, "default": problem }
    });
    if let Some((name, content_type)) = body {
        let mut content = json!({ content_type: { "schema": reference(name) } });
        if content_type == "application/yaml" {
            content["application/json"] = json!({ "schema": reference(name) });
        }
        operation["requestBody"] = json!({ "content": content });
    }
    if authenticated {
        operation["security"] = json!([{ "session": [] }, { "token": [] }]);
    }
    operation
}

fn path_parameters(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
}

fn content_type(answer: &str) -> &'static str {
    match answer {
        "Text" => "text/plain",
        "File" => "text/csv",
        _ => "application/json",
    }
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}
