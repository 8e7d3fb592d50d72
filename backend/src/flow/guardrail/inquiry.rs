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

/// How many programs the whole process asks at once for people, and how many for agents: each takes a connection, and
/// agents that wait for a slow program hold up no decision.
const AT_ONCE: usize = 64;
static FOR_PEOPLE: Semaphore = Semaphore::const_new(AT_ONCE);
static FOR_AGENTS: Semaphore = Semaphore::const_new(AT_ONCE);

/// Asks all of this, so many at once and each until then at most; the answers in its order. People wait until a time, and
/// agents as long as it takes.
pub async fn ask_all<P: GuardrailPrograms + ?Sized>(
    programs: &P,
    inquiries: &[Inquiry],
    until: Option<Instant>,
    at_once: usize,
) -> Vec<GuardrailAnswer> {
    let free = if until.is_some() { &FOR_PEOPLE } else { &FOR_AGENTS };
    let ask = |inquiry| async move {
        let look = async {
            let _permit = free.acquire().await;
            programs.look(inquiry).await
        };
        match until {
            Some(until) => timeout_at(until, look).await.unwrap_or(GuardrailAnswer::CutOff),
            None => look.await,
        }
    };
    let asked: Vec<_> = inquiries.iter().map(ask).collect();
    stream::iter(asked).buffered(at_once.clamp(1, AT_ONCE)).collect().await
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::*;

    /// Programs that count how many of them are asked, and answer when others have had their turn.
    #[derive(Default)]
    struct Counted {
        now: AtomicUsize,
        most: AtomicUsize,
    }

    #[async_trait]
    impl GuardrailPrograms for Counted {
        async fn look(&self, _: &Inquiry) -> GuardrailAnswer {
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
