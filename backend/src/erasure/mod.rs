//! Erasing people: whoever's account was erased is taken out of everything else that names them, beside the server's
//! work, in steps that each hold by themselves.
//!
//! A step is a run, or some entries of none. It is made of what was read, held against the seals, and committed together
//! with entries `entries.erased`, which say what the changed entries hash to from then on. `docs/audit.md` says what that
//! proves.
//!
//! Imports `shared`, `crate::background`, `crate::store` and `crate::audit` only.

mod eraser;
#[cfg(test)]
mod tests;

pub use eraser::{EraseError, Eraser};
