//! HTTP tools: sends a request as it was recorded, with its secrets inserted.

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Method, Response, StatusCode, Url};
use serde_json::Value;
use shared::definition::ToolKind;
use shared::error::pointer;
use shared::request::HttpRequest;
use shared::time::Span;

use super::{Error, MAX_RESULT, Secrets, TOO_LARGE, failed, uncertain, unusable};
use crate::engine::{TaskFailure, ToolRequest};
use crate::flow::has_fixed_host;
use crate::http_client::{self, retry_after};
use crate::json;
use crate::ssrf::{Cause, Clients, cause};

/// The maximum length of the quoted part of a refusal's body, in characters.
const MAX_DETAIL: usize = 500;
/// The maximum length of the quoted target of a redirect, in bytes.
const MAX_LOCATION: usize = 200;

pub(super) struct Http {
    clients: Clients,
    secrets: Secrets,
}

impl Http {
    pub(super) fn new(allowed_hosts: &[String], secrets: Secrets) -> Result<Self, Error> {
        Ok(Self { clients: Clients::new(allowed_hosts)?, secrets })
    }

    pub(super) async fn call(&self, http: &HttpRequest, request: &ToolRequest) -> Result<Value, TaskFailure> {
        let whole = Whole::of(http, &self.secrets).map_err(|why| failed(why, false))?;
        let is_fixed = matches!(&request.tool.kind, ToolKind::Http(tool) if has_fixed_host(&tool.url));
        let is_internal = self.clients.allows(&whole.url);
        for secret in &http.secrets {
            let checked = self.secrets.check_host(&secret.name, &whole.url, is_fixed, is_internal);
            checked.map_err(|why| failed(why, false))?;
        }
        let client = self.clients.of(&whole.url).map_err(|refused| failed(refused.to_string(), false))?;
        let only_reads = whole.method.is_safe();
        let mut builder = client
            .request(whole.method, whole.url)
            .timeout(request.tool.timeout().0)
            .header("idempotency-key", &request.idempotency_key);
        if let Some(body) = whole.body {
            builder = builder.body(body);
        }
        // Last, since these headers replace others of the same name: those of the flow win.
        let response = builder.headers(whole.headers).send().await.map_err(|error| unreached(&error))?;
        let status = response.status();
        let is_json = is_json(&response);
        let retry_after = retry_after(response.headers()).map(Span);
        if !status.is_success() {
            let location = self.location(&response);
            let body = http_client::beginning(response, MAX_RESULT).await;
            return Err(TaskFailure { retry_after, ..refusal(status, location.as_deref(), &body, only_reads) });
        }
        let body = http_client::whole(response, MAX_RESULT).await.map_err(|error| unreached(&error))?;
        body.ok_or_else(|| TOO_LARGE.to_owned()).and_then(|body| value(&body, is_json)).map_err(|why| {
            // A safe method (RFC 9110, 9.2.1) has no effect, so it may simply be called again.
            if only_reads { failed(format!("the result is {why}"), false) } else { unusable(why) }
        })
    }

    /// Returns the beginning of the address to which a response redirects, without what may be a credential that the
    /// server has made. Secrets are masked before it is cut.
    fn location(&self, response: &Response) -> Option<String> {
        let location = response.headers().get(LOCATION).filter(|_| response.status().is_redirection())?;
        let shown = without_credentials(&String::from_utf8_lossy(location.as_bytes()));
        Some(self.secrets.mask_beginning(&shown, MAX_LOCATION))
    }
}

/// Removes the user, the password, the query and the fragment from an address.
fn without_credentials(address: &str) -> String {
    let end = address.find(['?', '#']);
    let path = &address[..end.unwrap_or(address.len())];
    let cut = if end.is_some() { "?…" } else { "" };
    let Some((scheme, rest)) = path.split_once("//") else { return format!("{path}{cut}") };
    let host = rest.split('/').next().unwrap_or_default().rfind('@').map_or(0, |at| at + 1);
    format!("{scheme}//{}{cut}", &rest[host..])
}

/// A request with its secrets inserted. Error messages about it never contain secrets.
struct Whole {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<String>,
}

impl Whole {
    fn of(http: &HttpRequest, secrets: &Secrets) -> Result<Self, String> {
        let method = http.method.parse().map_err(|_| format!("`{}` is not an HTTP method", http.method))?;
        let url = url(http, secrets)?;
        let mut headers = HeaderMap::new();
        for (name, value) in &http.headers {
            let invalid = || format!("the header `{name}` is not valid");
            let value = secrets.put_into(value, &pointer(["headers", name]), &http.secrets)?;
            let mut value = HeaderValue::from_str(&value).map_err(|_| invalid())?;
            value.set_sensitive(true);
            headers.insert(name.parse::<HeaderName>().map_err(|_| invalid())?, value);
        }
        let mut body = http.body.clone();
        if let Some(body) = &mut body {
            put_into(body, "/body", http, secrets)?;
        }
        let body = body.map(|body| match body {
            Value::String(text) => text,
            other => other.to_string(),
        });
        Ok(Self { method, url, headers, body })
    }
}

/// Builds the URL with its secrets. Refuses it if the secrets change the origin.
fn url(http: &HttpRequest, secrets: &Secrets) -> Result<Url, String> {
    let parsed = |text: String| text.parse::<Url>().map_err(|error| format!("the url is not valid: {error}"));
    let url = parsed(secrets.put_into(&http.url, "/url", &http.secrets)?)?;
    let plain = parsed(Secrets::stand_ins(&http.url, "/url", &http.secrets)?)?;
    if url.origin() != plain.origin() || url.host_str() != plain.host_str() {
        return Err("a secret in the url would change its scheme, host or port".to_owned());
    }
    Ok(url)
}

/// Inserts the secrets into every text of a body.
fn put_into(value: &mut Value, at: &str, http: &HttpRequest, secrets: &Secrets) -> Result<(), String> {
    if !http.secrets.iter().any(|secret| secret.at.starts_with(at)) {
        return Ok(());
    }
    match value {
        Value::String(text) => *text = secrets.put_into(text, at, &http.secrets)?,
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                put_into(item, &format!("{at}/{index}"), http, secrets)?;
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                put_into(field, &format!("{at}{}", pointer([name])), http, secrets)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn is_json(response: &Response) -> bool {
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.is_none_or(|content_type| content_type.to_ascii_lowercase().contains("json"))
}

pub(crate) fn value(body: &[u8], is_json: bool) -> Result<Value, String> {
    if body.is_empty() {
        return Ok(Value::Null);
    }
    let parsed = if is_json { json::answer(body)? } else { None };
    Ok(parsed.unwrap_or_else(|| Value::String(String::from_utf8_lossy(body).into_owned())))
}

fn refusal(status: StatusCode, location: Option<&str>, body: &[u8], only_reads: bool) -> TaskFailure {
    let retryable = matches!(status.as_u16(), 408 | 429 | 500..=599);
    // A server that reports a client error has done nothing, nor has one that asks for the same request elsewhere (307,
    // 308) or reports that nothing has changed (304). One that reports a server error may have acted before it failed,
    // and one that redirects otherwise may have acted and name where the result is.
    let leads_on = status.is_redirection() && !matches!(status.as_u16(), 304 | 307 | 308);
    let may_have_acted = status.is_server_error() || (leads_on && !only_reads);
    let tell = if may_have_acted { uncertain } else { failed };
    let to = location.map(|location| format!(" (redirects to {location})")).unwrap_or_default();
    tell(http_client::refusal(status, body, MAX_DETAIL) + &to, retryable)
}

/// Converts an error without a complete response to a failure. Unless the request failed before it was connected, it
/// may have taken effect.
fn unreached(error: &reqwest::Error) -> TaskFailure {
    match cause(error) {
        Cause::Refused(why) => failed(why, false),
        Cause::Failed(why) if error.is_builder() => failed(format!("the request failed: {why}"), false),
        Cause::Failed(why) if error.is_connect() => failed(format!("the request failed: {why}"), true),
        Cause::Failed(_) if error.is_timeout() => uncertain("no answer within the tool's timeout", true),
        Cause::Failed(why) => uncertain(format!("the request failed: {why}"), true),
    }
}
