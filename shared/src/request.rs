//! What a tool call sends: rendered once, when the call is made, shown to whoever decides about it, and sent from that
//! record at every try. Secrets stand in it by name only.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definition::Builtin;

/// What a tool call sends, beside its arguments.
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
    /// The same as text, whole, for people who read it without a console; none where it is the arguments and nothing
    /// more.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Http(http) => Some(http.text()),
            Self::Mcp { server, tool } => Some(format!("MCP server {server}, tool {tool}")),
            Self::Builtin { .. } | Self::Agent { .. } | Self::Function => None,
        }
    }

    /// The names of the secrets that are sent, each once.
    pub fn secrets(&self) -> Vec<&str> {
        let Self::Http(http) = self else { return Vec::new() };
        let mut names: Vec<&str> = http.secrets.iter().map(|secret| secret.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// An HTTP request. Where a secret goes stands `‹secret NAME›`, and `secrets` tells these places from text that only
/// looks like one. The server adds an `Idempotency-Key`, unless the flow has one of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HttpRequest {
    /// `GET`, `POST`, …
    pub method: String,
    /// The rendered and normalised `http` or `https` URL, without a fragment.
    pub url: String,
    /// By name, in lower case.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// A text is sent as it is, everything else as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub body: Option<Value>,
    /// Where secrets are put in when it is sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretUse>,
}

/// A body that is null is a body.
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

/// One place of a request where a secret is put in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SecretUse {
    /// The text that it is in: a JSON Pointer into the request.
    pub at: String,
    /// Where what stands for it begins in that text, in bytes of UTF-8.
    pub start: u32,
    /// Where that ends.
    pub end: u32,
    /// The secret's name.
    pub name: String,
    /// Whether it is percent-encoded as one piece of a URL.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub encoded: bool,
}

impl SecretUse {
    /// What stands in place of a secret.
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
