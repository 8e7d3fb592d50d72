//! `/api/openapi.json`: the description of every route, made from the routes that are served.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::http::header;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use shared::JsonMap;
use shared::error::Problem;
use shared::protocol::{ClientMessage, ServerMessage};

use super::AppState;
use super::api::{Api, Endpoint, OperationDoc};
use super::inputs::Inputs;
use super::mcp;

const PATH: &str = "/api/openapi.json";
const LIVE: &str = "/api/v1/live";

/// Returns the routes of `api`, and a route for their description, which includes that route itself. The description is
/// made when it is first asked for: most servers are never asked.
pub(super) fn mount(Api { router, endpoints }: Api) -> Router<AppState> {
    let text = Arc::new(LazyLock::new(move || described(endpoints).to_string()));
    let answer = async move || ([(header::CONTENT_TYPE, "application/json")], (**text).clone());
    router.route(PATH, axum::routing::get(answer))
}

#[cfg(test)]
pub(super) fn whole() -> Value {
    described(super::api().endpoints)
}

fn described(mut endpoints: Vec<Endpoint>) -> Value {
    let describe = |_: &mut Inputs<'_>| {};
    let own = OperationDoc::new("Get this API description").answer::<JsonMap>().open();
    endpoints.push(Endpoint { method: "get", path: PATH, operation: own, describe });
    // `crate::live` serves this route outside of this router.
    let live = OperationDoc::new("Open the live socket: a WebSocket with the subprotocol countersign.v1, and JSON text frames of ClientMessage and ServerMessage").status(101);
    endpoints.push(Endpoint { method: "get", path: LIVE, operation: live, describe });
    // The endpoint of agents calls the other routes, and is therefore mounted beside them.
    let mcp = Endpoint { method: "post", path: mcp::PATH, operation: mcp::documentation(), describe };
    endpoints.push(mcp);
    document(&endpoints)
}

fn document(endpoints: &[Endpoint]) -> Value {
    // OpenAPI 3.1 uses JSON Schema 2020-12 with another place for definitions. A type that is both a body and a
    // response has one schema, so members that a body may omit are not required.
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut schemas = settings.into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for endpoint in endpoints {
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        path[endpoint.method] = operation(endpoint, &mut schemas);
    }
    // The messages of the live socket: no operation refers to them.
    schemas.subschema_for::<ClientMessage>();
    schemas.subschema_for::<ServerMessage>();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Countersign",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Runs agent flows that stop for human approval. Errors are RFC 9457 \
                `application/problem+json`; lists are `{items, next_cursor?}`, and a page may end before its `limit`: \
                `next_cursor` says whether another follows; a write that lists the header `Idempotency-Key` is carried \
                out once for each key."
        },
        "paths": paths,
        "components": {
            "schemas": schemas.take_definitions(true),
            "securitySchemes": {
                "session": { "type": "apiKey", "in": "cookie", "name": crate::auth::SESSION_COOKIE },
                "token": { "type": "http", "scheme": "bearer" }
            }
        }
    })
}

fn operation(endpoint: &Endpoint, schemas: &mut SchemaGenerator) -> Value {
    let OperationDoc { summary, query, without, body, status, answer, authenticated } = endpoint.operation;
    let mut inputs = Inputs { schemas, parameters: Vec::new(), body: Map::new() };
    (endpoint.describe)(&mut inputs);
    let Inputs { schemas, parameters: given, body: mut content } = inputs;
    let mut parameters: Vec<Value> = path_parameters(endpoint.path)
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    parameters.extend(given.into_iter().filter(|given| !without.iter().any(|name| given["name"] == *name)));
    parameters.extend(query.iter().map(|name| json!({ "name": name, "in": "query", "schema": { "type": "string" } })));
    if let Some((schema_of, content_type)) = body {
        content.insert(content_type.to_owned(), json!({ "schema": schema_of(schemas) }));
    }
    let mut good = json!({ "description": summary });
    if let Some((schema_of, content_type)) = answer {
        good["content"] = json!({ content_type: { "schema": schema_of(schemas) } });
    }
    let problem = json!({
        "description": "What went wrong",
        "content": { "application/problem+json": { "schema": schemas.subschema_for::<Problem>() } }
    });
    let mut operation = json!({
        "summary": summary,
        "parameters": parameters,
        "responses": { status.to_string(): good, "default": problem }
    });
    if !content.is_empty() {
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn every_reference_leads_to_a_schema_and_each_call_tells_what_its_handler_takes() {
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
        let call = |path: &str, method: &str| document["paths"][path][method].clone();
        let named = |call: &Value| -> Vec<String> {
            let names = call["parameters"].as_array().into_iter().flatten();
            names.map(|parameter| parameter["name"].as_str().unwrap().to_owned()).collect()
        };
        let launch = call("/api/v1/runs", "post");
        assert_eq!(named(&launch), ["Idempotency-Key"]);
        let body = &launch["requestBody"]["content"]["application/json"]["schema"]["$ref"];
        assert_eq!(body, "#/components/schemas/Launch");
        let found_by = ["status", "ending", "flow", "q", "requested_by", "started_after", "started_before"];
        assert_eq!(named(&call("/api/v1/runs", "get")), [&found_by[..], &["limit", "cursor"]].concat());
        let callback = &call("/api/v1/callbacks/{secret}", "post")["requestBody"]["content"]["application/json"];
        assert_eq!(callback["schema"]["$ref"], "#/components/schemas/ProgramAnswer", "the handler reads it by itself");
        assert!(named(&call("/api/v1/session", "post")).is_empty(), "what has a secret is not kept for a retry");
        assert!(!named(&call("/api/v1/reviews/facets", "get")).contains(&"cursor".to_owned()));
        assert!(review["severity"].is_object() && review["items"]["items"]["$ref"].is_string(), "{review:#}");
    }
}
