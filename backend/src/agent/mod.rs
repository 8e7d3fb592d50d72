//! Models behind one small trait, which returns the answer of an agent's turn and its usage.

pub(crate) mod answer;
mod anthropic;
mod demo;
mod frames;
mod http;
mod ollama;
mod openai;
mod price;
mod prose;
mod schema;
mod verdict;
mod wire;

#[cfg(test)]
mod tests;

use std::time::Duration;

use async_trait::async_trait;
use shared::error::FlowCode;

use crate::engine::{ModelAnswer, ModelRequest, TaskFailure};

pub use demo::Demo;
pub use http::HttpModels;
pub use price::{Price, Prices};

/// A function that receives a model's text piece by piece.
pub type OnText<'a> = dyn Fn(&str) + Send + Sync + 'a;

/// A model that can take an agent's turn.
#[async_trait]
pub trait Model: Send + Sync {
    /// Carries out one turn. The answer has the whole text and the usage; `on_text` receives the text as it arrives.
    /// `duration_ms` stays 0, since the caller has the clock. Every failure has the code `MODEL_FAILED`.
    async fn call(&self, request: &ModelRequest, on_text: &OnText<'_>) -> Result<ModelAnswer, TaskFailure>;
}

/// The addresses and keys of models, which are never in a flow.
#[derive(Clone)]
pub struct ModelOptions {
    /// The key of `openai/…` (`OPENAI_API_KEY`).
    pub openai_key: Option<String>,
    /// The address of `openai/…` (`OPENAI_BASE_URL`); default: OpenAI. Any compatible server works.
    pub openai_url: Option<String>,
    /// The key of `anthropic/…` (`ANTHROPIC_API_KEY`).
    pub anthropic_key: Option<String>,
    /// The address of `anthropic/…`, without `/v1` (`ANTHROPIC_BASE_URL`); default: Anthropic.
    pub anthropic_url: Option<String>,
    /// The address of `ollama/…` (`OLLAMA_HOST`); default: this machine.
    pub ollama_host: Option<String>,
    /// The prices of tokens, by model.
    pub prices: Prices,
    /// The timeout of one call.
    pub timeout: Duration,
    /// The pause between two pieces of a demo model's text (`COUNTERSIGN_DEMO_PAUSE`, in milliseconds); all pauses
    /// together are at most 1.5 s.
    pub demo_pause: Duration,
}

impl Default for ModelOptions {
    fn default() -> Self {
        Self {
            openai_key: None,
            openai_url: None,
            anthropic_key: None,
            anthropic_url: None,
            ollama_host: None,
            prices: Prices::default(),
            timeout: Duration::from_mins(5),
            demo_pause: Duration::from_millis(12),
        }
    }
}

impl ModelOptions {
    /// Reads the settings from the environment; an empty variable counts as unset.
    pub fn from_env(variable: impl Fn(&str) -> Option<String>) -> Self {
        let get = |name: &str| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let default = Self::default();
        let pause = get("COUNTERSIGN_DEMO_PAUSE").and_then(|text| text.parse().ok()).map(Duration::from_millis);
        Self {
            demo_pause: pause.unwrap_or(default.demo_pause),
            openai_key: get("OPENAI_API_KEY"),
            openai_url: get("OPENAI_BASE_URL"),
            anthropic_key: get("ANTHROPIC_API_KEY"),
            anthropic_url: get("ANTHROPIC_BASE_URL"),
            ollama_host: get("OLLAMA_HOST"),
            ..default
        }
    }
}

/// The reason why models could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The HTTP client could not be built.
    #[error("the HTTP client for models: {0}")]
    Client(String),
}

/// All models, dispatched by the provider before the `/`.
pub struct Models {
    demo: Demo,
    over_http: HttpModels,
}

impl Models {
    /// Creates the models of these settings.
    pub fn new(options: ModelOptions) -> Result<Self, Error> {
        Ok(Self { demo: Demo::new(options.demo_pause), over_http: HttpModels::new(options)? })
    }
}

#[async_trait]
impl Model for Models {
    async fn call(&self, request: &ModelRequest, on_text: &OnText<'_>) -> Result<ModelAnswer, TaskFailure> {
        if request.model.starts_with("demo/") {
            self.demo.call(request, on_text).await
        } else {
            self.over_http.call(request, on_text).await
        }
    }
}

/// Creates a `MODEL_FAILED` that certainly had no effect; `retryable`: a retry may help.
fn failed(message: impl Into<String>, retryable: bool) -> TaskFailure {
    TaskFailure { retryable, ..TaskFailure::new(FlowCode::ModelFailed, message) }
}
