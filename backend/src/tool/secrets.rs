//! Secrets: inserted into requests when they are sent, only to hosts that may get them, and masked in everything that
//! is shown.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use reqwest::Url;
use serde::Deserialize;
use serde_json::{Map, Value};
use shared::request::SecretUse;

use crate::flow::{is_loopback, url_piece};
use crate::mask::{MASK, Mask};

/// The settings of a secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretSettings {
    /// The hosts that the secret may be sent to, as `host` (at the default port) or `host:port`.
    pub hosts: Vec<String>,
}

/// Secrets for tools, from this server's environment.
#[derive(Clone, Default)]
pub struct Secrets {
    secret: BTreeMap<String, NamedSecret>,
    mask: Arc<Mask>,
}

#[derive(Clone)]
struct NamedSecret {
    value: String,
    /// The hosts it may be sent to. `None` if neither environment nor settings name any.
    hosts: Option<Vec<String>>,
}

impl Secrets {
    /// Reads the secrets from the variables `COUNTERSIGN_SECRET_<NAME>`, without the white space around them, and their
    /// hosts from `COUNTERSIGN_HOSTS_<NAME>`, separated by commas, or else from the settings.
    pub fn from_env(
        variables: impl IntoIterator<Item = (String, String)>,
        settings: &BTreeMap<String, SecretSettings>,
    ) -> Self {
        let variables: BTreeMap<String, String> = variables.into_iter().collect();
        let secrets = variables.iter().filter_map(|(variable, value)| {
            let name = variable.strip_prefix("COUNTERSIGN_SECRET_")?;
            let named = variables.get(&format!("COUNTERSIGN_HOSTS_{name}")).map(|hosts| hosts.split(',').collect());
            let set = || settings.get(name).map(|secret| secret.hosts.iter().map(String::as_str).collect());
            let hosts: Option<Vec<&str>> = named.or_else(set);
            let hosts = hosts.map(|hosts| hosts.iter().map(|host| host.trim().to_ascii_lowercase()).collect());
            // A file that an environment variable is filled from often ends with a newline, which no header can hold.
            Some((name.to_owned(), NamedSecret { value: value.trim().to_owned(), hosts }))
        });
        let secret: BTreeMap<String, NamedSecret> = secrets.collect();
        let mask = Arc::new(Mask::new(secret.values().map(|secret| secret.value.as_str())));
        Self { secret, mask }
    }

    /// Returns the names of the secrets that are bound to no host.
    pub fn unbound(&self) -> impl Iterator<Item = &str> {
        self.secret.iter().filter(|(_, secret)| secret.hosts.is_none()).map(|(name, _)| name.as_str())
    }

    /// Whether there are no secrets to mask.
    pub fn is_empty(&self) -> bool {
        self.mask.is_empty()
    }

    /// Checks that a secret may be sent to this URL. `is_fixed`: the flow writes the host literally, so no run can
    /// choose it. `is_internal`: the settings allow the host, although it is not on the public internet.
    pub(super) fn check_host(&self, name: &str, url: &Url, is_fixed: bool, is_internal: bool) -> Result<(), String> {
        let host = url.host_str().unwrap_or_default();
        let with_port = format!("{host}:{}", url.port_or_known_default().unwrap_or_default());
        // A host that is bound without a port stands for the default port of the scheme: another program may listen at
        // any other one.
        let is_bound = |to: &String| *to == with_port || (*to == host && url.port().is_none());
        if url.scheme() != "https" && !is_internal && !is_loopback(url) {
            return Err(format!(
                "the secret `{name}` may not be sent to `{with_port}` unencrypted: use https, or, if the network is \
                 yours, allow the host in the server's settings ([tools] allowed_hosts = [\"{with_port}\"])"
            ));
        }
        match self.secret.get(name).and_then(|secret| secret.hosts.as_ref()) {
            Some(hosts) if hosts.iter().any(is_bound) => Ok(()),
            Some(_) => Err(format!(
                "the secret `{name}` may not be sent to `{with_port}`: the server's settings bind it to other hosts or \
                 ports"
            )),
            None if is_fixed => Ok(()),
            None => Err(format!(
                "the secret `{name}` may not be sent to `{with_port}`, which the flow does not name literally: bind it \
                 in the server's settings ([secrets.{name}] hosts = [\"{with_port}\"])"
            )),
        }
    }

    /// Returns the text at a place of a request, with the secrets of that place inserted.
    pub(super) fn put_into(&self, text: &str, at: &str, uses: &[SecretUse]) -> Result<String, String> {
        fill(text, at, uses, |secret| {
            let unknown = || format!("the server has no secret `{0}`: set COUNTERSIGN_SECRET_{0}", secret.name);
            let value = self.secret.get(&secret.name).ok_or_else(unknown)?;
            Ok(if secret.encoded { url_piece(&value.value) } else { value.value.clone() })
        })
    }

    /// Returns the same text with `x` in place of each secret.
    pub(super) fn stand_ins(text: &str, at: &str, uses: &[SecretUse]) -> Result<String, String> {
        fill(text, at, uses, |_| Ok("x".to_owned()))
    }

    /// Returns what finds secrets in texts.
    pub fn masker(&self) -> Arc<Mask> {
        Arc::clone(&self.mask)
    }

    /// Returns the text with secrets masked.
    pub fn mask(&self, text: &str) -> String {
        self.mask.text(text)
    }

    /// Returns the beginning of a text, of at most about `most` bytes, with secrets masked. A secret that the end would
    /// cut is masked too; the rest of the text, which may be long, is not searched.
    pub(super) fn mask_beginning(&self, text: &str, most: usize) -> String {
        let searched = &text[..text.floor_char_boundary(most.saturating_mul(2))];
        let end = text.floor_char_boundary(most);
        let cut = if end < text.len() { "…" } else { "" };
        self.mask.beginning(searched, end) + cut
    }

    /// Returns the value with secrets masked, in texts and keys and as numbers.
    pub fn mask_value(&self, value: Value) -> Value {
        if self.is_empty() {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.mask(&text)),
            Value::Number(number) if self.mask.is_secret(&number) => Value::String(MASK.to_owned()),
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.mask_value(item)).collect()),
            Value::Object(fields) => {
                let masked = fields.into_iter().map(|(key, value)| (self.mask(&key), self.mask_value(value)));
                Value::Object(masked.collect::<Map<_, _>>())
            }
            other => other,
        }
    }

    /// Starts masking a text that arrives in pieces.
    pub fn stream(&self) -> MaskedStream {
        MaskedStream { mask: Arc::clone(&self.mask), held: String::new() }
    }
}

/// Masks a text that arrives in pieces. The end is held back as long as it may be the beginning of a secret.
pub struct MaskedStream {
    mask: Arc<Mask>,
    held: String,
}

impl MaskedStream {
    /// Adds a piece; returns the masked text that can be shown now.
    pub fn push(&mut self, text: &str) -> String {
        self.held.push_str(text);
        let longest = self.mask.longest();
        // Wait for more, so that one search serves many pieces.
        if self.held.len() <= longest + longest / 2 {
            return String::new();
        }
        let mut cut = self.held.len() - longest;
        let across = |cut: usize| move |span: &std::ops::Range<usize>| span.start < cut && cut < span.end;
        if let Some(span) = self.mask.spans(&self.held).into_iter().find(across(cut)) {
            cut = span.start;
        }
        let rest = self.held.split_off(self.held.floor_char_boundary(cut));
        self.mask.text(&std::mem::replace(&mut self.held, rest))
    }

    /// Returns the rest, masked.
    pub fn finish(&mut self) -> String {
        self.mask.text(&std::mem::take(&mut self.held))
    }
}

/// Replaces the placeholders of secrets in the text at a place of a request. Fails if the recorded positions do not
/// fit.
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
