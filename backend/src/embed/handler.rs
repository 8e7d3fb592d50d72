//! Functions of the program as handlers, which are asked before people.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use shared::decision::{DecisionRequest, ProgramAnswer};
use shared::definition::{Flow, Handler};
use shared::error::{FlowCode, Mistake};
use shared::review::Review;

use super::choice::Choice;
use crate::engine::{HandlerAnswer, HandlerRequest, TaskFailure};
use crate::flow::guardrail::{GuardrailAnswer, GuardrailPrograms, Inquiry};
use crate::flow::handlers;
use crate::handler::{Programs, Webhooks};

/// The answer of a handler.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "made once for each question, and read at once")]
pub enum Handled {
    /// It decides. If the choice is not valid, the next handler is asked.
    Decide(Choice),
    /// It passes the decision on to the next handler, for this reason.
    Pass(String),
}

impl From<Choice> for Handled {
    fn from(choice: Choice) -> Self {
        Self::Decide(choice)
    }
}

type Function = Arc<dyn Fn(Review) -> BoxFuture<'static, Handled> + Send + Sync>;

/// The functions by the names of their handlers.
#[derive(Clone, Default)]
pub(super) struct Handlers(BTreeMap<String, Function>);

impl Handlers {
    pub fn add<F, A, H>(&mut self, name: String, function: F)
    where
        F: Fn(Review) -> A + Send + Sync + 'static,
        A: Future<Output = H> + Send + 'static,
        H: Into<Handled>,
    {
        let ask = move |review| -> BoxFuture<'static, Handled> {
            let asked = function(review);
            Box::pin(async move { asked.await.into() })
        };
        self.0.insert(name, Arc::new(ask));
    }

    /// Returns the function handlers of a flow that this program lacks.
    pub fn missing(&self, flow: &Flow) -> Vec<Mistake> {
        let missing = handlers(flow).into_iter().filter_map(|(path, handler)| match handler {
            Handler::Function(name) if !self.0.contains_key(name) => {
                let message = format!("the program has no function for the handler `{name}`; add it with `handler`");
                Some(Mistake::new(path, FlowCode::FlowInvalid.as_str(), message))
            }
            _ => None,
        });
        missing.collect()
    }
}

/// The program's functions, and all other programs.
pub(super) struct WithHandlers {
    pub handlers: Handlers,
    pub others: Webhooks,
}

#[async_trait]
impl GuardrailPrograms for WithHandlers {
    async fn inquire(&self, inquiry: &Inquiry) -> GuardrailAnswer {
        self.others.inquire(inquiry).await
    }
}

#[async_trait]
impl Programs for WithHandlers {
    async fn ask(&self, request: &HandlerRequest) -> Result<HandlerAnswer, TaskFailure> {
        let function = match &request.handler {
            Handler::Function(name) => self.handlers.0.get(name),
            _ => None,
        };
        let Some(function) = function else { return self.others.ask(request).await };
        Ok(match function(request.review.clone()).await {
            Handled::Pass(reason) => HandlerAnswer::Passes { reason },
            Handled::Decide(choice) => {
                let request = match choice.on(&request.review) {
                    Ok(request) => request,
                    Err(mistake) => return Ok(HandlerAnswer::Passes { reason: mistake.to_string() }),
                };
                let DecisionRequest { verdict, edits, comment, metadata, .. } = request;
                let answer =
                    ProgramAnswer { verdict: Some(verdict), edits, comment, metadata, ..ProgramAnswer::default() };
                HandlerAnswer::Decides { answer: Box::new(answer) }
            }
        })
    }
}
