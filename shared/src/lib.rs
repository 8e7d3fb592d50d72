//! Everything that the browser and the server of Countersign share: the flow model, runs, reviews, decisions, the
//! messages of the API and of the live socket, and the one function that says who may do what.
//!
//! Imports none of the other crates, and nothing that cannot run in a browser.

pub mod access;
pub mod account;
pub mod api;
pub mod author;
pub mod client;
pub mod collaboration;
mod context;
pub mod decision;
pub mod definition;
pub mod deputy;
pub mod entry_numbers;
pub mod error;
pub mod feedback;
mod flow_error;
pub mod grant;
pub mod graph;
pub mod guardrail;
pub mod id;
pub mod inbox;
pub mod invisible_characters;
pub mod json_schema;
mod json_text;
pub mod log;
pub mod new_review;
pub mod notification;
pub mod person_filter;
pub mod protocol;
pub mod reassignment;
pub mod request;
pub mod review;
pub mod run;
pub mod saved_view;
pub mod seal;
pub mod search;
pub mod single_sign_on;
pub mod statistics;
pub mod time;
pub mod topic;
mod usage;
pub mod user_data;
pub mod voting;
mod words;

/// A JSON object whose keys keep the order in which they were written.
pub type JsonMap = serde_json::Map<String, serde_json::Value>;

/// Whether a member has its default value, so that it is omitted from JSON.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
