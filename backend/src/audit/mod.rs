//! The audit as files: the entries of the log, a row each.
//!
//! Imports `shared` only.

mod export;

pub use export::{Format, WriteError};
