//! Webhooks of guardrails: a signed POST of the intended action, edit or output, and an answer that allows it or
//! objects.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::json;
use shared::definition::GuardrailScope;

use super::failed;
use super::webhook::{Webhooks, refused, whole};
use crate::engine::{GuardrailAnswer, GuardrailPrograms, Inquiry, TaskFailure, digest_of_inquiry};
use crate::json;
use crate::limits::MAX_REASON;

/// The wait before a retry if the webhook is overloaded or broken and names no other time.
const WAIT: Duration = Duration::from_millis(500);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GuardrailResponse {
    allowed: bool,
    reason: Option<String>,
}

#[async_trait]
impl GuardrailPrograms for Webhooks {
    async fn inquire(&self, inquiry: &Inquiry) -> GuardrailAnswer {
        let until = tokio::time::Instant::now() + inquiry.webhook.timeout().0;
        loop {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            let failure = match self.look_once(inquiry, left.max(Duration::from_millis(1))).await {
                Ok(answer) => return answer,
                Err(failure) => failure,
            };
            let wait = failure.retry_after.map_or(WAIT, |wait| wait.0);
            // The wait that the webhook demands may be too long to add to an `Instant`.
            if !failure.retryable || wait >= until.saturating_duration_since(tokio::time::Instant::now()) {
                tracing::warn!(guardrail = %inquiry.guardrail, why = %failure.message, "a webhook was not reached");
                return GuardrailAnswer::Fails { reason: failure.message };
            }
            tokio::time::sleep(wait).await;
        }
    }
}

impl Webhooks {
    async fn look_once(&self, inquiry: &Inquiry, time: Duration) -> Result<GuardrailAnswer, TaskFailure> {
        let Inquiry { guardrail, webhook, on, action, values, request, id: _ } = inquiry;
        let values_are = match on {
            GuardrailScope::Actions => "arguments",
            GuardrailScope::Edits => "edits",
            GuardrailScope::Outputs => "output",
        };
        let mut data = json!({ "guardrail": guardrail, "on": on, "action": action, values_are: values });
        if let Some(request) = request {
            data["request"] = json!(request);
        }
        let body = json!({ "type": "guardrail.look", "timestamp": self.clock.now(), "data": data });
        let answer = self.post(&webhook.url, &digest_of_inquiry(inquiry), &body, time).await?;
        if answer.status() != StatusCode::OK {
            return Err(refused(&answer));
        }
        let read = json::from_slice::<GuardrailResponse>(&whole(answer).await?);
        let nonsense =
            "its answer cannot be read: expected `{\"allowed\": true}` or `{\"allowed\": false, \"reason\": \"…\"}`";
        let GuardrailResponse { allowed, reason } = read.map_err(|_| failed(nonsense, false))?;
        let reason = reason.map(|reason| reason.trim().chars().take(MAX_REASON).collect::<String>());
        Ok(if allowed {
            GuardrailAnswer::Allows
        } else {
            GuardrailAnswer::Objects { reason: reason.filter(|reason| !reason.is_empty()) }
        })
    }
}
