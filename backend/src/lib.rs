//! Countersign's server: runs flows that stop for human approval, and streams their reviews.
//!
//! Imports point one way: `flow` and `engine` are pure; `store` commits what the engine decides; `worker`, `live` and
//! `http` build on the store; `app` builds the server from all of them. `cargo xtask tidy` checks this.

pub mod agent;
pub mod app;
pub mod archive;
pub mod audit;
pub mod auth;
pub mod background;
pub mod cli;
pub mod client_address;
pub mod clock;
pub mod config;
pub mod embed;
pub mod engine;
pub mod erasure;
pub mod files;
pub mod flow;
#[doc(hidden)]
pub mod fuzzing;
pub mod handler;
pub mod http;
pub mod http_client;
pub mod json;
pub mod limits;
pub mod live;
pub mod mask;
pub mod notify;
pub mod problem;
pub mod rate_limit;
pub mod server;
pub mod ssrf;
pub mod standard_webhooks;
pub mod store;
pub mod token_bucket;
pub mod token_stream;
pub mod tool;
pub mod waiting_lines;
pub mod worker;
