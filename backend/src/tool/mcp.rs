//! Tools of MCP servers: the available ones, their calls, and their results.

mod cause;
mod connection;
mod headers;
mod listing;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ContentBlock, ErrorCode, RequestMetaObject, ResourceContents,
};
use rmcp::service::ServiceError;
use serde_json::Value;
use shared::definition::McpTool;
use shared::time::Span;
use tokio::time::{Instant, timeout_at};

use super::{Error, MAX_MESSAGE, MAX_RESULT, McpServer, Secrets, TOO_LARGE, failed, uncertain, unusable};
use crate::engine::{TaskFailure, ToolRequest, ToolSpec};
use crate::http_client::choose_tls_provider;
use crate::ssrf::Allowed;
use cause::cause;
use connection::{Connection, ServerConnection};

/// The key in a call's `_meta` that carries its idempotency key; the protocol has no name for it.
const IDEMPOTENCY_KEY: &str = "countersign/idempotency-key";

/// The number of a server's tools that are listed when a tool is missing.
const MAX_NAMED: usize = 20;

/// How long a model's turn waits for servers to describe its tools.
const TO_DESCRIBE: Duration = Duration::from_secs(5);

/// The MCP servers of the settings, by name.
pub(super) struct Mcp {
    servers: BTreeMap<String, ServerConnection>,
    secrets: Secrets,
}

impl Mcp {
    /// `allowed`: the hosts of internal networks to which secrets may be sent unencrypted.
    pub(super) fn new(
        servers: BTreeMap<String, McpServer>,
        secrets: &Secrets,
        allowed: &Allowed,
    ) -> Result<Self, Error> {
        // The clients of `rmcp` need it.
        choose_tls_provider();
        let server = |(name, how): (String, McpServer)| match headers::of(&how, secrets, allowed) {
            Ok(headers) => Ok((name.clone(), ServerConnection::new(name, how, headers))),
            Err(why) => Err(Error::McpHeaders { server: name, why }),
        };
        let servers = servers.into_iter().map(server).collect::<Result<BTreeMap<_, _>, Error>>()?;
        Ok(Self { servers, secrets: secrets.clone() })
    }

    pub(super) async fn call(&self, name: &str, tool: &str, request: &ToolRequest) -> Result<Value, TaskFailure> {
        let Some(server) = self.servers.get(name) else {
            return Err(failed(format!("the server's settings have no MCP server `{name}`"), false));
        };
        let limit = request.tool.timeout().0;
        let end = Instant::now() + limit;
        let late = |what: &str| {
            failed(format!("the MCP server `{name}` {what} within {} (`timeout` of the tool)", Span(limit)), true)
        };
        let connection = timeout_at(end, server.connection()).await.map_err(|_| late("did not start"))??;
        let offered = timeout_at(end, offers(name, &connection, tool)).await;
        offered.map_err(|_| late("did not say which tools it has"))??;
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(request.arguments.clone());
        let mut meta = RequestMetaObject::new();
        meta.0.0.insert(IDEMPOTENCY_KEY.to_owned(), request.idempotency_key.as_str().into());
        params.meta = Some(meta);
        // If the call is dropped, by the timeout or because the result is no longer needed, the server is told
        // (`notifications/cancelled`).
        let called = timeout_at(end, connection.peer.call_tool(params)).await;
        let called = called.map_err(|_| uncertain("no answer within the tool's timeout", true))?;
        value(called.map_err(|error| unanswered(name, &error))?)
    }

    /// Completes the descriptions and schemas that the flow leaves out with those that the servers list. If a server
    /// cannot be reached now, its tools stay as they are; the call will show whether they work.
    pub(super) async fn describe(&self, tools: &mut [ToolSpec]) {
        let end = Instant::now() + TO_DESCRIBE;
        for spec in tools {
            let Some(McpTool { server, tool }) = &spec.mcp else { continue };
            let is_told = spec.description.is_some() && spec.parameters.is_some();
            let Some(known) = self.servers.get(server).filter(|_| !is_told) else { continue };
            match timeout_at(end, known.listed(tool)).await {
                Ok(Ok(Some(listed))) => {
                    let secrets = &self.secrets;
                    spec.description = spec.description.take().or(listed.description.map(|text| secrets.mask(&text)));
                    spec.parameters = spec.parameters.take().or(listed.parameters.map(|of| secrets.mask_value(of)));
                }
                Ok(Ok(None)) => {}
                Ok(Err(error)) => {
                    // The server may repeat a header that it was sent.
                    let error = self.secrets.mask_beginning(&error.message, MAX_MESSAGE);
                    tracing::warn!(server, tool, error, "an MCP server does not describe a tool");
                }
                Err(_) => tracing::warn!(server, tool, "an MCP server did not describe a tool in time"),
            }
        }
    }

    /// Ends all servers, and waits until they have ended.
    pub(super) async fn close(&self) {
        join_all(self.servers.values().map(ServerConnection::close)).await;
    }

    #[cfg(test)]
    pub(super) fn use_service(&self, server: &str, service: connection::Service) {
        self.servers[server].use_service(service);
    }
}

/// Checks that a server has a tool. If the tool is not in the known list, the server is asked again, since the tool may
/// have been added.
async fn offers(server: &str, connection: &Connection, tool: &str) -> Result<(), TaskFailure> {
    if connection.tools().iter().any(|known| known.name == tool) {
        return Ok(());
    }
    let listed = match connection.list().await {
        Ok(listed) => listed,
        // If the server cannot list its tools, the call is tried all the same.
        Err(ServiceError::McpError(_)) => return Ok(()),
        // No call was made yet.
        Err(error) => return Err(failed(format!("the MCP server `{server}`: {}", cause(&error)), true)),
    };
    if listed.iter().any(|known| known.name == tool) {
        return Ok(());
    }
    let named = listed.iter().take(MAX_NAMED).map(|known| known.name.as_str()).collect::<Vec<_>>().join(", ");
    let has = if named.is_empty() { "it has none".to_owned() } else { format!("it has {named}") };
    Err(failed(format!("the MCP server `{server}` has no tool `{tool}`: {has}"), false))
}

/// Returns a result's structured content, or its content as text if there is none.
pub(crate) fn value(result: CallToolResult) -> Result<Value, TaskFailure> {
    let text = result.content.iter().map(as_text).collect::<Vec<_>>().join("\n");
    if result.is_error == Some(true) {
        // Not cut here: a part of a secret at the cut would not be masked.
        return Err(failed(if text.is_empty() { "the tool failed without a reason".to_owned() } else { text }, false));
    }
    let value = result.structured_content.unwrap_or(Value::String(text));
    if value.to_string().len() > MAX_RESULT {
        return Err(unusable(TOO_LARGE));
    }
    Ok(value)
}

/// Returns the text of a block of content. Anything else is named, so that nobody takes the result for empty.
fn as_text(block: &ContentBlock) -> Cow<'_, str> {
    match block {
        ContentBlock::Text(text) => text.text.as_str().into(),
        ContentBlock::Image(image) => format!("[{}, {}]", image.mime_type, size(&image.data)).into(),
        ContentBlock::Audio(audio) => format!("[{}, {}]", audio.mime_type, size(&audio.data)).into(),
        ContentBlock::ResourceLink(link) => format!("[{}: {}]", link.name, link.uri).into(),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => text.as_str().into(),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let kind = mime_type.as_deref().unwrap_or("a file");
                format!("[{kind}, {}: {uri}]", size(blob)).into()
            }
            _ => "[a resource of an unknown kind]".into(),
        },
        _ => "[content of an unknown kind]".into(),
    }
}

/// Returns the size of data in Base64, in words.
fn size(base64: &str) -> String {
    match base64.trim_end_matches('=').len() * 3 / 4 {
        few @ ..1000 => format!("{few} bytes"),
        many => format!("{} kB", many.div_ceil(1000)),
    }
}

fn unanswered(server: &str, error: &ServiceError) -> TaskFailure {
    let message = format!("the MCP server `{server}`: {}", cause(error));
    match error {
        // A refusal by the server will be repeated; a server that failed internally may have acted before.
        ServiceError::McpError(refusal) if refusal.code != ErrorCode::INTERNAL_ERROR => failed(message, false),
        ServiceError::McpError(_) | ServiceError::UnexpectedResponse => uncertain(message, false),
        _ => uncertain(message, true),
    }
}
