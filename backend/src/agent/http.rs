//! Models over HTTP: finds the server of a model, sends it a turn, reads the streamed answer, and interprets failures.
//! Nothing here writes to the log: requests and answers belong to the run only.
//!
//! The part of a model's name before the `/` is the kind of server, which is never guessed. The rest is the name that
//! the server gets, unchanged.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};
use serde_json::Value;
use shared::time::Span;

use super::answer::{AnswerBuilder, AnswerFault, End};
use super::anthropic::{self, Anthropic};
use super::frames::{Frames, broken_off};
use super::ollama::Ollama;
use super::openai::OpenAi;
use super::wire::{self, Wire};
use super::{Error, Model, ModelOptions, OnText, failed};
use crate::engine::{ModelAnswer, ModelRequest, ModelUsage, TaskFailure};
use crate::http_client::{self, retry_after};
use crate::limits::{LONG_INTEGER, MAX_BYTES};

const OPENAI_URL: &str = "https://api.openai.com/v1";
const ANTHROPIC_URL: &str = "https://api.anthropic.com";
const OLLAMA_URL: &str = "http://localhost:11434";

/// The timeout for connecting.
const CONNECT: Duration = Duration::from_secs(10);
/// The maximum number of bytes read of a refusal.
const MAX_REFUSAL: usize = 64 * 1024;
/// The maximum length of the provider's own message in a failure, in characters.
const MAX_DETAIL: usize = 500;

/// Kinds of errors in the middle of an answer for which a retry does not help.
const LASTING: [&str; 6] =
    ["invalid_request", "authentication", "permission", "not_found", "insufficient_quota", "context_length"];

/// The client for models over HTTP.
pub struct HttpModels {
    client: Client,
    options: ModelOptions,
}

/// The address and the protocol of a model's server.
struct ModelEndpoint {
    url: Url,
    headers: HeaderMap,
    wire: Box<dyn Wire>,
}

impl HttpModels {
    /// Creates the client with these settings.
    pub fn new(options: ModelOptions) -> Result<Self, Error> {
        let client = http_client::builder().connect_timeout(CONNECT).build();
        Ok(Self { client: client.map_err(|error| Error::Client(error.to_string()))?, options })
    }

    /// Returns the server of a model, and the model's name there.
    fn server<'m>(&self, model: &'m str) -> Result<(ModelEndpoint, &'m str), TaskFailure> {
        let Some((provider, name)) = model.split_once('/') else {
            return Err(failed(format!("the model `{model}` must be written as provider/model"), false));
        };
        let options = &self.options;
        let server = match provider {
            "openai" => {
                let url = below(options.openai_url.as_deref().unwrap_or(OPENAI_URL), &["chat", "completions"])?;
                let headers = key(AUTHORIZATION, "Bearer ", options.openai_key.as_deref(), "OPENAI_API_KEY", model)?;
                let wire = Box::new(OpenAi::at(&url));
                ModelEndpoint { url, headers, wire }
            }
            "anthropic" => {
                let name = HeaderName::from_static("x-api-key");
                let mut headers = key(name, "", options.anthropic_key.as_deref(), "ANTHROPIC_API_KEY", model)?;
                headers.insert("anthropic-version", HeaderValue::from_static(anthropic::VERSION));
                let url = below(options.anthropic_url.as_deref().unwrap_or(ANTHROPIC_URL), &["v1", "messages"])?;
                ModelEndpoint { url, headers, wire: Box::new(Anthropic) }
            }
            "ollama" => ModelEndpoint {
                url: below(&ollama_url(options.ollama_host.as_deref().unwrap_or(OLLAMA_URL)), &["api", "chat"])?,
                headers: HeaderMap::new(),
                wire: Box::new(Ollama),
            },
            other => {
                let message = format!("there is no provider `{other}`: use openai, anthropic, ollama or demo");
                return Err(failed(message, false));
            }
        };
        Ok((server, name))
    }

    /// Sends a turn, and reads the answer up to its end.
    async fn turn(
        &self,
        (endpoint, name): (ModelEndpoint, &str),
        request: &ModelRequest,
        answer: &mut AnswerBuilder<'_>,
    ) -> Result<(), TaskFailure> {
        let ModelEndpoint { url, headers, wire } = endpoint;
        let faulty = |fault| self.fault(&request.model, fault);
        let sent = self.client.post(url).headers(headers).json(&wire.body(request, name)).send().await;
        let response = sent.map_err(|error| faulty(broken_off(&error)))?;
        if !response.status().is_success() {
            return Err(self.refused(&request.model, response).await);
        }
        read_answer(&*wire, response, answer).await.map_err(faulty)
    }

    /// Converts a refusal to a failure.
    async fn refused(&self, model: &str, response: Response) -> TaskFailure {
        let status = response.status();
        let after = retry_after(response.headers());
        let said = http_client::beginning(response, MAX_REFUSAL).await;
        let said = String::from_utf8_lossy(&said).into_owned();
        let (kind, detail) = match serde_json::from_str::<Value>(&said) {
            Ok(value) => match wire::failed(value.get("error").unwrap_or(&value)) {
                AnswerFault::Failed { kind, message } => (kind, message),
                _ => (String::new(), said),
            },
            Err(_) => (String::new(), said),
        };
        // Providers refuse an exhausted quota with the same status as too high a rate.
        let retryable = matches!(status.as_u16(), 408 | 409 | 429 | 500..) && kind != "insufficient_quota";
        let message = format!("the model `{model}` failed (HTTP {}): {}", status.as_u16(), self.excerpt(&detail));
        let hint = if status == StatusCode::UNAUTHORIZED { "; is its key right?" } else { "" };
        TaskFailure {
            retry_after: after.filter(|_| retryable).map(Span),
            ..failed(format!("{message}{hint}"), retryable)
        }
    }

    /// Converts a fault to a failure.
    fn fault(&self, model: &str, fault: AnswerFault) -> TaskFailure {
        match fault {
            AnswerFault::BrokenOff(why) if why.is_empty() => {
                failed(format!("the answer of `{model}` ended before it was complete"), true)
            }
            AnswerFault::BrokenOff(why) => {
                failed(format!("the model `{model}` failed: the connection was lost: {}", self.excerpt(&why)), true)
            }
            AnswerFault::Form => {
                let message = format!("the model `{model}` answered in an unexpected format; is its address right?");
                failed(message, false)
            }
            AnswerFault::LongInteger => failed(format!("the answer of `{model}` is not used: {LONG_INTEGER}"), true),
            AnswerFault::TooLarge => failed(format!("the answer of `{model}` is more than {MAX_BYTES} bytes"), false),
            AnswerFault::Failed { kind, message } => {
                let retryable = !LASTING.iter().any(|lasting| kind.contains(lasting));
                failed(format!("the model `{model}` failed: {}", self.excerpt(&message)), retryable)
            }
            AnswerFault::CutOff => failed(
                format!(
                    "the answer of `{model}` was cut off at its token limit; raise the agent's `max_tokens`, or ask \
                     for less"
                ),
                true,
            ),
            AnswerFault::Declined(why) if why.is_empty() => {
                failed(format!("the model `{model}` declined to answer"), false)
            }
            AnswerFault::Declined(why) => {
                failed(format!("the model `{model}` declined to answer: {}", self.excerpt(&why)), false)
            }
        }
    }

    /// Returns the beginning of a provider's message, with keys masked.
    fn excerpt(&self, words: &str) -> String {
        let keys = [&self.options.openai_key, &self.options.anthropic_key];
        let excerpt =
            keys.into_iter().flatten().fold(words.trim().to_owned(), |excerpt, key| excerpt.replace(&**key, "***"));
        excerpt.chars().take(MAX_DETAIL).collect()
    }
}

#[async_trait::async_trait]
impl Model for HttpModels {
    async fn call(&self, request: &ModelRequest, on_text: &OnText<'_>) -> Result<ModelAnswer, TaskFailure> {
        let server = self.server(&request.model)?;
        let price = self.options.prices.for_call(request)?;
        let limit = self.options.timeout;
        let mut answer = AnswerBuilder::new(on_text);
        let read = tokio::time::timeout(limit, self.turn(server, request, &mut answer)).await.unwrap_or_else(|_| {
            Err(failed(format!("the model `{}` took longer than {} s", request.model, limit.as_secs()), true))
        });
        // The cost is computed once, and a later change of prices does not alter what is recorded.
        let used = answer.used;
        let (tokens, cost_usd) = (used.total(), price.map_or(0.0, |price| price.cost_usd(used)));
        match read.and_then(|()| answer.finish().map_err(|fault| self.fault(&request.model, fault))) {
            Ok(_) if request.budget.is_some() && tokens == 0 => {
                let message = format!(
                    "agent `{}` has a budget, but the provider of `{}` does not report how many tokens it used",
                    request.agent, request.model
                );
                Err(failed(message, false))
            }
            Ok((text, calls)) => Ok(ModelAnswer { text, calls, tokens, cost_usd, ..ModelAnswer::default() }),
            Err(failure) => {
                let usage = (tokens > 0).then(|| ModelUsage { tokens, cost_usd, ..ModelUsage::default() });
                Err(TaskFailure { usage, ..failure })
            }
        }
    }
}

/// Reads an answer up to its end.
async fn read_answer(wire: &dyn Wire, response: Response, answer: &mut AnswerBuilder<'_>) -> Result<(), AnswerFault> {
    let mut frames = Frames::new(wire.framing(), response);
    while let Some(frame) = frames.next().await? {
        wire.take(&frame, answer)?;
        if answer.end == End::Over {
            return Ok(());
        }
    }
    if answer.end == End::Complete { Ok(()) } else { Err(AnswerFault::BrokenOff(String::new())) }
}

/// Builds the header with the key. Fails if the key is missing or contains invalid characters.
fn key(
    header: HeaderName,
    before: &str,
    key: Option<&str>,
    variable: &str,
    model: &str,
) -> Result<HeaderMap, TaskFailure> {
    let key = key.ok_or_else(|| {
        failed(format!("the model `{model}` needs a key: set {variable} in the server's environment"), false)
    })?;
    let mut value = HeaderValue::from_str(&format!("{before}{key}"))
        .map_err(|_| failed(format!("the key in {variable} contains invalid characters"), false))?;
    value.set_sensitive(true);
    Ok(HeaderMap::from_iter([(header, value)]))
}

/// Appends a path to an address, which may end with a slash and may have a query.
fn below(base: &str, path: &[&str]) -> Result<Url, TaskFailure> {
    let unusable = || failed("the address of the model's server is not an http or https URL", false);
    let mut url = Url::parse(base).map_err(|_| unusable())?;
    url.path_segments_mut().map_err(|()| unusable())?.pop_if_empty().extend(path);
    Ok(url)
}

/// Completes the value of `OLLAMA_HOST`, which may be a URL, a host, or a host with a port.
fn ollama_url(host: &str) -> String {
    match host {
        url if url.contains("://") => url.to_owned(),
        host if host.contains(':') => format!("http://{host}"),
        host => format!("http://{host}:11434"),
    }
}
