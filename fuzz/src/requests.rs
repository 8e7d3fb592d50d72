//! Targets for what clients send (bodies, queries, cursors, socket messages), and for what Slack sends.

use backend::{fuzzing, json};
use serde_json::Value;
use shared::api::{Launch, NewComment, NewToken, NewUser, Reason, UserPatch};
use shared::decision::DecisionRequest;

use crate::text;

/// Reads a JSON body by the strict rules, and then as each type of request. An accepted value must be accepted
/// unchanged after it was written.
pub fn json_body(data: &[u8]) {
    let Ok(value) = json::check(data) else { return };
    let written = serde_json::to_vec(&value).expect("a value can be written");
    assert_eq!(json::check(&written).ok(), Some(value.clone()), "an accepted value is accepted again");
    let _ = json::from_slice::<Launch>(data);
    let _ = json::from_slice::<DecisionRequest>(data);
    let _ = json::from_slice::<NewUser>(data);
    let _ = json::from_slice::<UserPatch>(data);
    let _ = json::from_slice::<NewToken>(data);
    let _ = json::from_slice::<NewComment>(data);
    let _ = json::from_slice::<Reason>(data);
    let _ = json::from_slice::<Value>(data);
}

/// Reads the query of a list.
pub fn query(data: &[u8]) {
    let Some(query) = text(data) else { return };
    fuzzing::query(query);
}

/// Reads a cursor of the log or of a list.
pub fn cursor(data: &[u8]) {
    let Some(cursor) = text(data) else { return };
    fuzzing::cursor(cursor);
}

/// Reads a text frame of the live socket.
pub fn socket_message(data: &[u8]) {
    let Some(frame) = text(data) else { return };
    fuzzing::socket_message(frame);
}

/// Reads a body from Slack, whose signature has already been checked, as an interaction and as an event.
pub fn slack_interaction(data: &[u8]) {
    fuzzing::slack_interaction(data);
}
