//! What the console knows, as pure folds of the server's messages, and what it makes of that. No Leptos, no browser:
//! tested natively.

pub mod action_words;
pub mod changes;
pub mod diffs;
pub mod drafts;
pub mod durations;
pub mod effects;
pub mod ending;
pub mod extent;
pub mod guardrail_notes;
pub mod inbox;
pub mod insights;
pub mod markdown;
pub mod notification_rules;
pub mod option_fields;
pub mod outbox;
pub mod reconnect;
pub mod record;
pub mod report;
pub mod runs;
pub mod sentences;
pub mod story;
pub mod streams;
pub mod subject;
pub mod verdict;
pub mod votes;
pub mod words;

pub use shared::invisible_characters;

#[cfg(test)]
mod fixtures;
