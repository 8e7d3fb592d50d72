//! The request of a tool call: rendered once when the call is made, shown to the people who decide about it, and sent
//! unchanged at every attempt. It contains secrets only by name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definition::Builtin;

/// The request of a tool call, in addition to its arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Request {
    /// An HTTP request.
    Http(HttpRequest),
    /// The arguments, to a tool of an MCP server.
    Mcp {
        /// The server's name in the server's settings.
        server: String,
        /// The tool's name there.
        tool: String,
    },
    /// The arguments, to a part of Countersign.
    Builtin {
        /// The builtin, by its name in flow files.
        builtin: Builtin,
    },
    /// The task, to an agent of the flow.
    Agent {
        /// The agent's name among the flow's `agents`.
        agent: String,
    },
    /// The arguments, to a function of the program that Countersign runs in.
    Function,
}

impl Request {
    /// Returns the whole request as text, for people without a console; `None` if it consists only of the arguments.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Http(http) => Some(http.text()),
            Self::Mcp { server, tool } => Some(format!("MCP server {server}, tool {tool}")),
            Self::Builtin { .. } | Self::Agent { .. } | Self::Function => None,
        }
    }

    /// Returns the names of the secrets that are sent, each once.
    pub fn secrets(&self) -> Vec<&str> {
        let Self::Http(http) = self else { return Vec::new() };
        let mut names: Vec<&str> = http.secrets.iter().map(|secret| secret.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// An HTTP request. It contains `‹secret NAME›` in the place of a secret, and `secrets` tells these places from text
/// that only looks like one. The server adds an `Idempotency-Key`, unless the flow sets its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HttpRequest {
    /// `GET`, `POST`, …
    pub method: String,
    /// The rendered and normalised `http` or `https` URL, without a fragment.
    pub url: String,
    /// The headers by name, in lower case.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body: text is sent as it is, everything else as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[serde(serialize_with = "crate::user_data::value")]
    pub body: Option<Value>,
    /// The places where secrets are inserted when it is sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretUse>,
}

/// Deserializes a body that is present, so that `null` becomes `Some(Value::Null)` and not `None`.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Deserialize::deserialize(deserializer).map(Some)
}

impl HttpRequest {
    fn text(&self) -> String {
        let headers: String = self.headers.iter().flat_map(|(name, value)| ["\n", name, ": ", value]).collect();
        let body = match &self.body {
            None => String::new(),
            Some(Value::String(body)) => format!("\n\n{body}"),
            Some(body) => format!("\n\n{body:#}"),
        };
        format!("{} {}{headers}{body}", self.method, self.url)
    }
}

/// A place in a request where a secret is inserted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SecretUse {
    /// The text that contains it, as a JSON Pointer into the request.
    pub at: String,
    /// The start of the placeholder in that text, in bytes of UTF-8.
    pub start: u32,
    /// The end of the placeholder.
    pub end: u32,
    /// The secret's name.
    pub name: String,
    /// Whether it is percent-encoded as one segment of a URL.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub encoded: bool,
}

impl SecretUse {
    /// Returns the placeholder that stands in a request for a secret with this name.
    pub fn shown(name: &str) -> String {
        format!("‹secret {name}›")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_read_as_it_was_written() {
        for request in [
            json!({"type": "http", "method": "POST", "url": "https://x/", "body": null}),
            json!({"type": "http", "method": "GET", "url": "https://x/", "headers": {"a": "b"},
                "secrets": [{"at": "/headers/a", "start": 0, "end": 1, "name": "K", "encoded": true}]}),
            json!({"type": "mcp", "server": "files", "tool": "read"}),
            json!({"type": "builtin", "builtin": "set_state"}),
            json!({"type": "function"}),
        ] {
            let read: Request = serde_json::from_value(request.clone()).expect("a request");
            assert_eq!(serde_json::to_value(&read).expect("JSON"), request);
        }
    }
}
