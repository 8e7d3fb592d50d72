//! Mounts routes together with their descriptions, so that `/api/openapi.json` lists exactly what is served. The inputs
//! and the response of a call follow from the signature of its handler ([`super::inputs`], [`super::outputs`]). What the
//! signature does not say is declared with the route, and the tests check every response against the description.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, on};
use schemars::{JsonSchema, SchemaGenerator};

use super::AppState;
use super::inputs::{Inputs, OperationInput};
use super::outputs::{OperationOutput, SchemaOf};

/// The documentation of a call for authors of clients, in addition to what the signature of its handler says.
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

impl From<&'static str> for OperationDoc {
    fn from(summary: &'static str) -> Self {
        Self::new(summary)
    }
}

impl OperationDoc {
    /// Creates the documentation of a call that requires a login, and that responds with `200` and no body.
    pub fn new(summary: &'static str) -> Self {
        Self { summary, query: &[], without: &[], body: None, status: 200, answer: None, authenticated: true }
    }

    pub fn answer<T: JsonSchema>(self) -> Self {
        Self { answer: Some((SchemaGenerator::subschema_for::<T>, "application/json")), ..self }
    }

    /// Sets a text or a file as the response.
    pub fn file(self, content_type: &'static str) -> Self {
        Self { answer: Some((SchemaGenerator::subschema_for::<String>, content_type)), ..self }
    }

    pub fn query(self, query: &'static [&'static str]) -> Self {
        Self { query, ..self }
    }

    pub fn without(self, without: &'static [&'static str]) -> Self {
        Self { without, ..self }
    }

    pub fn body<T: JsonSchema>(self, content_type: &'static str) -> Self {
        Self { body: Some((SchemaGenerator::subschema_for::<T>, content_type)), ..self }
    }

    pub fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    pub fn open(self) -> Self {
        Self { authenticated: false, ..self }
    }

    /// Adds what the type of a response says of it, unless the response is declared.
    fn returning<O: OperationOutput>(self) -> Self {
        let answer = self.answer.or(O::ANSWER.map(|schema_of| (schema_of, "application/json")));
        Self { status: O::STATUS.unwrap_or(self.status), answer, ..self }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Endpoint {
    /// The method in lower case.
    pub method: &'static str,
    /// The path from the root, with parameters in braces: `/api/v1/runs/{id}`.
    pub path: &'static str,
    pub operation: OperationDoc,
    /// Adds the inputs of the handler to those of the description.
    pub describe: fn(&mut Inputs<'_>),
}

/// A handler whose arguments have the types in `T`, and which is described by its signature.
pub(super) trait DescribedHandler<T> {
    type Output: OperationOutput;

    /// Adds what the handler reads from the request to `inputs`.
    fn describe(inputs: &mut Inputs<'_>);
}

macro_rules! handlers {
    ($(($($name:ident)*))+) => {$(
        impl<Function, Answer, Via, $($name),*> DescribedHandler<(Via, $($name,)*)> for Function
        where
            Function: FnOnce($($name),*) -> Answer,
            Answer: Future,
            Answer::Output: OperationOutput,
            $($name: OperationInput,)*
        {
            type Output = Answer::Output;
            fn describe(inputs: &mut Inputs<'_>) {
                let arguments: &[fn(&mut Inputs<'_>)] = &[$($name::describe),*];
                for describe in arguments {
                    describe(inputs);
                }
            }
        }
    )+};
}

handlers! { () (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) }

/// Collects routes and their descriptions.
pub(super) struct Api {
    pub router: Router<AppState>,
    pub endpoints: Vec<Endpoint>,
}

macro_rules! methods {
    ($($name:ident = $filter:ident),+) => {$(
        #[doc = concat!("Adds a path that is called by ", stringify!($filter), ".")]
        pub fn $name<H, T, O>(&mut self, path: &'static str, operation: impl Into<OperationDoc>, handler: H)
        where
            H: Handler<T, AppState> + DescribedHandler<T, Output = O>,
            T: 'static,
            O: OperationOutput,
        {
            let operation: OperationDoc = operation.into();
            let (operation, describe) = (operation.returning::<O>(), <H as DescribedHandler<T>>::describe);
            self.router = std::mem::take(&mut self.router).route(path, on(MethodFilter::$filter, handler));
            self.endpoints.push(Endpoint { method: stringify!($name), path, operation, describe });
        }
    )+};
}

impl Api {
    pub fn new() -> Self {
        Self { router: Router::new(), endpoints: Vec::new() }
    }

    methods! { get = GET, post = POST, put = PUT, patch = PATCH, delete = DELETE }
}
