//! The state of the console, as pure folds of the server's messages, and its texts. It needs neither Leptos nor a
//! browser, so it is tested natively.

pub mod account_words;
pub mod action_words;
pub mod browser_notifications;
pub mod call_effects;
pub mod calls;
pub mod changes;
pub mod days;
pub mod decided;
pub mod diffs;
pub mod distinction;
pub mod drafts;
pub mod durations;
pub mod earlier;
pub mod effects;
pub mod ending;
pub mod extent;
pub mod filter;
pub mod guardrail_notes;
pub mod hidden;
pub mod inbox;
pub mod insights;
pub mod markdown;
pub mod notification_rules;
pub mod option_fields;
pub mod outbox;
pub mod outcomes;
pub mod palette;
pub mod reassignment;
pub mod reconnect;
pub mod record;
pub mod report;
pub mod run_filter;
pub mod runs;
pub mod saved_views;
pub mod schema;
pub mod selection;
pub mod selection_note;
pub mod sent;
pub mod sentences;
pub mod shortcuts;
pub mod standing;
pub mod story;
pub mod streams;
pub mod unparsed;
pub mod verdict;
pub mod votes;
pub mod words;

pub use shared::invisible_characters;

#[cfg(test)]
mod fixtures;
