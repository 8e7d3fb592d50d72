//! Handlers, which are asked before people: in which order, each kind of them, and what follows from their answers.

mod asked;
mod chain;
mod channel;
mod decision;
pub(in crate::engine) mod judge;
pub(super) mod outcome;
pub(in crate::engine) mod program;
