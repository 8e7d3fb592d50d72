//! Countersign's server: runs flows that stop for people, and streams their reviews.
//!
//! Imports point one way: `flow` and `engine` are pure; `store` commits what the engine decides; `worker`, `live` and
//! `http` stand on the store; `app` alone sees everything. `cargo xtask tidy` checks it.

pub mod audit;
pub mod auth;
pub mod clock;
pub mod engine;
pub mod flow;
pub mod http;
pub mod problem;
pub mod store;
pub mod stream;
