//! Mounts routes together with their descriptions, so that `/api/openapi.json` lists exactly what is served. The inputs
//! of a call follow from the signature of its handler ([`super::inputs`]). Its response is declared with the route, and
//! the tests check every response against the declaration.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, on};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::AppState;
use super::inputs::{Inputs, OperationInputs};

/// A function that returns the schema of a type, which may refer to the components of the document.
pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The documentation of a call for authors of clients, in addition to the inputs of its handler.
#[derive(Clone, Copy)]
pub(super) struct OperationDoc {
    /// The summary, in one line.
    pub summary: &'static str,
    /// The keys of the query, if the handler reads the query itself.
    pub query: &'static [&'static str],
    /// The keys of the handler's query that this call does not support.
    pub without: &'static [&'static str],
    /// The body and its content type, if the handler reads the body itself.
    pub body: Option<(SchemaOf, &'static str)>,
    /// The HTTP status of success.
    pub status: u16,
    /// The response and its content type, if any.
    pub answer: Option<(SchemaOf, &'static str)>,
    /// Whether the caller must be logged in.
    pub authenticated: bool,
}

impl OperationDoc {
    /// Creates the documentation of a call that requires a login, and that responds with `200` and no body.
    pub fn new(summary: &'static str) -> Self {
        Self { summary, query: &[], without: &[], body: None, status: 200, answer: None, authenticated: true }
    }

    /// Sets a JSON response of type `T`.
    pub fn answer<T: JsonSchema>(self) -> Self {
        Self { answer: Some((SchemaGenerator::subschema_for::<T>, "application/json")), ..self }
    }

    /// Sets a text or a file as the response.
    pub fn file(self, content_type: &'static str) -> Self {
        Self { answer: Some((SchemaGenerator::subschema_for::<String>, content_type)), ..self }
    }

    /// Sets the keys of the query, for a handler that reads the query itself.
    pub fn query(self, query: &'static [&'static str]) -> Self {
        Self { query, ..self }
    }

    /// Sets the keys of the handler's query that this call does not support.
    pub fn without(self, without: &'static [&'static str]) -> Self {
        Self { without, ..self }
    }

    /// Sets the body, for a handler that reads the body itself.
    pub fn body<T: JsonSchema>(self, content_type: &'static str) -> Self {
        Self { body: Some((SchemaGenerator::subschema_for::<T>, content_type)), ..self }
    }

    /// Sets the HTTP status of success.
    pub fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Marks the call as open to callers who are not logged in.
    pub fn open(self) -> Self {
        Self { authenticated: false, ..self }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Endpoint {
    /// The method in lower case.
    pub method: &'static str,
    /// The path from the root, with parameters in braces: `/api/v1/runs/{id}`.
    pub path: &'static str,
    /// The documentation of the call.
    pub operation: OperationDoc,
    /// Adds the inputs of the handler to those of the description.
    pub describe: fn(&mut Inputs<'_>),
}

/// Collects routes and their descriptions.
pub(super) struct Api {
    /// The routes that are served.
    pub router: Router<AppState>,
    /// The descriptions of the routes.
    pub endpoints: Vec<Endpoint>,
}

macro_rules! methods {
    ($($name:ident = $filter:ident),+) => {$(
        #[doc = concat!("Adds a path that is called by ", stringify!($filter), ".")]
        pub fn $name<H, T>(&mut self, path: &'static str, operation: OperationDoc, handler: H)
        where
            H: Handler<T, AppState>,
            T: OperationInputs + 'static,
        {
            self.router = std::mem::take(&mut self.router).route(path, on(MethodFilter::$filter, handler));
            self.endpoints.push(Endpoint { method: stringify!($name), path, operation, describe: T::describe });
        }
    )+};
}

impl Api {
    pub fn new() -> Self {
        Self { router: Router::new(), endpoints: Vec::new() }
    }

    methods! { get = GET, post = POST, put = PUT, patch = PATCH, delete = DELETE }
}
