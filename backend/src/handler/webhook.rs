//! Webhooks that decide: a signed POST of the question, and the meaning of its answer.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Response, StatusCode, Url};
use serde_json::{Value, json};
use shared::decision::ProgramAnswer;
use shared::definition::{Handler, WebhookHandler};
use shared::time::Span;

use super::{Callback, CallbackUrl, NoPrograms, Programs, failed};
use crate::clock::SharedClock;
use crate::engine::{HandlerAnswer, HandlerRequest, TaskFailure};
use crate::http_client::{self, retry_after};
use crate::json;
use crate::ssrf::{Cause, Clients, cause};
use crate::standard_webhooks::SigningKeys;

/// The maximum length of an answer, in bytes.
const MAX_ANSWER: usize = 1024 * 1024;

/// The options of asking webhooks.
pub struct WebhookOptions {
    /// Private hosts (`host` or `host:port`) that may be asked; public ones always may.
    pub allowed_hosts: Vec<String>,
    /// The keys that sign requests. `None`: no webhook is asked.
    pub keys: Option<SigningKeys>,
    /// The base of the URLs for people and for later answers. `None` if this program serves none.
    pub server: Option<CallbackUrl>,
    /// The source of the timestamps of requests.
    pub clock: SharedClock,
}

/// The client for webhooks of handlers and guardrails, which sends signed POST requests.
pub struct Webhooks {
    clients: Clients,
    keys: Option<SigningKeys>,
    server: Option<CallbackUrl>,
    pub(super) clock: SharedClock,
}

impl Webhooks {
    /// Creates a client with these options. Fails if the HTTP clients could not be built.
    pub fn new(options: WebhookOptions) -> reqwest::Result<Self> {
        let WebhookOptions { allowed_hosts, keys, server, clock } = options;
        Ok(Self { clients: Clients::new(&allowed_hosts)?, keys, server, clock })
    }

    async fn decide(&self, webhook: &WebhookHandler, request: &HandlerRequest) -> Result<HandlerAnswer, TaskFailure> {
        // The deadline is that of all attempts together.
        let time = request.until.since(self.clock.now()).max(Duration::from_millis(1));
        let answer = self.post(&webhook.url, &request.task.to_string(), &self.body(request), time).await?;
        match answer.status() {
            StatusCode::OK => decision(&whole(answer).await?),
            StatusCode::ACCEPTED => Ok(HandlerAnswer::Later),
            _ => Err(refused(&answer)),
        }
    }

    /// Sends a signed POST. `id` is the same for every attempt of a question.
    pub(super) async fn post(
        &self,
        url: &str,
        id: &str,
        body: &Value,
        time: Duration,
    ) -> Result<Response, TaskFailure> {
        let url: Url = url.parse().map_err(|error| failed(format!("its URL cannot be read: {error}"), false))?;
        let unsigned = || failed("webhooks need a secret: set COUNTERSIGN_HANDLER_SECRET", false);
        let keys = self.keys.as_ref().ok_or_else(unsigned)?;
        let client = self.clients.of(&url).map_err(|refused| failed(refused.to_string(), false))?;
        let body = body.to_string();
        let headers = keys.headers(id, self.clock.now(), &body);
        let mut post = client.post(url).timeout(time).header(CONTENT_TYPE, "application/json");
        for (name, value) in headers {
            post = post.header(name, value);
        }
        post.body(body).send().await.map_err(|error| unreached(&error))
    }

    fn body(&self, request: &HandlerRequest) -> Value {
        let review = &request.review;
        let mut data = json!({ "review": review });
        if let (Some(server), Some(run)) = (&self.server, review.run_id) {
            data["url"] = format!("{}/reviews/{}", server.server, review.id).into();
            let callback = server.of(Callback { run, review: review.id, task: request.task });
            data["callback_url"] = json!(callback);
        }
        json!({ "type": "review.decide", "timestamp": self.clock.now(), "data": data })
    }
}

#[async_trait]
impl Programs for Webhooks {
    async fn ask(&self, request: &HandlerRequest) -> Result<HandlerAnswer, TaskFailure> {
        match &request.handler {
            Handler::Webhook(webhook) => self.decide(webhook, request).await,
            _ => NoPrograms.ask(request).await,
        }
    }
}

/// Converts an answer with an unexpected status to a failure.
pub(super) fn refused(answer: &Response) -> TaskFailure {
    let status = answer.status();
    let retryable = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
    let refused = failed(format!("Webhook returned {}", status.as_u16()), retryable);
    TaskFailure { retry_after: retry_after(answer.headers()).map(Span), ..refused }
}

fn decision(body: &[u8]) -> Result<HandlerAnswer, TaskFailure> {
    let nonsense = |why: String| failed(format!("its answer cannot be read: {why}"), false);
    let answer = json::from_slice::<ProgramAnswer>(body).map_err(|problem| {
        let why = problem.errors.first().map(ToString::to_string).or(problem.detail);
        nonsense(why.unwrap_or_else(|| "it is not valid JSON".to_owned()))
    })?;
    Ok(HandlerAnswer::Decides { answer: Box::new(answer) })
}

/// Reads the body of an answer. Fails if it is larger than [`MAX_ANSWER`].
pub(super) async fn whole(answer: Response) -> Result<Vec<u8>, TaskFailure> {
    let body = http_client::whole(answer, MAX_ANSWER).await.map_err(|error| unreached(&error))?;
    body.ok_or_else(|| failed("its answer is larger than 1 MiB", false))
}

/// Converts an error without a complete answer to a failure. Asking again does no harm.
fn unreached(error: &reqwest::Error) -> TaskFailure {
    match cause(error) {
        Cause::Refused(why) => failed(why, false),
        Cause::Failed(_) if error.is_timeout() => failed("It did not answer in time.", true),
        Cause::Failed(why) => failed(format!("it could not be reached: {why}"), !error.is_builder()),
    }
}
