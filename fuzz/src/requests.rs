//! What clients send: bodies, queries, cursors, socket messages, and what Slack sends.

use backend::{fuzzing, json};
use serde_json::Value;
use shared::api::{Launch, NewComment, NewToken, NewUser, Reason, UserPatch};
use shared::decision::DecisionRequest;

use crate::text;

/// A JSON body is read by the strict rules, and then as each type of request. What is accepted is accepted again, as
/// the same, when it is written and read.
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

/// The query of a list.
pub fn query(data: &[u8]) {
    let Some(query) = text(data) else { return };
    fuzzing::query(query);
}

/// A cursor of the log or of a list.
pub fn cursor(data: &[u8]) {
    let Some(cursor) = text(data) else { return };
    fuzzing::cursor(cursor);
}

/// A frame of the live socket.
pub fn socket_message(data: &[u8]) {
    let Some(frame) = text(data) else { return };
    fuzzing::socket_message(frame);
}

/// The body of an interaction in Slack, whose signature was right.
pub fn slack_interaction(data: &[u8]) {
    fuzzing::slack_interaction(data);
}
