//! The entry points of the fuzz targets: readers of foreign input that are private to their modules. Not part of the
//! library's interface.

use axum::http::Request;
use rmcp::model::CallToolResult;
use serde_json::Value;
use shared::api::{AuditQuery, LogQuery, ReviewQuery, RunQuery};

use crate::flow::{Conditions, EvalError, Scope, check_value};
use crate::http::body::{fit_params, params};
use crate::store::DatabaseKind;
use crate::store::cursor::{ListPlace, Log, LogPlace};
use crate::{agent, engine, limits, live, notify, tool};

/// Compiles a condition and evaluates it.
pub fn condition(condition: &str, scope: &Scope) -> Result<bool, EvalError> {
    let mut conditions = Conditions::default();
    conditions.add(condition)?;
    Ok(conditions.answer(condition, scope)?.unwrap_or_default())
}

/// Reads a query as the query of each list. A query that does not form a URL never reaches a handler.
pub fn query(query: &str) {
    let Ok(request) = Request::get(format!("/?{query}")).body(()) else { return };
    let (parts, ()) = request.into_parts();
    let Ok(pairs) = params(&parts) else { return };
    let _ = fit_params::<ReviewQuery>(pairs.clone());
    let _ = fit_params::<RunQuery>(pairs.clone());
    let _ = fit_params::<LogQuery>(pairs.clone());
    let _ = fit_params::<AuditQuery>(pairs);
}

/// Reads a cursor of the log and a cursor of a list. Asserts that a cursor that can be read is written back to the same
/// position.
pub fn cursor(cursor: &str) {
    for database in [DatabaseKind::Sqlite, DatabaseKind::Postgres] {
        let log = Log { database, generation: "0a".to_owned() };
        if let Some(place) = LogPlace::of(cursor, &log) {
            assert_eq!(LogPlace::of(&place.cursor(&log).0, &log), Some(place));
        }
    }
    if let Ok(Some(place)) = ListPlace::of(Some(cursor)) {
        assert_eq!(ListPlace::of(Some(&place.encode())).ok(), Some(Some(place)));
    }
}

/// Reads a frame of the live socket.
pub fn socket_message(frame: &str) {
    let _ = live::request::read(frame);
}

/// Reads a body as an interaction and as an event of Slack.
pub fn slack_interaction(body: &[u8]) {
    let _ = (notify::Interaction::read(body), notify::SlackEvent::read(body));
}

/// Returns the values that a tool's answer can be read as: JSON, text, and the result of an MCP call.
pub fn tool_answers(body: &[u8]) -> Vec<Value> {
    let over_http = [true, false].map(|is_json| tool::http::value(body, is_json));
    let result = serde_json::from_slice::<CallToolResult>(body).ok();
    let answers = over_http.into_iter().flatten().chain(result.and_then(|result| tool::mcp::value(result).ok()));
    // The same check as in the worker.
    answers.filter(|answer| limits::check(answer).is_ok()).collect()
}

/// Returns the values that a model's answer can be read as: the arguments of a call, and output that must match a
/// schema.
pub fn model_answers(answer: &str, schema: &Value) -> Vec<Value> {
    let called = agent::answer::arguments(answer);
    let answers =
        [called].into_iter().chain(engine::model_call::parse(|value| check_value(schema, value, ""), answer).ok());
    answers.filter(|answer| limits::check(answer).is_ok()).collect()
}
