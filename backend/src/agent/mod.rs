//! Models behind one small trait: what an agent's turn says, and how much it used.
//!
//! Imports `shared`, `crate::limits`, `crate::engine`, `crate::retry_after` and `crate::ssrf` (what a failed request says)
//! only.

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

/// Takes a model's text as it comes, piece by piece.
pub type OnText<'a> = dyn Fn(&str) + Send + Sync + 'a;

/// Something that can take an agent's turn.
#[async_trait]
pub trait Model: Send + Sync {
    /// Takes one turn. The whole text is in the answer, and what it cost; `on_text` sees the text earlier. `duration_ms`
    /// is left at 0: the caller has the clock. Fails with `MODEL_FAILED`.
    async fn call(&self, request: &ModelRequest, on_text: &OnText<'_>) -> Result<ModelAnswer, TaskFailure>;
}

/// Where models are, and how to get in. Never in a flow.
#[derive(Clone)]
pub struct Options {
    /// Key of `openai/…` (`OPENAI_API_KEY`).
    pub openai_key: Option<String>,
    /// Where `openai/…` is (`OPENAI_BASE_URL`); default: OpenAI. Any compatible server will do.
    pub openai_url: Option<String>,
    /// Key of `anthropic/…` (`ANTHROPIC_API_KEY`).
    pub anthropic_key: Option<String>,
    /// Where `anthropic/…` is, without `/v1` (`ANTHROPIC_BASE_URL`); default: Anthropic.
    pub anthropic_url: Option<String>,
    /// Where `ollama/…` is (`OLLAMA_HOST`); default: this machine.
    pub ollama_host: Option<String>,
    /// What their tokens cost.
    pub prices: Prices,
    /// How long one call may take.
    pub timeout: Duration,
    /// The pause between two pieces of a demo model's text (`COUNTERSIGN_DEMO_PAUSE`, in milliseconds); all pauses
    /// together are at most 1.5 s.
    pub demo_pause: Duration,
}

impl Default for Options {
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

impl Options {
    /// What the environment says; an empty variable is as good as none.
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

/// Why models could not be made ready.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The HTTP client could not be built.
    #[error("the HTTP client for models: {0}")]
    Client(String),
}

/// All models, by the provider that stands before the `/`.
pub struct Models {
    demo: Demo,
    over_http: HttpModels,
}

impl Models {
    /// The models of these settings.
    pub fn new(options: Options) -> Result<Self, Error> {
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

/// A `MODEL_FAILED` that certainly had no effect; `retryable`: another try may help.
fn failed(message: impl Into<String>, retryable: bool) -> TaskFailure {
    TaskFailure { retryable, ..TaskFailure::new(FlowCode::ModelFailed, message) }
}
