//! Tools of MCP servers. One connection a server, made when it is first needed, shared by all calls, and made anew when
//! it is dead.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;

use rmcp::model::{CallToolRequestParams, CallToolResult, ErrorCode, RequestMetaObject};
use rmcp::service::{RoleClient, RunningService, ServiceError, ServiceExt};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use serde_json::Value;
use tokio::process::Command;
use tokio::sync::Mutex;

use super::{MAX_RESULT, McpServer, failed, uncertain};
use crate::engine::{TaskFailure, ToolRequest};

type Connection = RunningService<RoleClient, ()>;

/// What a started program sees of this server's environment: enough to be found and to run.
const INHERITED: [&str; 3] = ["PATH", "HOME", "LANG"];

/// Where a call carries its idempotency key, in its `_meta`: the protocol has no name of its own for it.
const IDEMPOTENCY_KEY: &str = "countersign/idempotency-key";

/// The MCP servers of the settings.
pub(super) struct Mcp {
    servers: BTreeMap<String, Server>,
}

struct Server {
    how: McpServer,
    /// Held while connecting, so that two calls do not connect twice; not while calling.
    connection: Mutex<Option<Arc<Connection>>>,
}

impl Mcp {
    pub(super) fn new(servers: BTreeMap<String, McpServer>) -> Self {
        let server = |how| Server { how, connection: Mutex::new(None) };
        Self { servers: servers.into_iter().map(|(name, how)| (name, server(how))).collect() }
    }

    pub(super) async fn call(&self, name: &str, tool: &str, request: &ToolRequest) -> Result<Value, TaskFailure> {
        let Some(server) = self.servers.get(name) else {
            return Err(failed(format!("no MCP server is called `{name}` in the server's settings"), false));
        };
        let limit = request.tool.timeout().0;
        let end = tokio::time::Instant::now() + limit;
        let unreached = |_| failed(format!("the MCP server `{name}` cannot be reached within {limit:?}"), true);
        let connection = tokio::time::timeout_at(end, server.connection(name)).await.map_err(unreached)??;
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(request.arguments.clone());
        let mut meta = RequestMetaObject::new();
        meta.0.0.insert(IDEMPOTENCY_KEY.to_owned(), request.idempotency_key.as_str().into());
        params.meta = Some(meta);
        // Given up, it tells the server so (`notifications/cancelled`).
        let called = tokio::time::timeout_at(end, connection.call_tool(params)).await;
        let called = called.map_err(|_| uncertain("no answer within the tool's timeout", true))?;
        value(called.map_err(|error| unanswered(name, &error))?)
    }

    #[cfg(test)]
    pub(super) async fn use_connection(&self, server: &str, connection: Connection) {
        *self.servers[server].connection.lock().await = Some(Arc::new(connection));
    }
}

impl Server {
    async fn connection(&self, name: &str) -> Result<Arc<Connection>, TaskFailure> {
        let mut held = self.connection.lock().await;
        if let Some(live) = held.as_ref().filter(|c| !c.is_closed() && !c.is_transport_closed()) {
            return Ok(Arc::clone(live));
        }
        *held = None;
        let connection = self
            .how
            .connect()
            .await
            .map_err(|error| failed(format!("the MCP server `{name}` cannot be reached: {error}"), true))?;
        let connection = Arc::new(connection);
        *held = Some(Arc::clone(&connection));
        Ok(connection)
    }
}

impl McpServer {
    async fn connect(&self) -> Result<Connection, Box<dyn std::error::Error + Send + Sync>> {
        let connection = match self {
            Self::Command { command, args, env } => {
                let mut process = Command::new(command);
                process.args(args).env_clear().envs(env);
                for name in INHERITED {
                    if let (false, Some(value)) = (env.contains_key(name), std::env::var_os(name)) {
                        process.env(name, value);
                    }
                }
                let (transport, _) = TokioChildProcess::builder(process).stderr(Stdio::null()).spawn()?;
                ().serve(transport).await?
            }
            Self::Url { url } => ().serve(StreamableHttpClientTransport::from_uri(url.as_str())).await?,
        };
        Ok(connection)
    }
}

/// A result's structured content, or its text.
pub(crate) fn value(result: CallToolResult) -> Result<Value, TaskFailure> {
    let texts = result.content.iter().filter_map(|block| block.as_text().map(|text| text.text.as_str()));
    let text = texts.collect::<Vec<_>>().join("\n");
    if result.is_error == Some(true) {
        let text: String = text.chars().take(500).collect();
        return Err(failed(
            if text.is_empty() { "the tool failed without saying why".to_owned() } else { text },
            false,
        ));
    }
    let value = result.structured_content.unwrap_or(Value::String(text));
    if value.to_string().len() > MAX_RESULT {
        return Err(failed(format!("the result is larger than {MAX_RESULT} bytes"), false));
    }
    Ok(value)
}

fn unanswered(server: &str, error: &ServiceError) -> TaskFailure {
    let message = format!("the MCP server `{server}`: {error}");
    match error {
        // What the server itself refuses, it will refuse again; where it broke down, it may have done it before.
        ServiceError::McpError(refusal) if refusal.code != ErrorCode::INTERNAL_ERROR => failed(message, false),
        ServiceError::McpError(_) | ServiceError::UnexpectedResponse => uncertain(message, false),
        _ => uncertain(message, true),
    }
}
