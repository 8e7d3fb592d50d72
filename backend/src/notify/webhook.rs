//! Webhooks for notifications, signed by Standard Webhooks.

use reqwest::Url;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use shared::error::FlowError;
use shared::id::DeliveryId;
use shared::log::{AnnouncedSubject, Entry};
use shared::notification::Occasion;
use shared::review::{Review, ReviewKind};
use shared::run::RunSummary;
use shared::time::Timestamp;

use super::failure::DeliveryFailure;
use super::filter::Filter;
use super::message;
use super::settings::{NotificationSecrets, WebhookSettings, is_name};
use super::{Error, Outlets, TIMEOUT};
use crate::http_client::{beginning, retry_after};
use crate::standard_webhooks::{SECRET, SigningKeys};
use crate::store::DeliveryEvent;

/// The largest part of a response that is read, in bytes.
const MAX_ANSWER: usize = 4096;
/// The longest error of a run in a message, in characters.
const MAX_ERROR: usize = 500;

/// A program that is notified by webhook.
#[derive(Clone)]
pub(super) struct Webhook {
    pub url: Url,
    events: Vec<Occasion>,
    filter: Filter,
    pub keys: SigningKeys,
}

impl Webhook {
    pub fn new(name: &str, settings: WebhookSettings, secrets: &NotificationSecrets) -> Result<Self, Error> {
        let wrong = |why: String| Error::Settings(format!("[notifications.webhooks.{name}]: {why}"));
        if !is_name(name) {
            return Err(wrong("the name of a webhook may contain only a-z, 0-9 and -".to_owned()));
        }
        let url = url_of(&settings.url).map_err(|why| wrong(format!("`url`: {why}")))?;
        let (variable, secrets) = secrets.of_webhook(name);
        let missing = || wrong(format!("set {variable} to a secret: {SECRET}"));
        let keys = secrets.and_then(SigningKeys::read).ok_or_else(missing)?;
        let WebhookSettings { events, flows, roles, kinds, severities, .. } = settings;
        Ok(Self { url, events, filter: Filter { flows, roles, kinds, severities }, keys })
    }

    pub fn wants(&self, occasion: Occasion, about: &AnnouncedSubject) -> bool {
        self.events.contains(&occasion) && self.filter.passes(about)
    }
}

impl Outlets {
    /// Posts a message to a URL, signed with these keys.
    pub(super) async fn post(
        &self,
        url: &Url,
        keys: &SigningKeys,
        id: DeliveryId,
        now: Timestamp,
        body: String,
    ) -> Result<(), DeliveryFailure> {
        let mut request =
            self.clients.of(url)?.post(url.clone()).timeout(TIMEOUT).header(CONTENT_TYPE, "application/json");
        for (name, value) in keys.headers(&id.to_string(), now, &body) {
            request = request.header(name, value);
        }
        let answer = request.body(body).send().await?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let after = retry_after(answer.headers());
        Err(DeliveryFailure::refused(status, after, &beginning(answer, MAX_ANSWER).await))
    }
}

/// Parses a URL to which messages are posted. The error says what is wrong with it.
pub(super) fn url_of(text: &str) -> Result<Url, String> {
    let url: Url = text.trim().parse().map_err(|error| format!("this is not a URL: {error}"))?;
    if matches!(url.scheme(), "http" | "https") {
        Ok(url)
    } else {
        Err("a URL must begin with https:// or http://".to_owned())
    }
}

/// The body of the message about an entry, the same for every attempt.
pub(super) fn body(entry: &Entry, announced: DeliveryEvent, link: &str) -> String {
    let event = &entry.event;
    let name = match announced {
        // In the log, comments are one of many changes.
        DeliveryEvent::Announce(Occasion::Commented) => announced.as_str(),
        _ => event.kind.as_str(),
    };
    let mut data = match event.run() {
        Some(run) => json!({ "run": told_of(run), "url": link }),
        // The log holds no secret votes.
        None => json!({ "review": event.data.get("review").cloned().unwrap_or_default(), "url": link }),
    };
    if let (Value::Object(data), Some(actor)) = (&mut data, &event.actor) {
        data.insert("actor".to_owned(), json!(actor));
        data.extend(event.token.map(|token| ("token".to_owned(), json!(token))));
    }
    if let (Value::Object(data), Some(review)) = (&mut data, event.review().filter(Review::is_pending)) {
        data.insert("notification".to_owned(), notification(&review, link));
    }
    json!({ "type": name, "timestamp": event.at, "data": data }).to_string()
}

/// A run as programs are told of it: without its topic, which is from its input, and with the beginning of its error.
/// They read the rest with a token, if they may.
fn told_of(run: RunSummary) -> RunSummary {
    let brief = |error: FlowError| FlowError { message: message::one_line(&error.message, MAX_ERROR), ..error };
    RunSummary { topic: None, error: run.error.map(brief), ..run }
}

/// The type of review in one word, with its urgency, for programs that do not show reviews themselves.
fn notification(review: &Review, link: &str) -> Value {
    let wanted = match review.kind {
        ReviewKind::Clarification => "clarification_needed",
        ReviewKind::Edit => "edit_requested",
        ReviewKind::Escalation => "escalation",
        ReviewKind::Checkpoint => "checkpoint",
        ReviewKind::Handoff => "handoff",
        ReviewKind::Approval
        | ReviewKind::ToolCalls
        | ReviewKind::Agent
        | ReviewKind::Emergent
        | ReviewKind::Output
        | ReviewKind::StrategyOverride => "approval_required",
    };
    let (summary, urgency) = (message::title(review), review.stakes.severity);
    let mut notification = json!({ "type": wanted, "summary": summary, "urgency": urgency, "url": link });
    if let (Value::Object(members), Some(until)) = (&mut notification, review.expires_at) {
        members.insert("expires_at".to_owned(), json!(until));
    }
    notification
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review(members: &Value) -> Review {
        let mut review = json!({
            "id": uuid::Uuid::nil(), "revision": 1, "digest": "", "version": 1, "kind": "approval", "status": "pending",
            "title": "Send it?", "prompt": "", "requested_by": "ada", "created_at": "2026-01-01T00:00:00Z",
        });
        review.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        serde_json::from_value(review).unwrap()
    }

    #[test]
    fn a_program_is_told_what_is_wanted_of_people_in_a_word() {
        let wanted =
            |kind: &str| notification(&review(&json!({ "kind": kind })), "https://desk.example")["type"].clone();
        let all = ["tool_calls", "output", "clarification", "edit", "escalation", "checkpoint", "handoff"].map(wanted);
        let (approval, rest) = all.split_at(2);
        assert_eq!(approval, ["approval_required", "approval_required"]);
        assert_eq!(rest, ["clarification_needed", "edit_requested", "escalation", "checkpoint", "handoff"]);
        let told = json!({ "title": "Send\u{202e} it?", "severity": "high", "expires_at": "2026-01-02T00:00:00Z" });
        let expected = json!({
            "type": "approval_required", "summary": "Send<U+202E> it?", "urgency": "high",
            "url": "https://desk.example", "expires_at": "2026-01-02T00:00:00.000000Z",
        });
        assert_eq!(notification(&review(&told), "https://desk.example"), expected);
    }

    #[test]
    fn a_webhook_is_told_of_the_kinds_and_severities_that_it_names() {
        let secrets = NotificationSecrets::from_env([(
            "COUNTERSIGN_WEBHOOK_SECRET_DESK".to_owned(),
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned(),
        )]);
        let settings =
            json!({ "url": "https://example.org", "kinds": ["tool_calls", "edit"], "severities": ["critical"] });
        let webhook = Webhook::new("desk", serde_json::from_value(settings).unwrap(), &secrets).unwrap();
        let wants = |kind: &str, severity: &str| {
            let review = review(&json!({ "kind": kind, "severity": severity }));
            webhook.wants(Occasion::Requested, &AnnouncedSubject::Review(Box::new(review)))
        };
        assert!(wants("edit", "critical"));
        assert!(!wants("approval", "critical") && !wants("edit", "high"));
    }

    #[test]
    fn a_webhook_without_a_good_secret_is_refused_with_the_remedy() {
        let settings: WebhookSettings = serde_json::from_value(json!({ "url": "https://example.org" })).unwrap();
        let secrets = |value: &str| {
            let name = "COUNTERSIGN_WEBHOOK_SECRET_MY_DESK".to_owned();
            NotificationSecrets::from_env([(name, value.to_owned())])
        };
        for wrong in ["", "abc", "whsec_abc", "whsec_YWJj"] {
            let error = Webhook::new("my-desk", settings.clone(), &secrets(wrong)).err().unwrap().to_string();
            assert!(error.contains("COUNTERSIGN_WEBHOOK_SECRET_MY_DESK") && error.contains("whsec_"), "{error}");
        }
        let two = secrets("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD");
        assert!(Webhook::new("my-desk", settings, &two).is_ok());
    }
}
