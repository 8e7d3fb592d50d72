//! The routes together with their description: what is served is what `/api/openapi.json` lists. What a call takes
//! follows from the signature of its handler ([`super::inputs`]); what it answers is named beside it, and every answer in
//! the tests is held against that.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, on};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::AppState;
use super::inputs::{Inputs, OperationInputs};

/// The schema of a type; what types have in common stands among the components once.
pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// What somebody who writes a client needs to know of one call, beside what its handler takes.
#[derive(Clone, Copy)]
pub(super) struct OperationDoc {
    /// In one line.
    pub summary: &'static str,
    /// Keys of the query, where the handler reads it by itself.
    pub query: &'static [&'static str],
    /// Keys of the handler's query that this call does not take.
    pub without: &'static [&'static str],
    /// The body and its content type, where the handler reads it by itself.
    pub body: Option<(SchemaOf, &'static str)>,
    /// The status where all goes well.
    pub status: u16,
    /// The answer, and its content type; none: nothing.
    pub answer: Option<(SchemaOf, &'static str)>,
    /// Whether somebody must be logged in.
    pub authenticated: bool,
}

impl OperationDoc {
    /// A call that answers nothing, with `200`, to somebody who is logged in.
    pub fn new(summary: &'static str) -> Self {
        Self { summary, query: &[], without: &[], body: None, status: 200, answer: None, authenticated: true }
    }

    /// The same, with an answer in JSON.
    pub fn answer<T: JsonSchema>(self) -> Self {
        Self { answer: Some((SchemaGenerator::subschema_for::<T>, "application/json")), ..self }
    }

    /// The same, with a text or a file as the answer.
    pub fn file(self, content_type: &'static str) -> Self {
        Self { answer: Some((SchemaGenerator::subschema_for::<String>, content_type)), ..self }
    }

    /// The same, with these keys in the query.
    pub fn query(self, query: &'static [&'static str]) -> Self {
        Self { query, ..self }
    }

    /// The same, without these keys in the query.
    pub fn without(self, without: &'static [&'static str]) -> Self {
        Self { without, ..self }
    }

    /// The same, with this body.
    pub fn body<T: JsonSchema>(self, content_type: &'static str) -> Self {
        Self { body: Some((SchemaGenerator::subschema_for::<T>, content_type)), ..self }
    }

    /// The same, with another status.
    pub fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// The same, for everybody.
    pub fn open(self) -> Self {
        Self { authenticated: false, ..self }
    }
}

/// One described route.
#[derive(Clone, Copy)]
pub(super) struct Endpoint {
    /// In lower case.
    pub method: &'static str,
    /// The path from the root, with parameters in braces: `/api/v1/runs/{id}`.
    pub path: &'static str,
    /// What it does.
    pub operation: OperationDoc,
    /// Describes what its handler takes.
    pub describe: fn(&mut Inputs<'_>),
}

/// Collects routes and their descriptions.
pub(super) struct Api {
    /// What is served.
    pub router: Router<AppState>,
    /// What it is.
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
