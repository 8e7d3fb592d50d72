//! The pane in which a review is read and decided. `pane.rs` puts it together; each part has its own file.

mod action;
mod bar;
mod changed;
mod guardrails;
mod head;
mod item;
mod keys;
mod more;
mod pane;
mod progress;
mod request;
mod side;
mod value;

pub use pane::ReviewPane;
