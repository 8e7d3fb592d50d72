//! What the store promises, on both databases.

mod decisions;
mod keys;
mod log;
mod people;
pub(super) mod support;
mod tasks;
mod visibility;
