//! The pane in which a review is read and decided. `pane.rs` puts it together; each part has its own file.

mod action;
mod bar;
mod changed;
mod guardrails;
mod head;
mod item;
mod keys;
mod more;
mod note_field;
mod option_form;
mod pane;
mod progress;
mod request;
mod side;
mod standing;
mod took;
mod value;

pub use pane::ReviewPane;
