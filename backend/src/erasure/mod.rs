//! Erasing people: after an account was erased, removes the person from everything else that names them, in the
//! background and in steps that are each complete.
//!
//! A step is a run, or some entries without a run. It is made from what was read, checked against the seals, and
//! committed together with `entries.erased` entries, which record the new hashes of the changed entries.
//! `docs/audit.md` explains what this proves.

mod eraser;
#[cfg(test)]
mod tests;

pub use eraser::{EraseError, Eraser};
