//! Describes the responses of handlers for OpenAPI by their types, as [`super::inputs`] describes what they take.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, NoContent, Response};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use super::problem::Result;

/// A function that returns the schema of a type, which may refer to the components of the document.
pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// A response of a handler. What its type does not say is declared with the route.
pub(super) trait OperationOutput {
    const STATUS: Option<u16> = None;
    /// The schema of the JSON in the body.
    const ANSWER: Option<SchemaOf> = None;
}

impl OperationOutput for Response {}

impl OperationOutput for NoContent {
    const STATUS: Option<u16> = Some(204);
}

impl<T: JsonSchema> OperationOutput for Json<T> {
    const ANSWER: Option<SchemaOf> = Some(SchemaGenerator::subschema_for::<T>);
}

impl<T: OperationOutput> OperationOutput for Result<T> {
    const STATUS: Option<u16> = T::STATUS;
    const ANSWER: Option<SchemaOf> = T::ANSWER;
}

/// The response with something that the request has created.
pub(super) struct Created<T>(pub T);

impl<T: JsonSchema> OperationOutput for Created<T> {
    const STATUS: Option<u16> = Some(201);
    const ANSWER: Option<SchemaOf> = Json::<T>::ANSWER;
}

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        (StatusCode::CREATED, Json(self.0)).into_response()
    }
}
