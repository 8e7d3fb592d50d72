//! HTTP tools: a request made of templates.

use std::collections::HashMap;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode, Url};
use serde_json::Value;
use shared::definition::HttpTool;

use super::{Error, MAX_RESULT, Secrets, failed};
use crate::engine::{TaskFailure, ToolRequest};
use crate::flow::{EvalError, Scope, Templates};
use crate::guard::{Cause, Clients, cause};
use crate::json;

/// How much of a refusal's body is told.
const MAX_DETAIL: usize = 500;

/// Makes HTTP requests.
pub(super) struct Http {
    clients: Clients,
    secrets: Secrets,
    templates: Templates,
}

impl Http {
    pub(super) fn new(allowed_hosts: &[String], secrets: Secrets) -> Result<Self, Error> {
        Ok(Self { clients: Clients::new(allowed_hosts)?, secrets, templates: Templates::default() })
    }

    pub(super) async fn call(&self, tool: &HttpTool, request: &ToolRequest) -> Result<Value, TaskFailure> {
        let scope = self.secrets.scope(&request.scope);
        let rendered = Rendered::of(&self.templates, tool, request, &scope)?;
        let client = self.clients.of(&rendered.url).map_err(|refused| failed(refused.to_string(), false))?;
        let mut builder = client
            .request(rendered.method, rendered.url)
            .timeout(request.tool.timeout().0)
            .header("idempotency-key", &request.idempotency_key);
        if let Some((content_type, body)) = rendered.body {
            builder = builder.header(CONTENT_TYPE, content_type).body(body);
        }
        // Last, and replacing: what the flow says wins.
        let response = builder.headers(rendered.headers).send().await.map_err(|error| unreached(&error))?;
        let status = response.status();
        let is_json = is_json(&response);
        let body = read(response).await?;
        if status.is_success() { value(&body, is_json) } else { Err(refusal(status, &body)) }
    }
}

/// A request with its templates rendered.
struct Rendered {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<(&'static str, String)>,
}

impl Rendered {
    fn of(templates: &Templates, tool: &HttpTool, request: &ToolRequest, scope: &Scope) -> Result<Self, TaskFailure> {
        let broken = |what: &str, error: EvalError| failed(format!("the {what} cannot be rendered: {error}"), false);
        let text = |what: &str, template: &str| templates.render(template, scope).map_err(|error| broken(what, error));
        let method = text("method", &tool.method)?.to_ascii_uppercase();
        let method: Method = method.parse().map_err(|_| failed(format!("`{method}` is not an HTTP method"), false))?;
        // The text of a URL may hold a secret: it is not repeated.
        let url: Url = text("url", &tool.url)?
            .trim()
            .parse()
            .map_err(|error| failed(format!("the url is not valid: {error}"), false))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(failed(format!("`{}` urls are not supported: use http or https", url.scheme()), false));
        }
        let headers: HashMap<String, String> = tool
            .headers
            .iter()
            .map(|(name, template)| Ok((name.clone(), text(name, template)?)))
            .collect::<Result<_, TaskFailure>>()?;
        let headers = headers
            .iter()
            .map(|(name, value)| {
                let invalid = || failed(format!("the header `{name}` is not valid"), false);
                let name = name.parse::<HeaderName>().map_err(|_| invalid())?;
                let mut value = HeaderValue::from_str(value).map_err(|_| invalid())?;
                value.set_sensitive(true);
                Ok((name, value))
            })
            .collect::<Result<HeaderMap, TaskFailure>>()?;
        let body = match &tool.body {
            Some(template) => {
                Some(body(templates.render_value(template, scope).map_err(|error| broken("body", error))?))
            }
            None if matches!(method, Method::GET | Method::HEAD) => None,
            None => Some(body(Value::Object(request.arguments.clone()))),
        };
        Ok(Self { method, url, headers, body })
    }
}

/// A text is sent as it is; everything else as JSON.
fn body(value: Value) -> (&'static str, String) {
    match value {
        Value::String(text) => ("text/plain; charset=utf-8", text),
        other => ("application/json", other.to_string()),
    }
}

fn is_json(response: &Response) -> bool {
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.is_none_or(|content_type| content_type.to_ascii_lowercase().contains("json"))
}

async fn read(mut response: Response) -> Result<Vec<u8>, TaskFailure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unreached(&error))? {
        if body.len() + chunk.len() > MAX_RESULT {
            return Err(failed(format!("the answer is larger than {MAX_RESULT} bytes"), false));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

pub(crate) fn value(body: &[u8], is_json: bool) -> Result<Value, TaskFailure> {
    if body.is_empty() {
        return Ok(Value::Null);
    }
    let parsed = if is_json { json::answer(body) } else { Ok(None) };
    let parsed = parsed.map_err(|why| failed(format!("the answer is {why}"), false))?;
    Ok(parsed.unwrap_or_else(|| Value::String(String::from_utf8_lossy(body).into_owned())))
}

fn refusal(status: StatusCode, body: &[u8]) -> TaskFailure {
    let retryable = matches!(status.as_u16(), 408 | 429 | 500..=599);
    let detail: String = String::from_utf8_lossy(body).trim().chars().take(MAX_DETAIL).collect();
    let colon = if detail.is_empty() { "" } else { ": " };
    failed(format!("HTTP {status}{colon}{detail}"), retryable)
}

/// No whole answer came.
fn unreached(error: &reqwest::Error) -> TaskFailure {
    match cause(error) {
        Cause::Refused(why) => failed(why, false),
        Cause::Failed(_) if error.is_timeout() => failed("no answer within the tool's timeout", true),
        Cause::Failed(why) => failed(format!("the request failed: {why}"), !error.is_builder()),
    }
}
