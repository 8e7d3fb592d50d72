//! The headers of the settings for an MCP server, with their secrets inserted.

use std::collections::HashMap;

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};

use crate::flow::{Scope, Templates};
use crate::ssrf::Allowed;
use crate::tool::{McpServer, Secrets};

/// The place of a header's text, by which the secrets in it are found again.
const AT: &str = "/value";
/// The headers that belong to the protocol: `rmcp` refuses them with each request.
const RESERVED: [&str; 4] = ["accept", "last-event-id", "mcp-protocol-version", "mcp-session-id"];

/// Returns the headers that every request to a server carries. Error messages contain no secret.
pub(super) fn of(
    server: &McpServer,
    secrets: &Secrets,
    allowed: &Allowed,
) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let mut filled = HashMap::new();
    let McpServer::Url { url, headers } = server else { return Ok(filled) };
    let templates = Templates::default();
    for (name, template) in headers {
        let invalid = || format!("the header `{name}` is not valid");
        let header: HeaderName = name.parse().map_err(|_| invalid())?;
        if RESERVED.contains(&header.as_str()) {
            return Err(format!("the header `{name}` is set by the protocol"));
        }
        let mut uses = Vec::new();
        let text = templates.render_request_text(template, &Scope::default(), AT, &mut uses);
        let text = text.map_err(|error| format!("the header `{name}`: {error}"))?;
        for secret in &uses {
            let url: Url = url.parse().map_err(|error| format!("the url is not valid: {error}"))?;
            secrets.check_host(&secret.name, &url, true, allowed.contains(&url))?;
        }
        let mut value = HeaderValue::from_str(&secrets.put_into(&text, AT, &uses)?).map_err(|_| invalid())?;
        value.set_sensitive(true);
        if filled.insert(header, value).is_some() {
            return Err(format!("the header `{name}` is set twice"));
        }
    }
    Ok(filled)
}
