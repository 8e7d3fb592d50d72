//! Why an MCP server could not be reached, or did not answer, in words for people: short, and without the server's URL,
//! which may hold a key.

use std::error::Error;
use std::fmt::{self, Display, Write};

use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpError;

use crate::ssrf;
use crate::tool::MAX_MESSAGE;

/// The length of what is kept of a message, in bytes. It is twice what is shown, since a secret at the end of that can
/// only be masked as a whole.
const MAX_KEPT: usize = 2 * MAX_MESSAGE;

/// Returns the message of the innermost error. The outer ones would repeat it, or name the URL.
pub(super) fn cause(error: &(dyn Error + 'static)) -> String {
    if let Some(ServiceError::TransportSend(sent)) = error.downcast_ref() {
        return cause(&*sent.error);
    }
    match error.downcast_ref() {
        Some(ClientInitializeError::TransportError { error, .. }) => return cause(&*error.error),
        Some(ClientInitializeError::LegacyFallbackFailed { fallback, .. }) => return cause(&**fallback),
        _ => {}
    }
    match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(client)) => return cause(client),
        // After the status, it quotes the body, which may repeat the URL.
        Some(StreamableHttpError::UnexpectedServerResponse(what)) => {
            let what = what.split(": ").next().unwrap_or_default();
            return beginning(&format_args!("unexpected response: {what}"));
        }
        _ => {}
    }
    match error.source() {
        Some(source) => cause(source),
        None if error.is::<reqwest::Error>() => ssrf::without_url(error),
        None => beginning(&error),
    }
}

/// Returns the beginning of a message, without writing the rest: the server's part of it may be megabytes.
fn beginning(message: &dyn Display) -> String {
    let mut beginning = Beginning(String::new());
    // It fails when the limit is reached.
    let _ = write!(beginning, "{message}");
    beginning.0
}

struct Beginning(String);

impl Write for Beginning {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let left = MAX_KEPT.saturating_sub(self.0.len());
        let end = text.floor_char_boundary(left);
        self.0.push_str(&text[..end]);
        if end < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use rmcp::ErrorData;

    use super::*;

    #[test]
    fn a_long_message_of_a_server_is_cut() {
        let refusal = ServiceError::McpError(ErrorData::internal_error("é".repeat(1_000_000), None));
        let message = cause(&refusal);
        assert!(message.len() <= MAX_KEPT && message.starts_with("Mcp error: -32603: éé"), "{}", message.len());
    }
}
