//! Secrets: put into requests when they are sent, and kept out of everything that is shown.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};
use shared::request::SecretUse;

use crate::flow::url_piece;

/// What stands in place of a secret.
const MASK: &str = "***";

/// Secrets for tools, from this server's environment.
#[derive(Clone, Default)]
pub struct Secrets {
    secret: BTreeMap<String, String>,
    /// Everything to mask, the longest first, so that a secret that contains another is masked whole.
    masked: Vec<String>,
}

impl Secrets {
    /// `COUNTERSIGN_SECRET_<NAME>` of these variables.
    pub fn from_env(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut secrets = Self::default();
        for (name, value) in variables {
            if let Some(name) = name.strip_prefix("COUNTERSIGN_SECRET_") {
                secrets.masked.extend([value.clone(), url_piece(&value)]);
                secrets.secret.insert(name.to_owned(), value);
            }
        }
        secrets.masked.retain(|secret| !secret.is_empty());
        secrets.masked.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.masked.dedup();
        secrets
    }

    /// The text at a place of a request, with the secrets that belong there.
    pub(super) fn put_into(&self, text: &str, at: &str, uses: &[SecretUse]) -> Result<String, String> {
        fill(text, at, uses, |secret| {
            let unknown = || format!("the server has no secret `{0}`: set COUNTERSIGN_SECRET_{0}", secret.name);
            let value = self.secret.get(&secret.name).ok_or_else(unknown)?;
            Ok(if secret.encoded { url_piece(value) } else { value.clone() })
        })
    }

    /// The same text with something harmless in the place of each secret.
    pub(super) fn stand_ins(text: &str, at: &str, uses: &[SecretUse]) -> Result<String, String> {
        fill(text, at, uses, |_| Ok("x".to_owned()))
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

/// Replaces what stands for secrets in the text at a place.
fn fill(
    text: &str,
    at: &str,
    uses: &[SecretUse],
    value: impl Fn(&SecretUse) -> Result<String, String>,
) -> Result<String, String> {
    let (mut filled, mut done) = (String::with_capacity(text.len()), 0);
    let damaged = || format!("the recorded request is damaged at {at}");
    for secret in uses.iter().filter(|secret| secret.at == at) {
        let (start, end) = (secret.start as usize, secret.end as usize);
        filled.push_str(text.get(done..start).ok_or_else(damaged)?);
        text.get(start..end).ok_or_else(damaged)?;
        filled.push_str(&value(secret)?);
        done = end;
    }
    filled.push_str(text.get(done..).ok_or_else(damaged)?);
    Ok(filled)
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("names", &self.secret.keys().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}
