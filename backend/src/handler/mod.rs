//! Webhooks of handlers and guardrails, over HTTP, and the secrets with which handlers answer later. The engine judges
//! their answers.
//!
//! A secret is sent only to its owner, and never appears in an error or a log.

mod callback;
mod guardrail;
mod webhook;

use async_trait::async_trait;
use shared::definition::Handler;
use shared::error::FlowCode;

pub use callback::{Callback, CallbackKey, CallbackUrl};
pub use webhook::{WebhookOptions, Webhooks};

use crate::engine::{GuardrailAnswer, GuardrailPrograms, HandlerAnswer, HandlerRequest, Inquiry, TaskFailure};
pub use crate::standard_webhooks::SigningKeys;

/// Asks programs that are handlers or guardrails.
#[async_trait]
pub trait Programs: GuardrailPrograms {
    /// Returns the answer of the program. `Err`: it could not be reached, or its answer cannot be read.
    async fn ask(&self, request: &HandlerRequest) -> Result<HandlerAnswer, TaskFailure>;
}

/// A stand-in for servers that cannot ask programs.
pub struct NoPrograms;

#[async_trait]
impl Programs for NoPrograms {
    async fn ask(&self, request: &HandlerRequest) -> Result<HandlerAnswer, TaskFailure> {
        let what = match &request.handler {
            Handler::Function(name) => format!("this program has no handler `{name}`; add it with `Options::handler`"),
            _ => "no webhook can be asked here".to_owned(),
        };
        Err(failed(what, false))
    }
}

#[async_trait]
impl GuardrailPrograms for NoPrograms {
    async fn inquire(&self, _: &Inquiry) -> GuardrailAnswer {
        GuardrailAnswer::Fails { reason: "no webhook can be asked here".to_owned() }
    }
}

/// Creates the failure of a handler; `retryable`: a retry may help.
pub(crate) fn failed(message: impl Into<String>, retryable: bool) -> TaskFailure {
    TaskFailure { retryable, ..TaskFailure::new(FlowCode::HandlerFailed, message) }
}
