//! The pane in which a review is read and decided. `review_pane.rs` assembles it; each part has its own file, and
//! shared state is in `pane.rs`.

mod action;
mod acts;
mod bar;
mod changed;
mod choices;
mod content;
mod context;
mod form;
mod guardrails;
mod head;
mod hidden;
mod item;
mod keys;
mod load;
mod more;
mod note_field;
mod option_form;
mod options;
mod pane;
mod progress;
mod reassign;
pub mod recorded;
mod request;
mod review_pane;
mod selected;
pub mod sent;
mod side;
mod stakes;
mod standing;
mod took;
pub mod value;

pub use review_pane::ReviewPane;
pub use selected::SelectedReviews;
