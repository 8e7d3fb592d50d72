//! The request of a call, which is rendered once when the call is made, before any gate. The same request is shown,
//! digested and sent; later changes of the state do not affect it.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Method, Url};
use serde_json::Value;
use shared::JsonMap;
use shared::definition::{HttpTool, Tool, ToolKind};
use shared::error::pointer;
use shared::id::NodeId;
use shared::request::{HttpRequest, Request, SecretUse};

use super::builder::Builder;
use super::conversation::{ToolCall, ToolCallState};
use super::digest;
use super::phase::Phase;
use super::scope::{self, Visit};
use super::state::RunState;
use crate::flow::{Compiled, EvalError, Scope};
use crate::limits;

/// Headers that belong to the connection, and that a tool may not set.
const OWN_HEADERS: [&str; 6] = ["host", "content-length", "transfer-encoding", "connection", "upgrade", "te"];

/// A rendered request, with the values of the scope that its templates read besides the arguments: an edit of the
/// arguments renders it again from the same values.
#[derive(Debug, PartialEq)]
pub(super) struct Rendered {
    pub request: Request,
    pub reads: JsonMap,
}

/// Renders what a call of a tool sends. `flow` is the flow of the tool. Error messages contain no secret.
pub(super) fn render(flow: &Compiled, tool: &Tool, arguments: &JsonMap, scope: &Scope) -> Result<Rendered, String> {
    let (request, reads) = match &tool.kind {
        ToolKind::Http(http) => {
            let reads = reads(flow, http, scope);
            let mut seen = reads.clone();
            seen.insert("arguments".to_owned(), Value::Object(arguments.clone()));
            (Request::Http(http_request(flow, http, arguments, &Scope(seen))?), reads)
        }
        ToolKind::Mcp(mcp) => (Request::Mcp { server: mcp.server.clone(), tool: mcp.tool.clone() }, JsonMap::new()),
        ToolKind::Builtin(builtin) => (Request::Builtin { builtin: *builtin }, JsonMap::new()),
        ToolKind::Agent(agent) => (Request::Agent { agent: agent.clone() }, JsonMap::new()),
        ToolKind::Function => (Request::Function, JsonMap::new()),
    };
    Ok(Rendered { request, reads })
}

/// Returns the values of a scope that a tool's templates read, except arguments and secrets.
fn reads(flow: &Compiled, http: &HttpTool, scope: &Scope) -> JsonMap {
    let mut names = BTreeSet::new();
    let mut visit = |text: &str| names.extend(flow.templates().names(text));
    visit(&http.method);
    visit(&http.url);
    http.headers.values().for_each(|value| visit(value));
    http.body.iter().for_each(|body| strings(body, &mut visit));
    names.remove("arguments");
    let read = names.into_iter().filter_map(|name| scope.0.get(&name).cloned().map(|value| (name, value)));
    read.collect()
}

fn strings(value: &Value, visit: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, visit)),
        Value::Object(fields) => fields.values().for_each(|field| strings(field, visit)),
        _ => {}
    }
}

/// Returns the digest of the values that a call's templates read, without `env`: the part of its request that does not
/// follow from its arguments. `None` if there are no such values.
pub(super) fn reads_digest(reads: &JsonMap) -> Option<String> {
    let mut reads = reads.clone();
    reads.remove("env");
    (!reads.is_empty()).then(|| digest::of_value(&Value::Object(reads)))
}

fn http_request(flow: &Compiled, tool: &HttpTool, arguments: &JsonMap, scope: &Scope) -> Result<HttpRequest, String> {
    let templates = flow.templates();
    let failed = |what: &str, error: &EvalError| format!("the {what} cannot be rendered: {error}");
    let mut secrets = Vec::new();
    let method = templates.render_request_text(&tool.method, scope, "/method", &mut secrets);
    let method = method.map_err(|error| failed("method", &error))?.to_ascii_uppercase();
    if !secrets.is_empty() {
        return Err("the method cannot contain a secret".to_owned());
    }
    let method: Method = method.parse().map_err(|_| format!("`{method}` is not an HTTP method"))?;
    let url = templates.render_request_text(&tool.url, scope, "/url", &mut secrets);
    let url = self::url(&url.map_err(|error| failed("url", &error))?, &mut secrets)?;
    let mut headers = BTreeMap::new();
    for (name, template) in &tool.headers {
        let invalid = || format!("the header `{name}` is not valid");
        let header: HeaderName = name.parse().map_err(|_| invalid())?;
        if OWN_HEADERS.contains(&header.as_str()) {
            return Err(format!("the server sets the header `{name}`: leave it out"));
        }
        let (at, from) = (pointer(["headers", header.as_str()]), secrets.len());
        let value = templates.render_request_text(template, scope, &at, &mut secrets);
        let value = value.map_err(|error| failed(name, &error))?;
        HeaderValue::from_str(&with_stand_ins(&value, &secrets[from..], |_| "x".to_owned())).map_err(|_| invalid())?;
        if headers.insert(header.as_str().to_owned(), value).is_some() {
            return Err(format!("the header `{name}` is set twice"));
        }
    }
    let body = match &tool.body {
        Some(template) => {
            let body = templates.render_request_value(template, scope, "/body", &mut secrets);
            Some(body.map_err(|error| failed("body", &error))?)
        }
        None if matches!(method, Method::GET | Method::HEAD) => None,
        None => Some(Value::Object(arguments.clone())),
    };
    if let Some(body) = &body {
        limits::check(body).map_err(|exceeded| format!("the body is {exceeded}"))?;
        let content_type = if body.is_string() { "text/plain; charset=utf-8" } else { "application/json" };
        headers.entry("content-type".to_owned()).or_insert_with(|| content_type.to_owned());
    }
    Ok(HttpRequest { method: method.to_string(), url, headers, body, secrets })
}

/// Returns the URL as it will be sent, in its normal form, and moves the places of secrets accordingly. The host must
/// not depend on a secret.
fn url(rendered: &str, secrets: &mut [SecretUse]) -> Result<String, String> {
    let text = rendered.trim();
    if text.contains(char::is_control) {
        return Err("the url has a line break or another control character in it".to_owned());
    }
    let offset = u32::try_from(rendered.len() - rendered.trim_start().len()).unwrap_or(u32::MAX);
    for secret in secrets.iter_mut() {
        (secret.start, secret.end) = (secret.start.saturating_sub(offset), secret.end.saturating_sub(offset));
    }
    // A placeholder of a secret occurs nowhere else in the URL, and is not changed by normalisation. There are more
    // candidates than places in the text, so one of them is free.
    let lower = text.to_lowercase();
    let stand_in = (0..=lower.len()).map(|number| format!("secret{number}x")).find(|own| !lower.contains(own.as_str()));
    let stand_in = stand_in.unwrap_or_default();
    let mut url: Url = with_stand_ins(text, secrets, |index| format!("{stand_in}{index}x"))
        .parse()
        .map_err(|error| format!("the url is not valid: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("`{}` urls are not supported: use http or https", url.scheme()));
    }
    let host = url.host_str().unwrap_or_default();
    if host.is_empty() || (!secrets.is_empty() && host.contains(&stand_in)) {
        return Err("the host of the url cannot contain a secret".to_owned());
    }
    // A fragment is never sent.
    url.set_fragment(None);
    let (mut shown, mut rest) = (String::new(), url.as_str());
    for (index, secret) in secrets.iter_mut().enumerate() {
        let Some((before, after)) = rest.split_once(&format!("{stand_in}{index}x")) else {
            return Err(format!("the secret `{}` is not part of the url that would be sent", secret.name));
        };
        shown.push_str(before);
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        secret.start = place(shown.len());
        shown.push_str(&SecretUse::shown(&secret.name));
        secret.end = place(shown.len());
        rest = after;
    }
    shown.push_str(rest);
    Ok(shown)
}

/// Replaces each secret in a text with a placeholder.
fn with_stand_ins(text: &str, secrets: &[SecretUse], stand_in: impl Fn(usize) -> String) -> String {
    let (mut all, mut done) = (String::new(), 0);
    for (index, secret) in secrets.iter().enumerate() {
        let (start, end) = (secret.start as usize, secret.end as usize);
        all.push_str(text.get(done..start).unwrap_or_default());
        all.push_str(&stand_in(index));
        done = end;
    }
    all.push_str(text.get(done..).unwrap_or_default());
    all
}

/// Renders the request of a call in a flow with nothing but its tool, for tests of tools.
#[cfg(test)]
pub fn request_of(tool: &Value, arguments: &Value, scope: &Value) -> Result<Request, String> {
    let flow = serde_json::json!({ "id": "f", "tools": { "t": tool }, "nodes": { "n": { "tool": "t" } } });
    let flow = Compiled::new(serde_json::from_value(flow).expect("a flow"), 1).expect("a sound flow");
    let map = |value: &Value| value.as_object().cloned().unwrap_or_default();
    render(&flow, &flow.flow.tools["t"], &map(arguments), &Scope(map(scope))).map(|rendered| rendered.request)
}

impl Builder<'_> {
    /// Returns the call with other arguments. Its request is rendered again, from the values that its templates read
    /// when it was made.
    pub(super) fn edited(&self, node: &NodeId, call: &ToolCall, arguments: &JsonMap) -> Result<ToolCall, String> {
        let flow = self.flow.of(node);
        let tool = flow.tool(&call.tool).ok_or_else(|| format!("there is no tool `{}`", call.tool))?;
        let Rendered { request, reads } = render(flow, &tool, arguments, &Scope(call.reads.clone()))?;
        let digest = digest::of_call(&call.tool, arguments, Some(&request));
        Ok(ToolCall { arguments: arguments.clone(), request: Some(request), reads, digest, ..call.clone() })
    }

    /// Renders the requests of calls that were made before requests were recorded.
    pub(super) fn record_requests(&mut self) {
        let mut all = Vec::new();
        for (number, branch) in &self.state.branches {
            let Some(step) = branch.phase.step() else { continue };
            let correction = match &branch.phase {
                Phase::Tool { correction, .. } => correction.as_deref(),
                _ => None,
            };
            for (index, call) in branch.phase.calls().iter().enumerate() {
                let recorded = recorded(self.flow, &self.state, &step.node, step.visit, correction, call);
                // If a request cannot be rendered, the call fails when it is to be executed.
                all.extend(recorded.and_then(Result::ok).map(|call| (*number, index, call)));
            }
        }
        for (branch, index, recorded) in all {
            let phase = self.state.branches.get_mut(&branch).map(|branch| &mut branch.phase);
            if let Some(call) = phase.and_then(|phase| phase.calls_mut().get_mut(index)) {
                *call = recorded;
            }
        }
    }
}

/// Returns a call from before requests were recorded with its request; `None` if it has one, is done, or differs from
/// what was approved. `Err` says why the request cannot be rendered.
pub(super) fn recorded(
    flow: &Compiled,
    state: &RunState,
    node: &NodeId,
    visit: u32,
    correction: Option<&str>,
    call: &ToolCall,
) -> Option<Result<ToolCall, String>> {
    let is_open = !matches!(call.state, ToolCallState::Done { .. });
    // A call whose arguments are not the approved ones must not become valid by this.
    if call.request.is_some() || !is_open || call.digest != digest::of_call(&call.tool, &call.arguments, None) {
        return None;
    }
    let tool = flow.of(node).tool(&call.tool)?;
    let seen = Visit { number: visit, correction, arguments: Some(&call.arguments), ..Visit::default() };
    let scope = scope::of(flow, state, node, seen);
    Some(render(flow.of(node), &tool, &call.arguments, &scope).map(|Rendered { request, reads }| {
        let digest = digest::of_call(&call.tool, &call.arguments, Some(&request));
        ToolCall { request: Some(request), reads, digest, ..call.clone() }
    }))
}
