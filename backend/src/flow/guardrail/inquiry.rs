//! The question of a guardrail to a program, and the possible answers. Nothing is asked here: a check without an answer
//! yet results in a veto that names the question, so that nothing takes effect unchecked.

use async_trait::async_trait;
use futures::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::JsonMap;
use shared::definition::{Effect, GuardrailScope, GuardrailWebhook, OnError};
use shared::request::Request;
use tokio::time::{Instant, timeout_at};

use super::{Finding, Matter, Rule};

/// What a program is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inquiry {
    /// Names what is looked at: two calls are two, also where they are alike.
    pub id: String,
    /// Which guardrail asks.
    pub guardrail: String,
    /// The webhook that is asked, as the flow declares it.
    pub webhook: GuardrailWebhook,
    /// What is looked at.
    pub on: GuardrailScope,
    /// Its type, name and agent.
    pub action: Value,
    /// The arguments of an action; edits and outputs by their keys. As the guardrails before it left them.
    pub values: JsonMap,
    /// What a call sends beside its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
}

/// What it answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum GuardrailAnswer {
    /// It may happen.
    Allows,
    /// It may not.
    Objects {
        /// Why, in its words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// There is no answer, because of this.
    Fails {
        /// Why, in words.
        reason: String,
    },
    /// There is no answer, since a deadline left no time for it. Whoever decides chooses when, so it never lets pass what
    /// nobody looked at.
    CutOff,
}

/// Asks the programs of guardrails.
#[async_trait]
pub trait GuardrailPrograms: Send + Sync {
    /// What the program says of this; within the time that it has.
    async fn look(&self, inquiry: &Inquiry) -> GuardrailAnswer;
}

/// How many programs are asked at once.
const AT_ONCE: usize = 64;

/// Asks all of this, each until then at most; the answers in its order.
pub async fn ask_all<P: GuardrailPrograms + ?Sized>(
    programs: &P,
    inquiries: &[Inquiry],
    until: Option<Instant>,
) -> Vec<GuardrailAnswer> {
    let ask = |inquiry| async move {
        let look = programs.look(inquiry);
        match until {
            Some(until) => timeout_at(until, look).await.unwrap_or(GuardrailAnswer::CutOff),
            None => look.await,
        }
    };
    let asked: Vec<_> = inquiries.iter().map(ask).collect();
    stream::iter(asked).buffered(AT_ONCE).collect().await
}

/// What is known of the answers of programs.
pub type Answered<'a> = &'a dyn Fn(&Inquiry) -> Option<GuardrailAnswer>;

impl Rule {
    /// What its program says of this, where it was asked; else what is to be asked.
    pub(super) fn ask(
        &self,
        webhook: &GuardrailWebhook,
        matter: &Matter<'_>,
        values: &JsonMap,
        answered: Answered<'_>,
    ) -> Option<Finding> {
        let inquiry = Inquiry {
            id: matter.id.clone(),
            guardrail: self.name.clone(),
            webhook: webhook.clone(),
            on: matter.subject,
            action: matter.action.clone(),
            values: values.clone(),
            request: matter.request.cloned(),
        };
        let failed = |effect, reason: String| Finding { reason, ..self.finding(effect, None, "") };
        match answered(&inquiry) {
            Some(GuardrailAnswer::Allows) => None,
            Some(GuardrailAnswer::Objects { reason }) => {
                let reason = reason.unwrap_or_else(|| "its program rejects it".to_owned());
                Some(self.finding(self.effect(matter.subject), None, reason))
            }
            Some(GuardrailAnswer::Fails { reason }) => Some(match webhook.on_error.unwrap_or_default() {
                OnError::Block => failed(Effect::Block, format!("it could not be asked: {reason}")),
                OnError::Allow => failed(Effect::Warn, format!("it could not be asked, and allows this: {reason}")),
            }),
            Some(GuardrailAnswer::CutOff) => {
                Some(failed(Effect::Block, "it could not be asked: there was no time left".to_owned()))
            }
            None => {
                let inquiry = Some(Box::new(inquiry));
                Some(Finding { inquiry, ..failed(Effect::Block, "it has not been asked yet".to_owned()) })
            }
        }
    }
}
