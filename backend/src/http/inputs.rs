//! Describes the inputs of handlers for OpenAPI: each extractor describes its own part. The crate `aide` does the same,
//! but its releases still need an older schemars.

use axum::body::Body;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, Method};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use shared::definition::Flow;

use super::AppState;
use super::body::{FlowSource, Id, Json, OptionalJson, Params};
use super::caller::{Caller, InSession, Known, Write};
use super::idempotency::RequestKey;
use crate::client_address::ClientAddress;

/// The inputs of a call, as they are collected from its extractors.
pub(super) struct Inputs<'g> {
    pub schemas: &'g mut SchemaGenerator,
    /// The query and header parameters, as OpenAPI parameter objects.
    pub parameters: Vec<Value>,
    /// The OpenAPI media type objects of the body, by content type; empty if the call takes no body.
    pub body: Map<String, Value>,
}

impl Inputs<'_> {
    fn body<T: JsonSchema>(&mut self, content_type: &str) {
        let schema = self.schemas.subschema_for::<T>();
        self.body.insert(content_type.to_owned(), json!({ "schema": schema }));
    }
}

/// An extractor: the type of one argument of a handler.
pub(super) trait OperationInput {
    /// Adds what the extractor reads from the request to `inputs`; by default nothing.
    fn describe(_inputs: &mut Inputs<'_>) {}
}

impl OperationInput for State<AppState> {}
impl OperationInput for Caller {}
impl OperationInput for Known {}
impl OperationInput for InSession {}
impl OperationInput for ClientAddress {}
impl OperationInput for HeaderMap {}
impl OperationInput for Method {}
impl OperationInput for RawQuery {}
impl OperationInput for Body {}
impl OperationInput for Request {}
// Path parameters are described from the path of the route.
impl<T> OperationInput for Path<T> {}
impl<T> OperationInput for Id<T> {}

impl<T: OperationInput> OperationInput for Option<T> {
    fn describe(inputs: &mut Inputs<'_>) {
        T::describe(inputs);
    }
}

impl OperationInput for RequestKey {
    fn describe(inputs: &mut Inputs<'_>) {
        let schema = json!({ "type": "string", "maxLength": 255 });
        inputs.parameters.push(json!({ "name": "Idempotency-Key", "in": "header", "schema": schema }));
    }
}

impl OperationInput for Write {
    fn describe(inputs: &mut Inputs<'_>) {
        RequestKey::describe(inputs);
    }
}

impl<T: JsonSchema> OperationInput for Params<T> {
    fn describe(inputs: &mut Inputs<'_>) {
        let schema = T::json_schema(inputs.schemas);
        let keys = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        inputs.parameters.extend(keys.map(|(name, schema)| json!({ "name": name, "in": "query", "schema": schema })));
    }
}

impl<T: JsonSchema> OperationInput for Json<T> {
    fn describe(inputs: &mut Inputs<'_>) {
        inputs.body::<T>("application/json");
    }
}

impl<T: JsonSchema> OperationInput for OptionalJson<T> {
    fn describe(inputs: &mut Inputs<'_>) {
        inputs.body::<T>("application/json");
    }
}

impl OperationInput for FlowSource {
    fn describe(inputs: &mut Inputs<'_>) {
        inputs.body::<Flow>("application/yaml");
        inputs.body::<Flow>("application/json");
    }
}
