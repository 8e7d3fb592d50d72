//! Real models: OpenAI and whatever speaks like it, Anthropic, and Ollama.
//!
//! The kind of server is taken from the provider that the flow names, never guessed from the model's name.

use std::sync::Arc;

use ::genai::adapter::AdapterKind;
use ::genai::chat::{
    ChatMessage, ChatOptions, ChatRequest, ChatStreamEvent, ContentPart, JsonSpec, MessageContent, Tool, ToolCall,
    ToolResponse, Usage,
};
use ::genai::resolver::{AuthData, Endpoint};
use ::genai::{Client, ModelIden, ServiceTarget};
use async_trait::async_trait;
use futures::StreamExt;
use serde_json::{Value, json};

use super::price::Tokens;
use super::{Error, Model, OnText, Options, failed};
use crate::engine::{Message, ModelAnswer, ModelRequest, ModelToolCall, TaskFailure};
use crate::limits::MAX_BYTES;

const OPENAI_URL: &str = "https://api.openai.com/v1";
const ANTHROPIC_URL: &str = "https://api.anthropic.com";
const OLLAMA_URL: &str = "http://localhost:11434";

/// How much of a provider's own words goes into a message.
const MAX_DETAIL: usize = 500;

/// Models over HTTP.
pub struct Genai {
    client: Client,
    options: Options,
}

impl Genai {
    /// Calls models with these settings.
    pub fn new(options: Options) -> Result<Self, Error> {
        // Two TLS providers are compiled in by dependencies: one must be named. Fails only where one is named already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::new().map_err(|error| Error::Client(error.to_string()))?;
        Ok(Self { client, options })
    }

    fn target(&self, model: &str) -> Result<ServiceTarget, TaskFailure> {
        let Some((provider, name)) = model.split_once('/') else {
            return Err(failed(format!("the model `{model}` is not written as provider/model"), false));
        };
        let (kind, url, auth) = match provider {
            "openai" => (
                AdapterKind::OpenAI,
                with_slash(self.options.openai_url.as_deref().unwrap_or(OPENAI_URL)),
                key(self.options.openai_key.as_deref(), "OPENAI_API_KEY", model)?,
            ),
            "anthropic" => (
                AdapterKind::Anthropic,
                format!("{}v1/", with_slash(self.options.anthropic_url.as_deref().unwrap_or(ANTHROPIC_URL))),
                key(self.options.anthropic_key.as_deref(), "ANTHROPIC_API_KEY", model)?,
            ),
            "ollama" => (
                AdapterKind::Ollama,
                ollama_url(self.options.ollama_host.as_deref().unwrap_or(OLLAMA_URL)),
                AuthData::None,
            ),
            other => {
                return Err(failed(
                    format!("no provider is called `{other}`: use openai, anthropic, ollama or demo"),
                    false,
                ));
            }
        };
        Ok(ServiceTarget {
            endpoint: Endpoint::from_owned(Arc::<str>::from(url)),
            auth,
            model: ModelIden::new(kind, name.to_owned()),
        })
    }

    async fn stream(&self, request: &ModelRequest, on_text: &OnText<'_>) -> Result<ModelAnswer, TaskFailure> {
        let target = self.target(&request.model)?;
        let price = self.options.prices.for_call(request)?;
        let describe = |error: ::genai::Error| self.failure(&request.model, &error);
        let mut events = self
            .client
            .exec_chat_stream(target, chat_request(request), Some(&chat_options(request)))
            .await
            .map_err(describe)?
            .stream;
        let mut text = String::new();
        while let Some(event) = events.next().await {
            match event.map_err(describe)? {
                ChatStreamEvent::Chunk(chunk) => {
                    if text.len() + chunk.content.len() > MAX_BYTES {
                        let message =
                            format!("the answer of `{}` is more than {MAX_BYTES} bytes of text", request.model);
                        return Err(failed(message, false));
                    }
                    on_text(&chunk.content);
                    text.push_str(&chunk.content);
                }
                ChatStreamEvent::End(mut end) => {
                    let used = end.captured_usage.take().map(|usage| used(&usage)).unwrap_or_default();
                    if request.budget.is_some() && used.total() == 0 {
                        let message = format!(
                            "agent `{}` has a budget, but the server of `{}` does not say how many tokens it used",
                            request.agent, request.model
                        );
                        return Err(failed(message, false));
                    }
                    // Priced this once: what is on the record stays, whatever the settings become.
                    let cost_usd = price.map_or(0.0, |price| price.cost_usd(used));
                    let tokens = used.total();
                    let calls = end.captured_into_tool_calls().unwrap_or_default();
                    let calls = calls.into_iter().map(model_call).collect();
                    return Ok(ModelAnswer { text, calls, tokens, cost_usd, ..ModelAnswer::default() });
                }
                _ => {}
            }
        }
        Err(failed(format!("the answer of `{}` broke off", request.model), true))
    }

    /// What went wrong, without what was sent, and without keys.
    fn failure(&self, model: &str, error: &::genai::Error) -> TaskFailure {
        use ::genai::Error;
        use ::genai::webc::Error as Web;

        // What fails inside a stream is wrapped once more.
        let error = match error {
            Error::WebStream { error: inner, .. } => inner.downcast_ref::<Error>().unwrap_or(error),
            error => error,
        };
        let status = error.status().map(|status| status.as_u16());
        let (detail, retryable) = match error {
            Error::HttpError { body, .. } => (body.clone(), false),
            Error::WebModelCall { webc_error, .. } | Error::WebAdapterCall { webc_error, .. } => match webc_error {
                Web::ResponseFailedStatus { body, .. } => (body.clone(), false),
                Web::ResponseFailedNotJson { .. } | Web::ResponseFailedInvalidJson { .. } => {
                    ("its answer is not JSON".to_owned(), true)
                }
                Web::Reqwest(error) => (error.to_string(), !error.is_builder()),
                Web::JsonValueExt(_) => ("its answer has another form than expected".to_owned(), false),
            },
            Error::WebStream { cause, .. } => (cause.clone(), true),
            // An error that the provider sends inside a stream has no status: what it is called tells.
            Error::ChatResponse { body, .. } => {
                let body = body.to_string();
                let passing = ["overloaded", "rate_limit", "server_error", "api_error", "timeout"];
                let retryable = passing.iter().any(|word| body.contains(word));
                (body, retryable)
            }
            Error::StreamParse { .. } => ("its answer has another form than expected".to_owned(), true),
            Error::ChatResponseGeneration { cause, .. } => (cause.clone(), false),
            other => (other.to_string(), false),
        };
        let retryable = status.map_or(retryable, |status| matches!(status, 408 | 409 | 429 | 500..));
        let status = status.map_or_else(String::new, |status| format!(" (HTTP {status})"));
        let detail: String = self.without_keys(detail.trim()).chars().take(MAX_DETAIL).collect();
        failed(format!("the model `{model}` failed{status}: {detail}"), retryable)
    }

    fn without_keys(&self, text: &str) -> String {
        let keys = [&self.options.openai_key, &self.options.anthropic_key];
        keys.into_iter().flatten().fold(text.to_owned(), |text, key| text.replace(key.as_str(), "***"))
    }
}

#[async_trait]
impl Model for Genai {
    async fn call(&self, request: &ModelRequest, on_text: &OnText<'_>) -> Result<ModelAnswer, TaskFailure> {
        let limit = self.options.timeout;
        tokio::time::timeout(limit, self.stream(request, on_text)).await.unwrap_or_else(|_| {
            Err(failed(format!("the model `{}` took longer than {} s", request.model, limit.as_secs()), true))
        })
    }
}

fn key(key: Option<&str>, variable: &str, model: &str) -> Result<AuthData, TaskFailure> {
    key.map(AuthData::from_single).ok_or_else(|| {
        failed(format!("the model `{model}` needs a key: set {variable} where the server starts"), false)
    })
}

fn with_slash(url: &str) -> String {
    format!("{}/", url.trim_end_matches('/'))
}

/// Ollama's variable may be a URL, a host, or a host with a port.
fn ollama_url(host: &str) -> String {
    match host {
        url if url.contains("://") => with_slash(url),
        host if host.contains(':') => with_slash(&format!("http://{host}")),
        host => with_slash(&format!("http://{host}:11434")),
    }
}

fn chat_options(request: &ModelRequest) -> ChatOptions {
    let mut options = ChatOptions::default().with_capture_usage(true).with_capture_tool_calls(true);
    if let Some(temperature) = request.temperature {
        options = options.with_temperature(temperature);
    }
    if let Some(max_tokens) = request.max_tokens {
        options = options.with_max_tokens(max_tokens);
    }
    if let Some(schema) = &request.output_schema {
        options = options.with_response_format(JsonSpec::new("answer", schema.clone()));
    }
    options
}

fn chat_request(request: &ModelRequest) -> ChatRequest {
    let mut chat = ChatRequest::new(request.messages.iter().map(chat_message).collect());
    if let Some(instructions) = &request.instructions {
        chat = chat.with_system(instructions);
    }
    if !request.tools.is_empty() {
        chat = chat.with_tools(request.tools.iter().map(|spec| {
            let mut tool = Tool::new(spec.name.clone());
            tool.description.clone_from(&spec.description);
            // Providers insist on an object, even where a tool takes nothing.
            let empty = || json!({ "type": "object", "properties": {} });
            tool.schema = Some(spec.parameters.clone().unwrap_or_else(empty));
            tool
        }));
    }
    chat
}

fn chat_message(message: &Message) -> ChatMessage {
    match message {
        Message::User { text } => ChatMessage::user(text),
        Message::Assistant { text, calls } => {
            let text = (!text.is_empty()).then(|| ContentPart::from_text(text));
            let calls = calls.iter().map(|call| {
                ContentPart::ToolCall(ToolCall {
                    call_id: call.provider_id.clone(),
                    fn_name: call.tool.clone(),
                    fn_arguments: call.arguments.clone(),
                    thought_signatures: None,
                })
            });
            let parts: Vec<ContentPart> = text.into_iter().chain(calls).collect();
            ChatMessage::assistant(MessageContent::from_parts(parts))
        }
        Message::Tool { provider_id, tool, content } => {
            let content = match content {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            ToolResponse::new(provider_id, content).with_fn_name(tool).into()
        }
    }
}

pub(crate) fn model_call(call: ToolCall) -> ModelToolCall {
    // A tool that takes nothing is often called with an empty text instead of an object.
    let arguments = match call.fn_arguments {
        Value::Null => json!({}),
        Value::String(text) if text.trim().is_empty() => json!({}),
        other => other,
    };
    ModelToolCall { provider_id: call.call_id, tool: call.fn_name, arguments }
}

/// What is neither input nor named as output is output, which costs more.
fn used(usage: &Usage) -> Tokens {
    let count = |tokens: Option<i32>| u64::try_from(tokens.unwrap_or(0)).unwrap_or(0);
    let input = count(usage.prompt_tokens);
    let output = count(usage.completion_tokens).max(count(usage.total_tokens).saturating_sub(input));
    Tokens { input, output }
}
