//! What templates of tools see as `secret.NAME` and `env.NAME`, and how secrets are kept out of everything that is
//! shown.

use std::fmt;

use serde_json::{Map, Value};
use shared::JsonMap;

use crate::flow::Scope;

/// What stands in place of a secret.
const MASK: &str = "***";

/// Secrets and settings for tools, from this server's environment.
#[derive(Clone, Default)]
pub struct Secrets {
    secret: JsonMap,
    env: JsonMap,
    /// Everything to mask, the longest first, so that a secret that contains another is masked whole.
    masked: Vec<String>,
}

impl Secrets {
    /// `COUNTERSIGN_SECRET_<NAME>` and `COUNTERSIGN_ENV_<NAME>` of these variables.
    pub fn from_env(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut secrets = Self::default();
        for (name, value) in variables {
            if let Some(name) = name.strip_prefix("COUNTERSIGN_SECRET_") {
                let value_in_url: String = url_form(&value);
                secrets.masked.extend([value.clone(), value_in_url]);
                secrets.secret.insert(name.to_owned(), Value::String(value));
            } else if let Some(name) = name.strip_prefix("COUNTERSIGN_ENV_") {
                secrets.env.insert(name.to_owned(), Value::String(value));
            }
        }
        secrets.masked.retain(|secret| !secret.is_empty());
        secrets.masked.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.masked.dedup();
        secrets
    }

    /// What a tool's templates see: the scope with `secret` and `env`.
    pub(super) fn scope(&self, scope: &JsonMap) -> Scope {
        let mut scope = scope.clone();
        scope.insert("secret".to_owned(), Value::Object(self.secret.clone()));
        scope.insert("env".to_owned(), Value::Object(self.env.clone()));
        Scope(scope)
    }

    /// The text without secrets.
    pub fn mask(&self, text: &str) -> String {
        self.masked.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), MASK))
    }

    /// The value without secrets, whether in texts or in keys.
    pub fn mask_value(&self, value: Value) -> Value {
        if self.masked.is_empty() {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.mask(&text)),
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.mask_value(item)).collect()),
            Value::Object(fields) => {
                let masked = fields.into_iter().map(|(key, value)| (self.mask(&key), self.mask_value(value)));
                Value::Object(masked.collect::<Map<_, _>>())
            }
            other => other,
        }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("names", &self.secret.keys().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

/// How a text stands in the path of a URL: services like to repeat the URL in their errors.
fn url_form(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
