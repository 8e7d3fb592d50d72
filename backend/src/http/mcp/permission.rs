//! The permission prompt of Claude Code: whether a tool of its own may be called, in the shape that
//! `--permission-prompt-tool` expects. The call is a question of kind `tool_calls`, which people approve, edit or
//! reject. Whatever goes wrong is a denial.

use std::time::Duration;

use axum::http::HeaderMap;
use rmcp::Peer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{RequestContext, RoleServer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::JsonMap;
use shared::error::{Code, Problem};
use shared::id::ReviewId;
use shared::review::Review;
use shared::time::Span;

use super::api_client::ApiClient;

/// The header with which the settings of a client say how long a prompt waits for people.
const HEADER: &str = "countersign-permission-wait";
/// How long it waits without that header. Many clients give up a call after 60 s.
const WAIT: Duration = Duration::from_secs(45);
/// The longest wait of a prompt.
const LONGEST_WAIT: Duration = Duration::from_hours(1);
/// How long a prompt waits beyond the deadline of its review, whose timer may be a moment late.
const GRACE: Duration = Duration::from_secs(2);
/// The longest wait of one request for the answer, and so the time between two signs of life.
const EACH: Duration = Duration::from_secs(25);
/// The pause after a refusal that passes, if it does not say how long.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The arguments of `permission_prompt`, as Claude Code sends them. It may send more.
#[derive(Deserialize, JsonSchema)]
pub(super) struct PermissionPrompt {
    /// The tool that is to be called.
    pub tool_name: String,
    /// The arguments of the call.
    #[serde(default)]
    pub input: JsonMap,
}

/// The answer, as Claude Code reads it.
#[derive(Debug, PartialEq, Serialize)]
#[serde(tag = "behavior", rename_all = "lowercase")]
pub(super) enum Permission {
    Allow {
        #[serde(rename = "updatedInput")]
        updated_input: Value,
    },
    Deny {
        message: String,
    },
}

impl Permission {
    /// Denies a call that could not be asked about.
    fn refused(problem: &Problem) -> Self {
        let detail = problem.errors.first().map(ToString::to_string);
        let detail = detail.or_else(|| problem.detail.clone()).unwrap_or_else(|| problem.title.clone());
        Self::deny(format!("Countersign could not ask anyone: {detail}"))
    }

    fn deny(message: impl Into<String>) -> Self {
        Self::Deny { message: message.into() }
    }

    /// Reads the decision on the only call of a review that is over. Without one, the call is denied.
    fn of(review: &Review) -> Self {
        let resolution = review.resolution.as_ref();
        let answer = resolution.and_then(|resolution| resolution.answer.as_ref());
        let decision = answer.and_then(|answer| answer["decisions"].get(0));
        let text = |of: Option<&Value>| of.and_then(Value::as_str).map(str::to_owned);
        if let Some(decision) = decision
            && let (Some("approve" | "edit"), Some(arguments)) =
                (decision["type"].as_str(), decision.get("arguments").filter(|arguments| arguments.is_object()))
        {
            return Self::Allow { updated_input: arguments.clone() };
        }
        let said = text(decision.and_then(|decision| decision.get("message")));
        let note = || text(answer.and_then(|answer| answer.get("instructions")));
        let reason = || resolution.and_then(|resolution| resolution.reason.clone());
        let message = said.or_else(note).or_else(reason);
        Self::deny(message.unwrap_or_else(|| "A person has rejected this call.".to_owned()))
    }
}

/// Returns how long prompts of a client wait; `422` if the header has no time, or one that is too long.
pub(super) fn wait_of(headers: &HeaderMap) -> Result<Duration, Problem> {
    let Some(said) = headers.get(HEADER) else { return Ok(WAIT) };
    let wait = said.to_str().ok().and_then(|said| said.parse::<Span>().ok()).map(|Span(wait)| wait);
    let wait = wait.filter(|wait| !wait.is_zero() && *wait <= LONGEST_WAIT);
    wait.ok_or_else(|| Problem::invalid("", format!("the header `{HEADER}` must be a time such as 5m, at most 1h")))
}

/// A review that nobody has answered yet. If the client leaves, it is withdrawn, so that nobody approves a call that is
/// no longer made.
struct Unanswered<'a> {
    api: &'a ApiClient,
    /// `None` once the question is over.
    review: Option<ReviewId>,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let Some(review) = self.review else { return };
        let api = self.api.clone();
        tokio::spawn(async move {
            let body = json!({ "reason": "the program that asked no longer waits" });
            let path = format!("/api/v1/reviews/{review}/withdraw");
            if let Err(problem) = api.post::<Value>(&path, None, &body).await {
                tracing::debug!(%review, %problem, "a question that nobody waits for could not be withdrawn");
            }
        });
    }
}

/// Tells a client that asked to be told of progress that its call is still under way. With the first sign of life, the
/// response begins, so that neither the client nor a proxy gives it up.
pub(super) struct Heartbeat {
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
}

impl Heartbeat {
    /// Creates the signs of life of one call.
    pub fn of(context: &RequestContext<RoleServer>) -> Self {
        Self { peer: context.peer.clone(), token: context.meta.get_progress_token() }
    }

    async fn beat(&self, since: Duration) {
        if let Some(token) = self.token.clone() {
            // A client that cannot be told has left, which cancels the call.
            let _ = self.peer.notify_progress(ProgressNotificationParam::new(token, since.as_secs_f64())).await;
        }
    }
}

/// Answers a prompt: whether, and with which arguments, the call may be made.
pub(super) async fn prompt(api: &ApiClient, arguments: JsonMap, wait: Duration, heartbeat: &Heartbeat) -> Permission {
    let asked = match serde_json::from_value(Value::Object(arguments)) {
        Ok(prompt) => ask(api, prompt, wait, heartbeat).await,
        Err(error) => Err(Problem::invalid("", error.to_string())),
    };
    asked.unwrap_or_else(|problem| Permission::refused(&problem))
}

async fn ask(
    api: &ApiClient,
    prompt: PermissionPrompt,
    wait: Duration,
    heartbeat: &Heartbeat,
) -> Result<Permission, Problem> {
    let PermissionPrompt { tool_name, input } = prompt;
    let action = json!({
        "name": tool_name, "arguments": input, "allowed_decisions": ["approve", "edit", "reject"],
    });
    let question = json!({
        "kind": "tool_calls", "actions": [action], "timeout": Span(wait).to_string(), "on_timeout": "reject",
    });
    // No idempotency key: an approval counts for one call. The id of a call is chosen by the client, and a second call
    // with the same id would be allowed without anyone being asked.
    let mut review: Review = api.post("/api/v1/reviews", None, &question).await?;
    let mut unanswered = Unanswered { api, review: Some(review.id) };
    let begun = tokio::time::Instant::now();
    let mut waits = true;
    while review.is_pending() {
        let gone = begun.elapsed();
        let Some(rest) = (wait + GRACE).checked_sub(gone).filter(|rest| !rest.is_zero()) else {
            return Ok(Permission::deny("Nobody decided in time."));
        };
        heartbeat.beat(gone).await;
        let each = rest.min(EACH);
        let query = if waits { format!("&wait={}ms", each.as_millis().max(1)) } else { String::new() };
        let path = format!("/api/v1/reviews/{}?view=false{query}", review.id);
        let asked = tokio::time::Instant::now();
        match api.get(&path).await {
            Ok(read) => review = read,
            Err(problem) => {
                // Others may have taken its place among the waiting requests, but it can still be read.
                tokio::time::sleep(pause_after(problem)?.min(rest)).await;
                waits = false;
                continue;
            }
        }
        // A server that stops ends all waits at once.
        if waits && review.is_pending() && asked.elapsed() < each / 2 {
            return Ok(Permission::deny("Countersign is being restarted: try again."));
        }
        waits = true;
    }
    unanswered.review = None;
    Ok(Permission::of(&review))
}

/// Returns how long to wait after a refusal that passes: too many requests, or a server that is not available. Any other
/// ends the prompt.
fn pause_after(refusal: Problem) -> Result<Duration, Problem> {
    match refusal.code {
        Code::TooManyRequests | Code::Unavailable => {
            Ok(refusal.retry_after.map_or(PAUSE, Duration::from_secs).clamp(PAUSE, LONGEST_PAUSE))
        }
        _ => Err(refusal),
    }
}
