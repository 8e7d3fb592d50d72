//! Slack, or a program with the same API: messages with buttons that decide, and requests about presses and reactions.

mod blocks;
mod button;
mod content;
mod decisions;
mod interaction;
mod reaction;
mod text;

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::CONTENT_TYPE;
use ring::hmac;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::id::DeliveryId;
use shared::time::Timestamp;

pub(super) use blocks::{SlackMessage, about, digest, open, over, passed_on, words};
pub use button::ButtonPress;
pub use interaction::Interaction;
pub use reaction::{Reaction, ShownReview, SlackEvent};

use super::failure::DeliveryFailure;
use super::filter::Filter;
use super::settings::{NotificationSecrets, SlackSettings};
use super::{Error, TIMEOUT};
use crate::http_client::{retry_after, whole};
use crate::ssrf::Clients;

/// The largest accepted difference between the time of a request and the server's clock.
const SKEW: Duration = Duration::from_mins(5);
/// The largest response that is read, in bytes.
const MAX_ANSWER: usize = 256 * 1024;
/// The longest name of a channel, in characters; that of Slack.
const MAX_CHANNEL: usize = 80;
/// The errors of Slack after which another attempt may succeed.
const PASSING: [&str; 6] =
    ["ratelimited", "rate_limited", "service_unavailable", "internal_error", "fatal_error", "request_timeout"];
/// The errors of Slack about the content of a message: something in it is too long, or not as Slack wants it.
const UNACCEPTED: [&str; 4] = ["invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long"];

/// An app in a Slack workspace.
pub(super) struct Slack {
    clients: Clients,
    api: Url,
    token: String,
    signing_key: hmac::Key,
    /// The channels that get reviews, whoever asks for them, each with what it gets.
    pub channels: BTreeMap<String, Filter>,
}

/// The address of a message, by which it can be changed later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Receipt {
    /// The id of the channel or direct conversation, as Slack returned it.
    pub channel: String,
    /// The timestamp of the message, which identifies it within the channel.
    pub ts: String,
}

pub(super) struct Posted {
    pub receipt: Receipt,
    /// Whether it has all of its blocks, and not only the headline and the link.
    pub whole: bool,
}

/// Whether the text may be the id of a member of a workspace.
pub fn is_slack_user_id(text: &str) -> bool {
    text.len() <= 30 && text.starts_with(['U', 'W']) && text.chars().all(|c| c.is_ascii_alphanumeric())
}

impl Slack {
    /// Creates the app from the settings. A missing secret and a channel that cannot exist are errors.
    pub fn new(settings: SlackSettings, secrets: &NotificationSecrets, clients: Clients) -> Result<Self, Error> {
        let wrong = |why: String| Error::Settings(format!("[notifications.slack]: {why}"));
        let secret = |name: &str, what: &str| {
            secrets.get(name).map(str::to_owned).ok_or_else(|| wrong(format!("set {name} to the app's {what}")))
        };
        let api = settings.api.as_deref().unwrap_or("https://slack.com/api");
        let api: Url = format!("{}/", api.trim_end_matches('/'))
            .parse()
            .map_err(|error| wrong(format!("`api` is not a URL: {error}")))?;
        let token = secret("COUNTERSIGN_SLACK_TOKEN", "bot token (xoxb-…)")?;
        let signing_secret = secret("COUNTERSIGN_SLACK_SIGNING_SECRET", "signing secret")?;
        if let Some(channel) = settings.channels.keys().find(|channel| !is_channel(channel)) {
            return Err(wrong(format!(
                "`channels`: expected a channel, such as \"#approvals\", or its id: `{channel}`"
            )));
        }
        let signing_key = hmac::Key::new(hmac::HMAC_SHA256, signing_secret.as_bytes());
        Ok(Self { clients, api, token, signing_key, channels: settings.channels })
    }

    /// Posts a message to a channel or a member. The id is the same for every attempt.
    pub async fn post(&self, to: &str, id: DeliveryId, message: &SlackMessage) -> Result<Posted, DeliveryFailure> {
        let metadata = json!({ "event_type": "countersign_review", "event_payload": { "delivery": id } });
        let body = json!({ "channel": to, "metadata": metadata, "unfurl_links": false, "unfurl_media": false });
        let (answer, whole) = self.show("chat.postMessage", body, message).await?;
        let receipt = serde_json::from_value(answer)
            .map_err(|_| DeliveryFailure::lasting("Slack did not return the address of the message"))?;
        Ok(Posted { receipt, whole })
    }

    pub async fn update(&self, receipt: &Receipt, message: &SlackMessage) -> Result<(), DeliveryFailure> {
        let Receipt { channel, ts } = receipt;
        self.show("chat.update", json!({ "channel": channel, "ts": ts }), message).await.map(|_| ())
    }

    /// Calls a method that shows a message, and once more with only the headline and the link if Slack does not accept
    /// its content, which agents determine. Returns Slack's answer, and whether the message is whole.
    async fn show(
        &self,
        method: &str,
        mut body: Value,
        message: &SlackMessage,
    ) -> Result<(Value, bool), DeliveryFailure> {
        body["text"] = message.text.as_str().into();
        body["blocks"] = message.blocks.clone();
        let answer = self.call(method, &body).await?;
        let error = answer["error"].as_str().unwrap_or_default();
        if !UNACCEPTED.contains(&error) {
            return accepted(method, answer).map(|answer| (answer, true));
        }
        tracing::warn!(method, error, "Slack did not accept a message; sending only its headline and link");
        body["blocks"] = message.brief.clone();
        let answer = self.call(method, &body).await?;
        accepted(method, answer).map(|answer| (answer, false))
    }

    /// Calls a method, and returns Slack's answer, which may be an error.
    async fn call(&self, method: &str, body: &Value) -> Result<Value, DeliveryFailure> {
        let wrong = |error| DeliveryFailure::lasting(format!("the address of Slack: {error}"));
        let url = self.api.join(method).map_err(wrong)?;
        let request = self.clients.of(&url)?.post(url).timeout(TIMEOUT).bearer_auth(&self.token);
        let request = request.header(CONTENT_TYPE, "application/json; charset=utf-8").body(body.to_string());
        let answer = request.send().await?;
        let status = answer.status();
        let after = retry_after(answer.headers());
        let said = whole(answer, MAX_ANSWER).await?;
        let said = said.ok_or_else(|| DeliveryFailure::passing("the answer of Slack is too large"))?;
        if !status.is_success() {
            return Err(DeliveryFailure::refused(status, after, &said));
        }
        serde_json::from_slice(&said).map_err(|_| DeliveryFailure::passing("Slack's answer is not JSON"))
    }

    /// Posts a message to a channel that only one member of it sees.
    pub async fn whisper(&self, channel: &str, user: &str, message: &SlackMessage) -> Result<(), DeliveryFailure> {
        let body = json!({ "channel": channel, "user": user, "text": message.text, "blocks": message.blocks });
        let answer = self.call("chat.postEphemeral", &body).await?;
        accepted("chat.postEphemeral", answer).map(|_| ())
    }

    /// Opens a dialog for the person whose interaction has this trigger.
    pub async fn open_dialog(&self, trigger_id: &str, view: &Value) -> Result<(), DeliveryFailure> {
        let answer = self.call("views.open", &json!({ "trigger_id": trigger_id, "view": view })).await?;
        accepted("views.open", answer).map(|_| ())
    }

    /// Posts a reply to a press of a button.
    pub async fn respond(&self, url: &str, body: &Value) -> Result<(), DeliveryFailure> {
        let url: Url = url.parse().map_err(|_| DeliveryFailure::lasting("no address to reply to"))?;
        let request = self.clients.of(&url)?.post(url).timeout(TIMEOUT).header(CONTENT_TYPE, "application/json");
        let answer = request.body(body.to_string()).send().await?;
        if answer.status().is_success() { Ok(()) } else { Err(DeliveryFailure::refused(answer.status(), None, &[])) }
    }

    /// Whether a request comes from Slack: signed with the signing secret over its body, within [`SKEW`].
    pub fn is_signed(&self, timestamp: &str, signature: &str, body: &[u8], now: Timestamp) -> bool {
        let Ok(seconds) = timestamp.parse::<i64>() else { return false };
        let skew = (now.millis() / 1000).abs_diff(seconds);
        let Some(Ok(given)) = signature.strip_prefix("v0=").map(hex::decode) else { return false };
        let message = [format!("v0:{timestamp}:").as_bytes(), body].concat();
        // Compared in constant time.
        skew <= SKEW.as_secs() && hmac::verify(&self.signing_key, &message, &given).is_ok()
    }
}

/// Whether a channel of this name or id can exist.
fn is_channel(text: &str) -> bool {
    let name = text.strip_prefix('#').unwrap_or(text);
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && name.chars().count() <= MAX_CHANNEL && name.chars().all(is_name)
}

/// Returns the answer to a call unless it is an error.
fn accepted(method: &str, answer: Value) -> Result<Value, DeliveryFailure> {
    if answer["ok"] == true {
        return Ok(answer);
    }
    let error: String = answer["error"].as_str().unwrap_or("no reason").chars().take(100).collect();
    let message = format!("Slack refused {method}: {error}");
    Err(if PASSING.contains(&error.as_str()) {
        DeliveryFailure::passing(message)
    } else {
        DeliveryFailure::lasting(message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example in Slack's documentation.
    #[test]
    fn a_request_is_slacks_by_its_signature_and_its_time() {
        let name = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let secrets = NotificationSecrets::from_env([
            name("COUNTERSIGN_SLACK_TOKEN", "xoxb-1"),
            name("COUNTERSIGN_SLACK_SIGNING_SECRET", "8f742231b10e8888abcd99yyyzzz85a5"),
        ]);
        let slack = Slack::new(SlackSettings::default(), &secrets, Clients::new(&[]).unwrap()).unwrap();
        let body = b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
        let signature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
        let at = |seconds: i64| Timestamp(seconds * 1_000_000);
        assert!(slack.is_signed("1531420618", signature, body, at(1_531_420_618 + 299)));
        assert!(!slack.is_signed("1531420618", signature, body, at(1_531_420_618 + 301)));
        assert!(!slack.is_signed("1531420618", signature, &body[1..], at(1_531_420_618)));
        assert!(!slack.is_signed("1531420619", signature, body, at(1_531_420_618)));
        for wrong in ["", "v0=", "v1=00", &signature.replace('a', "b"), &signature[3..]] {
            assert!(!slack.is_signed("1531420618", wrong, body, at(1_531_420_618)), "{wrong}");
        }
    }

    #[test]
    fn a_channel_that_cannot_exist_is_refused_with_the_remedy() {
        let secrets = ["COUNTERSIGN_SLACK_TOKEN", "COUNTERSIGN_SLACK_SIGNING_SECRET"];
        let secrets = NotificationSecrets::from_env(secrets.map(|name| (name.to_owned(), "secret".to_owned())));
        let with = |channel: &str| {
            let channels = [(channel.to_owned(), Filter::default())].into();
            Slack::new(SlackSettings { channels, ..SlackSettings::default() }, &secrets, Clients::new(&[]).unwrap())
        };
        assert!(with("#money").is_ok() && with("C024BE91L").is_ok());
        let error = with("two words").err().unwrap().to_string();
        assert!(error.contains("[notifications.slack]: `channels`") && error.contains("#approvals"), "{error}");
    }
}
