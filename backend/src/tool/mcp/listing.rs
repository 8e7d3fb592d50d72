//! The tools that an MCP server lists, page by page, within limits.

use std::sync::Arc;

use rmcp::model::{PaginatedRequestParams, Tool};
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde_json::Value;

/// The maximum number of pages that are read.
const MAX_PAGES: usize = 100;
/// The maximum number of tools that are kept.
const MAX_TOOLS: usize = 1_000;
/// The maximum size of all tools that are kept, in bytes.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// The maximum length of a tool's name, in bytes; a tool with a longer one is left out.
const MAX_NAME: usize = 256;
/// The maximum length of a tool's description (in characters; longer ones are cut) and of its schema (in bytes; larger
/// ones are left out).
const MAX_DESCRIPTION: usize = 4096;
const MAX_SCHEMA: usize = 64 * 1024;

/// A tool that a server has listed.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    /// The name of the tool on the server.
    pub(super) name: String,
    /// The description that the server gives.
    pub(super) description: Option<String>,
    /// The JSON Schema of the arguments that the server gives. `None` if it is too large for a model.
    pub(super) parameters: Option<Value>,
}

/// Asks a server for its tools. What exceeds the limits is left out.
pub(super) async fn of(server: &Peer<RoleClient>) -> Result<Vec<Listed>, ServiceError> {
    let (mut listed, mut size, mut cursor) = (Vec::new(), 0_usize, None);
    for _ in 0..MAX_PAGES {
        let page = server.list_tools(Some(PaginatedRequestParams::default().with_cursor(cursor))).await?;
        for tool in page.tools.into_iter().filter(|tool| tool.name.len() <= MAX_NAME) {
            let (tool, bytes) = kept(tool);
            size = size.saturating_add(bytes);
            if listed.len() >= MAX_TOOLS || size > MAX_BYTES {
                tracing::warn!(kept = listed.len(), "an MCP server lists too many tools; the rest is left out");
                return Ok(listed);
            }
            listed.push(tool);
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(listed);
        }
    }
    tracing::warn!(kept = listed.len(), "an MCP server lists its tools on too many pages; the rest is left out");
    Ok(listed)
}

/// Returns what is kept of a tool, and its size in bytes.
fn kept(tool: Tool) -> (Listed, usize) {
    let name = tool.name.into_owned();
    let description: Option<String> = tool.description.map(|text| text.chars().take(MAX_DESCRIPTION).collect());
    let schema = Value::Object(Arc::unwrap_or_clone(tool.input_schema));
    let bytes = schema.to_string().len();
    let parameters = Some(schema).filter(|_| bytes <= MAX_SCHEMA);
    let size = name.len() + description.as_ref().map_or(0, String::len) + parameters.as_ref().map_or(0, |_| bytes);
    (Listed { name, description, parameters }, size)
}
