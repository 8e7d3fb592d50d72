//! The interface of notifications for the API: the channels of this server, and a test message.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use shared::id::DeliveryId;
use shared::notification::{Channel, Notifications, Occasion};
use shared::review::Review;

use super::channel;
use super::email::Mail;
use super::failure::DeliveryFailure;
use super::message;
use super::plan::of_review;
use super::recipients::address;
use super::slack::{self, ButtonPress, Interaction, Reaction, SlackMessage};
use super::{Outlets, TIMEOUT};
use crate::clock::{Moment, SharedClock};
use crate::rate_limit::RateLimit;
use crate::store::UserRecord;

/// The shortest time between two test messages to one person.
const BETWEEN_TESTS: Duration = Duration::from_secs(10);

/// The interface of notifications for the API. Cheap to clone.
#[derive(Clone)]
pub struct NotificationService {
    clock: SharedClock,
    outlets: Arc<Outlets>,
    tests: Arc<RateLimit>,
}

/// The reply to a press of a button.
#[derive(Debug)]
pub enum InteractionReply {
    /// A text that only the person who pressed sees.
    Tell(String),
    /// A new message in place of the one with the button.
    Show(SlackMessage),
    /// Nothing was decided.
    Refuse {
        /// The reason, which only the person who pressed sees.
        why: String,
        /// A new message in place of the one with the button, if that is outdated.
        message: Option<SlackMessage>,
    },
}

impl InteractionReply {
    /// Makes the reply that nothing was decided, for this reason.
    pub fn refuse(why: impl Into<String>) -> Self {
        Self::Refuse { why: why.into(), message: None }
    }
}

/// The reason why a test message was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Untested {
    /// The last test was too recent; the next may be made after this many seconds.
    TooSoon(u64),
    /// The message was not accepted, or the channel is not set up.
    Failed(String),
}

impl NotificationService {
    pub(super) fn new(clock: SharedClock, outlets: Arc<Outlets>) -> Self {
        Self { clock, outlets, tests: Arc::new(RateLimit::new(1, BETWEEN_TESTS)) }
    }

    /// Returns a person's choice with what this server adds to it: its channels, and the rules of those who chose none.
    pub fn with_defaults(&self, choice: Option<Notifications>) -> Notifications {
        self.outlets.with_defaults(choice)
    }

    /// Checks that the answer to a question, or the end of a run, can be posted to this URL. The error says why not.
    pub fn check_callback(&self, url: &str) -> Result<(), String> {
        self.outlets.check_callback(url)
    }

    /// Sends a person a test message on a channel, at once.
    pub async fn test(&self, channel: Channel, person: &UserRecord, choice: &Notifications) -> Result<(), Untested> {
        let failed = |why: &str| Untested::Failed(why.to_owned());
        self.tests.take(&person.user.username, self.clock.uptime()).map_err(Untested::TooSoon)?;
        let to = address(channel, person, choice).ok_or_else(|| failed("set an address first"))?;
        let text = format!("This is how Countersign at {} will notify you of reviews.", self.outlets.url);
        let id = DeliveryId(Moment::of(&*self.clock).ids().uuid());
        let sent = match (channel, &self.outlets.slack, &self.outlets.mailer) {
            (Channel::Slack, Some(slack), _) => slack.post(&to, id, &slack::words(&text)).await.map(|_| ()),
            (Channel::Email, _, Some(mailer)) => {
                let mail = Mail { subject: "A test".to_owned(), text: format!("{text}\n") };
                let sent = tokio::time::timeout(TIMEOUT, mailer.send(&to, id, self.clock.now(), mail)).await;
                let slow = "the mail server has not replied within 10 s; the mail may still arrive";
                sent.unwrap_or_else(|_| Err(DeliveryFailure::passing(slow)))
            }
            _ => return Err(failed("this channel is not set up in the server's settings")),
        };
        sent.map_err(|failure| Untested::Failed(failure.message))
    }

    /// Whether a request comes from Slack, by its headers and body.
    pub fn is_from_slack(&self, timestamp: &str, signature: &str, body: &[u8]) -> bool {
        let now = self.clock.now();
        self.outlets.slack.as_ref().is_some_and(|slack| slack.is_signed(timestamp, signature, body, now))
    }

    /// Renders a review that is over.
    pub fn over(&self, review: &Review) -> SlackMessage {
        slack::over(review, &self.outlets.link(of_review(review)))
    }

    /// Renders a review that is pending.
    pub fn open(&self, review: &Review) -> SlackMessage {
        let link = self.outlets.link(of_review(review));
        slack::open(Occasion::Requested, review, &link, self.clock.now())
    }

    /// Describes the outcome of a review in a sentence.
    pub fn outcome(&self, review: &Review) -> String {
        message::outcome(review)
    }

    /// Returns the button press for which a reaction stands. `channel` and `shown` come from the delivery of the
    /// message: the channel that it went to, and what it showed. `None` if the channel is no longer asked, or no button
    /// fits.
    pub fn press_of(&self, reaction: &Reaction, review: &Review, channel: &str, shown: &str) -> Option<ButtonPress> {
        let shown = serde_json::from_str(shown).ok()?;
        let asked = review.is_pending() && channel::reactions_decide(review, channel);
        asked.then(|| reaction.press(review, &shown)).flatten()
    }

    /// Sends the person who reacted a text that only they see, without blocking the request.
    pub fn whisper(&self, reaction: &Reaction, text: &str) {
        let (outlets, reaction, message) = (Arc::clone(&self.outlets), reaction.clone(), slack::words(text));
        tokio::spawn(async move {
            let Some(slack) = &outlets.slack else { return };
            let told = slack.whisper(reaction.channel(), &reaction.user, &message).await;
            if let Err(failure) = told {
                tracing::warn!(why = failure.message, "could not reply to a reaction");
            }
        });
    }

    /// Asks the person who pressed a button for their reason, without blocking the request.
    pub fn ask_reason(&self, interaction: &Interaction, review: &Review) {
        let (service, interaction, dialog) = (self.clone(), interaction.clone(), interaction.reason_dialog(review));
        tokio::spawn(async move {
            let Some(slack) = &service.outlets.slack else { return };
            let opened = slack.open_dialog(&interaction.trigger_id, &dialog).await;
            if let Err(failure) = opened {
                tracing::warn!(review = %interaction.press.review, why = failure.message, "could not ask for a reason");
                let text = "Nothing was decided: Slack did not open the dialog. Press the button again, or decide in the console.";
                service.reply(&interaction, InteractionReply::Tell(text.to_owned()));
            }
        });
    }

    /// Replies to the person who pressed a button, without blocking the request, which Slack awaits for only three
    /// seconds. If the reply does not get through, the log still has what happened, and the message is updated once its
    /// review is over.
    pub fn reply(&self, interaction: &Interaction, reply: InteractionReply) {
        let (shown, tell) = match reply {
            InteractionReply::Tell(text) => (None, Some(text)),
            InteractionReply::Show(message) => (Some(message), None),
            InteractionReply::Refuse { why, message } => (message, Some(why)),
        };
        let shown = shown.map(
            |SlackMessage { text, blocks, .. }| json!({ "replace_original": true, "text": text, "blocks": blocks }),
        );
        let told = tell.map(|text| {
            let SlackMessage { text, blocks, .. } = slack::words(&text);
            json!({ "response_type": "ephemeral", "replace_original": false, "text": text, "blocks": blocks })
        });
        let (outlets, url) = (Arc::clone(&self.outlets), interaction.response_url.clone());
        tokio::spawn(async move {
            for answer in shown.into_iter().chain(told) {
                let Some(slack) = &outlets.slack else { return };
                if let Err(failure) = slack.respond(&url, &answer).await {
                    tracing::warn!(why = failure.message, "could not reply to a button press");
                }
            }
        });
    }
}
