//! `/api/openapi.json`: the description of every route, made from the list by which they are served.

use std::sync::Arc;

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use serde_json::{Map, Value, json};

use super::AppState;
use super::api::{Api, Endpoint, Operation};
use super::schemas::Schemas;

const PATH: &str = "/api/openapi.json";
const LIVE: &str = "/api/v1/live";

/// Adds the description of what has been mounted so far, and of itself.
pub(super) fn mount(mut api: Api) -> Router<AppState> {
    let text: Arc<str> = described(&mut api).to_string().into();
    api.router.route(PATH, axum::routing::get(async move || answer(&text)))
}

/// The description of the whole API.
#[cfg(test)]
pub(super) fn whole() -> Value {
    described(&mut super::api())
}

fn described(api: &mut Api) -> Value {
    let own = Operation::new("Get this API description", "OpenApi").open();
    api.endpoints.push(Endpoint { method: "get", path: PATH, operation: own });
    // Served beside this router, by `crate::live`.
    let live = Operation::new("A WebSocket, subprotocol countersign.v1: JSON text frames", "").status(101);
    api.endpoints.push(Endpoint { method: "get", path: LIVE, operation: live });
    document(&api.endpoints)
}

fn answer(text: &str) -> impl IntoResponse + use<> {
    ([(header::CONTENT_TYPE, "application/json")], text.to_owned())
}

/// The OpenAPI 3.1 document.
fn document(endpoints: &[Endpoint]) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    let mut schemas = Schemas::new();
    for endpoint in endpoints {
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        path[endpoint.method] = operation(endpoint, &mut schemas);
    }
    // The two sides of the socket: nothing in OpenAPI can refer to them.
    for name in ["ClientMessage", "ServerMessage"] {
        schemas.of(name);
    }
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
            "schemas": schemas.components(),
            "securitySchemes": {
                "session": { "type": "apiKey", "in": "cookie", "name": crate::auth::SESSION_COOKIE },
                "token": { "type": "http", "scheme": "bearer" }
            }
        }
    })
}

fn operation(endpoint: &Endpoint, schemas: &mut Schemas) -> Value {
    // A name without a schema is anything; a test sees to it that there is none.
    let mut schema = |name: &str| schemas.of(name).unwrap_or_else(|| json!({}));
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
        good["content"] = json!({ content_type(answer): { "schema": schema(answer) } });
    }
    let problem = json!({
        "description": "What went wrong",
        "content": { "application/problem+json": { "schema": schema("Problem") } }
    });
    let mut operation = json!({
        "summary": summary,
        "parameters": parameters,
        "responses": { status.to_string(): good, "default": problem }
    });
    if let Some((name, content_type)) = body {
        let mut content = json!({ content_type: { "schema": schema(name) } });
        if content_type == "application/yaml" {
            content["application/json"] = json!({ "schema": schema(name) });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http;

    fn references<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
        match value {
            Value::Object(object) => {
                found.extend(object.get("$ref").and_then(Value::as_str));
                object.values().for_each(|value| references(value, found));
            }
            Value::Array(list) => list.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_name_has_its_fields_and_every_reference_leads_somewhere() {
        let api = http::api();
        let mut schemas = Schemas::new();
        for Endpoint { operation, path, .. } in &api.endpoints {
            let names = operation.body.map(|(name, _)| name).into_iter().chain(Some(operation.answer));
            for name in names.filter(|name| !name.is_empty()) {
                assert!(schemas.of(name).is_some(), "{path}: nothing is called {name}");
            }
        }
        let document = whole();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 100, "{}", found.len());
        for reference in found {
            let place = reference.strip_prefix('#').expect(reference);
            assert!(document.pointer(place).is_some(), "{reference}");
        }
        for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
            assert!(!name.ends_with(|c: char| c.is_ascii_digit()), "two types are called {name}");
            let whole = json!({ "allOf": [schema], "components": document["components"] });
            assert!(jsonschema::meta::is_valid(&whole), "{name}: {schema:#}");
        }
        let review = &document["components"]["schemas"]["Review"]["properties"];
        assert!(review["severity"].is_object() && review["items"]["items"]["$ref"].is_string(), "{review:#}");
    }
}
