//! Tools behind one small trait: HTTP requests, tools of MCP servers, and a few builtins.
//!
//! No secret appears in a result, an error or a log.

mod builtin;
pub(crate) mod http;
pub(crate) mod mcp;
mod secrets;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use async_trait::async_trait;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use shared::error::FlowCode;
use shared::request::Request;
use shared::time::Span;

use crate::engine::{TaskFailure, ToolRequest, ToolSpec};
use crate::ssrf::Allowed;
use http::Http;
use mcp::Mcp;
pub use secrets::{SecretSettings, Secrets};

/// The maximum size of a tool's result, in bytes.
const MAX_RESULT: usize = 1024 * 1024;
/// The description of a larger result.
const TOO_LARGE: &str = "larger than 1 MiB";

/// The maximum length of a failure's message, in bytes.
const MAX_MESSAGE: usize = 4096;

/// A tool that an agent or a tool node can call.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Makes the call. Every failure has the code `TOOL_FAILED`.
    async fn call(&self, request: &ToolRequest) -> Result<Value, TaskFailure>;

    /// Completes the specifications of tools, before a model sees them, with the descriptions of MCP servers.
    async fn describe(&self, _tools: &mut [ToolSpec]) {}

    /// Ends the processes that serve calls, and waits for their end. No calls are made after this.
    async fn close(&self) {}
}

/// The hosts, servers and secrets of tools, which are never in a flow.
#[derive(Debug, Clone, Default)]
pub struct ToolOptions {
    /// Hosts (`host` or `host:port`) that HTTP tools may reach although they are not on the public internet.
    pub allowed_hosts: Vec<String>,
    /// MCP servers by name.
    pub mcp: BTreeMap<String, McpServer>,
    /// The secrets that requests may use.
    pub secrets: Secrets,
}

/// The settings of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected an MCP server: {command, args, env, start_timeout (at most 10m)} or {url, headers}"
)]
pub enum McpServer {
    /// A program that is started, and used over its standard input and output.
    Command {
        /// The program to start: a path, or a name that is looked up in `PATH`.
        command: String,
        /// The arguments of the program, passed without a shell.
        #[serde(default)]
        args: Vec<String>,
        /// Its environment, in addition to `PATH`, `HOME` and `LANG`; nothing else of this server's environment.
        #[serde(default)]
        env: BTreeMap<String, String>,
        /// How long it may take to start; 30 seconds if absent.
        #[serde(default, deserialize_with = "start_timeout")]
        start_timeout: Option<Span>,
    },
    /// A server that is reached over streamable HTTP.
    Url {
        /// The URL of the server's endpoint.
        url: String,
        /// The headers of every request, in which `{{ secret.NAME }}` inserts a secret.
        #[serde(default)]
        headers: BTreeMap<String, String>,
    },
}

/// The maximum of `start_timeout`.
const LONGEST_START: Duration = Duration::from_mins(10);

fn start_timeout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Span>, D::Error> {
    let limit = Span::deserialize(deserializer)?;
    if limit.0.is_zero() || limit.0 > LONGEST_START {
        return Err(D::Error::custom("expected a time, at most 10m"));
    }
    Ok(Some(limit))
}

/// The reason why tools could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The HTTP client could not be built.
    #[error("the HTTP client for tools: {0}")]
    Client(#[from] reqwest::Error),
    /// A header of an MCP server cannot be sent.
    #[error("`headers` of `[mcp.{server}]` in the settings: {why}")]
    McpHeaders {
        /// The name of the server.
        server: String,
        /// The reason, without secrets.
        why: String,
    },
}

/// All tools: HTTP requests, MCP servers and builtins, with secrets masked in what they return.
pub struct Tools {
    http: Http,
    mcp: Mcp,
    secrets: Secrets,
}

impl Tools {
    /// Creates the tools of these settings. MCP servers are connected when they are first needed.
    pub fn new(options: ToolOptions) -> Result<Self, Error> {
        Ok(Self {
            http: Http::new(&options.allowed_hosts, options.secrets.clone())?,
            mcp: Mcp::new(options.mcp, &options.secrets, &Allowed::new(&options.allowed_hosts))?,
            secrets: options.secrets,
        })
    }
}

#[async_trait]
impl Tool for Tools {
    async fn call(&self, request: &ToolRequest) -> Result<Value, TaskFailure> {
        let called = match &request.request {
            Request::Http(http) => self.http.call(http, request).await,
            Request::Mcp { server, tool } => self.mcp.call(server, tool, request).await,
            Request::Builtin { builtin } => builtin::call(*builtin, request),
            Request::Agent { .. } => Err(failed("an agent cannot be called as a program", false)),
            Request::Function => {
                let message =
                    format!("`{}` is a function of the program that created the flow, not of this one", request.name);
                Err(failed(message, false))
            }
        };
        match called {
            Ok(result) => Ok(self.secrets.mask_value(result)),
            Err(failure) => {
                Err(TaskFailure { message: self.secrets.mask_beginning(&failure.message, MAX_MESSAGE), ..failure })
            }
        }
    }

    async fn describe(&self, tools: &mut [ToolSpec]) {
        self.mcp.describe(tools).await;
    }

    async fn close(&self) {
        self.mcp.close().await;
    }
}

/// Creates a `TOOL_FAILED` for a call that certainly had no effect: nothing was sent, or it was refused.
fn failed(message: impl Into<String>, retryable: bool) -> TaskFailure {
    TaskFailure { retryable, ..TaskFailure::new(FlowCode::ToolFailed, message) }
}

/// Creates a `TOOL_FAILED` for a call that was carried out, but whose result cannot be used. A retry would repeat its
/// effect, so a person is asked.
fn unusable(why: impl Display) -> TaskFailure {
    uncertain(format!("the call was carried out, but its result cannot be used: it is {why}"), false)
}

/// Creates a `TOOL_FAILED` for a call that may have taken effect.
fn uncertain(message: impl Into<String>, retryable: bool) -> TaskFailure {
    TaskFailure { uncertain: true, ..failed(message, retryable) }
}
