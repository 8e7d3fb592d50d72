//! Programs that are asked: handlers and guardrails that are webhooks, over HTTP, and the secrets by which handlers answer
//! later. What they say is for the engine to judge.
//!
//! Imports `shared`, `crate::clock`, `crate::json`, `crate::retry_after`, `crate::standard_webhooks`, `crate::ssrf` and `crate::engine`
//! only. No
//! secret leaves it but to whom it belongs: not in an error or a log.

mod callback;
mod guardrail;
mod webhook;

use async_trait::async_trait;
use shared::definition::Handler;
use shared::error::FlowCode;

pub use callback::{Callback, CallbackKey, CallbackUrl};
pub use webhook::{Options, Webhooks};

use crate::engine::{GuardrailAnswer, GuardrailPrograms, HandlerAnswer, HandlerRequest, Inquiry, TaskFailure};
pub use crate::standard_webhooks::SigningKeys;

/// Asks handlers that are programs, and programs for guardrails.
#[async_trait]
pub trait Programs: GuardrailPrograms {
    /// What the program says. `Err`: it could not be asked, or said nothing that can be read.
    async fn ask(&self, request: &HandlerRequest) -> Result<HandlerAnswer, TaskFailure>;
}

/// Where no program can be asked.
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
    async fn look(&self, _: &Inquiry) -> GuardrailAnswer {
        GuardrailAnswer::Fails { reason: "no webhook can be asked here".to_owned() }
    }
}

/// A handler could not answer; whether trying again could help.
pub(crate) fn failed(message: impl Into<String>, retryable: bool) -> TaskFailure {
    TaskFailure { retryable, ..TaskFailure::new(FlowCode::HandlerFailed, message) }
}
