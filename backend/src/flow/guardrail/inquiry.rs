//! The question of a guardrail to a program, and the possible answers. Nothing is asked here: a check without an answer
//! yet results in a veto that names the question, so that nothing takes effect unchecked.

use async_trait::async_trait;
use futures::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::JsonMap;
use shared::definition::{Effect, GuardrailScope, GuardrailWebhook, OnError};
use shared::request::Request;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::{Finding, Matter, Rule};

/// A question to a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inquiry {
    /// The id of the matter: two calls have different ids even if they are alike.
    pub id: String,
    /// The name of the guardrail.
    pub guardrail: String,
    /// The webhook that is asked, as the flow declares it.
    pub webhook: GuardrailWebhook,
    /// The kind of matter: an action, edits or an output.
    pub on: GuardrailScope,
    /// The type, name and agent of the action.
    pub action: Value,
    /// The arguments of an action, or edits or outputs by their keys, after redaction by earlier guardrails.
    #[serde(serialize_with = "shared::user_data::members")]
    pub values: JsonMap,
    /// The request that a call sends in addition to its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
}

/// The answer of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum GuardrailAnswer {
    /// The matter is allowed.
    Allows,
    /// The program objects.
    Objects {
        /// The reason in the program's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The program could not be asked, or its answer could not be read.
    Fails {
        /// The reason.
        reason: String,
    },
    /// A deadline left no time for an answer. The person who decides chooses the time, so this never allows anything.
    CutOff,
}

/// The client for programs of guardrails.
#[async_trait]
pub trait GuardrailPrograms: Send + Sync {
    /// Asks a program, within the timeout of its webhook.
    async fn inquire(&self, inquiry: &Inquiry) -> GuardrailAnswer;
}

/// The maximum number of programs that the process asks concurrently, for people and for agents each. A slow program
/// that agents wait for must not delay decisions.
const AT_ONCE: usize = 64;
static FOR_PEOPLE: Semaphore = Semaphore::const_new(AT_ONCE);
static FOR_AGENTS: Semaphore = Semaphore::const_new(AT_ONCE);

/// Asks all inquiries, at most `at_once` at a time, and returns the answers in their order. People wait at most
/// `until`; for agents, that is `None`.
pub async fn ask_all<P: GuardrailPrograms + ?Sized>(
    programs: &P,
    inquiries: &[Inquiry],
    until: Option<Instant>,
    at_once: usize,
) -> Vec<GuardrailAnswer> {
    let free = if until.is_some() { &FOR_PEOPLE } else { &FOR_AGENTS };
    let ask = |inquiry| async move {
        let asking = async {
            let _permit = free.acquire().await;
            programs.inquire(inquiry).await
        };
        match until {
            Some(until) => timeout_at(until, asking).await.unwrap_or(GuardrailAnswer::CutOff),
            None => asking.await,
        }
    };
    let asked: Vec<_> = inquiries.iter().map(ask).collect();
    stream::iter(asked).buffered(at_once.clamp(1, AT_ONCE)).collect().await
}

/// Looks up the answer of a program, if it was asked already.
pub type Answered<'a> = &'a dyn Fn(&Inquiry) -> Option<GuardrailAnswer>;

impl Rule {
    /// Returns the finding of the program if it was asked, otherwise a veto with the inquiry. `None` if it allows the
    /// matter.
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::*;

    /// Programs that count how many of them are asked concurrently.
    #[derive(Default)]
    struct Counted {
        now: AtomicUsize,
        most: AtomicUsize,
    }

    #[async_trait]
    impl GuardrailPrograms for Counted {
        async fn inquire(&self, _: &Inquiry) -> GuardrailAnswer {
            let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
            self.most.fetch_max(now, Ordering::Relaxed);
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            self.now.fetch_sub(1, Ordering::Relaxed);
            GuardrailAnswer::Allows
        }
    }

    #[tokio::test]
    async fn all_callers_together_ask_a_bounded_number_of_programs() {
        let webhook = serde_json::from_value(json!({ "url": "https://rules.example.com" })).unwrap();
        let inquiry = Inquiry {
            id: String::new(),
            guardrail: String::new(),
            webhook,
            on: GuardrailScope::Edits,
            action: Value::Null,
            values: JsonMap::new(),
            request: None,
        };
        let (programs, inquiries) = (Counted::default(), vec![inquiry; 50]);
        let asked = (0..40).map(|_| ask_all(&programs, &inquiries, None, usize::MAX));
        let answers = futures::future::join_all(asked).await;
        assert_eq!(answers.concat().len(), 2000);
        assert_eq!(programs.most.load(Ordering::Relaxed), AT_ONCE);
        let few = Counted::default();
        ask_all(&few, &inquiries, None, 4).await;
        assert_eq!(few.most.load(Ordering::Relaxed), 4);
    }
}
