//! The routes together with their description: what is served is what `/api/openapi.json` lists.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, on};

use super::AppState;

/// What somebody who writes a client needs to know of one call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    /// In one line.
    pub summary: &'static str,
    /// Keys of the query.
    pub query: &'static [&'static str],
    /// The name of the body, and its content type.
    pub body: Option<(&'static str, &'static str)>,
    /// The status where all goes well.
    pub status: u16,
    /// The name of the answer; empty for none.
    pub answer: &'static str,
    /// Whether somebody must be logged in.
    pub authenticated: bool,
}

impl Operation {
    /// A call that answers `answer` with `200` to somebody who is logged in.
    pub fn new(summary: &'static str, answer: &'static str) -> Self {
        Self { summary, query: &[], body: None, status: 200, answer, authenticated: true }
    }

    /// The same, with a query.
    pub fn query(self, query: &'static [&'static str]) -> Self {
        Self { query, ..self }
    }

    /// The same, with a JSON body.
    pub fn body(self, name: &'static str) -> Self {
        Self { body: Some((name, "application/json")), ..self }
    }

    /// The same, with a flow file as its body.
    pub fn source(self) -> Self {
        Self { body: Some(("Flow", "application/yaml")), ..self }
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
#[derive(Debug, Clone, Copy)]
pub(super) struct Endpoint {
    /// In lower case.
    pub method: &'static str,
    /// With `{parameters}`.
    pub path: &'static str,
    /// What it does.
    pub operation: Operation,
}

/// Collects routes and their descriptions.
pub(super) struct Api {
    /// What is served.
    pub router: Router<AppState>,
    /// What it is.
    pub endpoints: Vec<Endpoint>,
}

impl Api {
    pub fn new() -> Self {
        Self { router: Router::new(), endpoints: Vec::new() }
    }

    /// Adds `GET path`.
    pub fn get<H: Handler<T, AppState>, T: 'static>(&mut self, path: &'static str, operation: Operation, handler: H) {
        self.add(MethodFilter::GET, "get", path, operation, handler);
    }

    /// Adds `POST path`.
    pub fn post<H: Handler<T, AppState>, T: 'static>(&mut self, path: &'static str, operation: Operation, handler: H) {
        self.add(MethodFilter::POST, "post", path, operation, handler);
    }

    /// Adds `PUT path`.
    pub fn put<H: Handler<T, AppState>, T: 'static>(&mut self, path: &'static str, operation: Operation, handler: H) {
        self.add(MethodFilter::PUT, "put", path, operation, handler);
    }

    /// Adds `PATCH path`.
    pub fn patch<H: Handler<T, AppState>, T: 'static>(&mut self, path: &'static str, operation: Operation, handler: H) {
        self.add(MethodFilter::PATCH, "patch", path, operation, handler);
    }

    /// Adds `DELETE path`.
    pub fn delete<H: Handler<T, AppState>, T: 'static>(
        &mut self,
        path: &'static str,
        operation: Operation,
        handler: H,
    ) {
        self.add(MethodFilter::DELETE, "delete", path, operation, handler);
    }

    fn add<H: Handler<T, AppState>, T: 'static>(
        &mut self,
        filter: MethodFilter,
        method: &'static str,
        path: &'static str,
        operation: Operation,
        handler: H,
    ) {
        self.router = std::mem::take(&mut self.router).route(path, on(filter, handler));
        self.endpoints.push(Endpoint { method, path, operation });
    }
}
