//! The HTTP API: one file a resource. A handler finds out who calls, reads the body, asks `shared::access`, and then
//! reads from the store or commits to it.
//!
//! Imports `shared`, `crate::clock`, `crate::flow`, `crate::engine`, `crate::store`, `crate::auth` and `crate::audit`.

pub mod body;
pub mod json;
pub mod problem;
