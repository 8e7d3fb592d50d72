//! Notifies people and programs outside the console: that a review needs them, that time is nearly up, what others say
//! about it, how it ended, and what becomes of runs. Owns the channels, the choice of recipients, and sending with its
//! retries.
//!
//! Nothing here is on the path of a commit. A feeder reads the log and makes deliveries of its entries, and a sender
//! sends them; after a crash both continue where they were. If no channel is set up, neither runs, and nothing leaves
//! the server.
//!
//! A secret is sent only to its owner, and never appears in an error, a log or a list.

mod callback;
mod channel;
mod comments;
mod email;
mod failure;
mod feed;
mod filter;
mod message;
mod people;
mod plan;
mod recipients;
mod run_message;
mod send;
mod sender;
mod service;
mod settings;
mod slack;
mod webhook;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use shared::log::Entry;
use shared::notification::{Channel, Notifications, Rule};
use tokio::sync::watch;

pub use callback::NO_CALLBACKS;
pub use email::is_address;
pub use filter::Filter;
pub use service::{InteractionReply, NotificationService, Untested};
pub use settings::{
    DefaultNotifications, Encryption, NotificationSecrets, NotificationSettings, RuleMistake, SlackSettings,
    SmtpSettings, WebhookSettings, rule_mistakes,
};
pub use slack::{ButtonPress, Interaction, Reaction, SlackEvent, is_slack_user_id};

use crate::background::BackgroundTask;
use crate::clock::SharedClock;
use crate::ssrf::Clients;
use crate::standard_webhooks::SigningKeys;
use crate::store::{self, DeliveryLane, DeliverySubject, Store};
use email::Mailer;
use feed::Feeder;
use sender::Sender;
use slack::Slack;
use webhook::Webhook;

/// The time limit for a receiver's response.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why notifications cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The settings are wrong.
    #[error("{0}")]
    Settings(String),
    /// The HTTP client could not be built.
    #[error("the HTTP client for notifications: {0}")]
    Client(#[from] reqwest::Error),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// The dependencies of the notifier.
pub struct NotifierOptions {
    /// The database whose log is read, and which stores the deliveries.
    pub store: Store,
    /// The clock by which attempts are timed.
    pub clock: SharedClock,
    /// The channels and their receivers.
    pub settings: NotificationSettings,
    /// The secrets of the channels.
    pub secrets: NotificationSecrets,
    /// The URL of the console, without a slash at the end.
    pub url: String,
    /// The wait after the first failure; after each further one, it is three times as long.
    pub first_wait: Duration,
}

/// The channels that are set up on this server.
struct Outlets {
    clients: Clients,
    webhooks: BTreeMap<String, Webhook>,
    /// The keys that sign callbacks. `None`: nothing is posted to the programs that asked.
    callback_keys: Option<SigningKeys>,
    slack: Option<Slack>,
    mailer: Option<Mailer>,
    /// The rules of people who chose none.
    default_rules: Vec<Rule>,
    /// The URL of the console, without a slash at the end.
    url: String,
}

impl Outlets {
    fn new(settings: NotificationSettings, secrets: &NotificationSecrets, url: String) -> Result<Self, Error> {
        let webhooks = settings.webhooks.into_iter();
        let webhooks = webhooks.map(|(name, webhook)| Ok((name.clone(), Webhook::new(&name, webhook, secrets)?)));
        let clients = Clients::new(&settings.allowed_hosts)?;
        let mut outlets = Self {
            webhooks: webhooks.collect::<Result<_, Error>>()?,
            callback_keys: callback::signing_keys(secrets)?,
            slack: settings.slack.map(|slack| Slack::new(slack, secrets, clients.clone())).transpose()?,
            mailer: settings.smtp.map(|smtp| Mailer::new(&smtp, secrets)).transpose()?,
            default_rules: Vec::new(),
            clients,
            url,
        };
        outlets.default_rules = settings.default.checked(&outlets.channels())?;
        Ok(outlets)
    }

    fn is_empty(&self) -> bool {
        self.webhooks.is_empty() && self.callback_keys.is_none() && self.channels().is_empty()
    }

    /// Returns the channels on which people can be notified.
    fn channels(&self) -> Vec<Channel> {
        let slack = self.slack.iter().map(|_| Channel::Slack);
        slack.chain(self.mailer.iter().map(|_| Channel::Email)).collect()
    }

    /// Returns a person's choice with what this server adds to it: its channels, and the rules of those who chose none.
    fn with_defaults(&self, choice: Option<Notifications>) -> Notifications {
        let (available, default_rules) = (self.channels(), self.default_rules.clone());
        Notifications { available, default_rules, ..choice.unwrap_or_default() }
    }

    /// Whether programs, or a channel in Slack, may be notified of an entry. Its review or run need not be read otherwise.
    fn may_want(&self, entry: &Entry) -> bool {
        // Only questions without a run are answered by a callback, perhaps by another server that has the secret.
        let may_be_answered = entry.event.run_id.is_none();
        !self.webhooks.is_empty() || self.slack.is_some() || may_be_answered
    }

    fn link(&self, to: DeliverySubject) -> String {
        match to {
            DeliverySubject::Review(review, _) => format!("{}/reviews/{review}", self.url),
            DeliverySubject::Run(run) => format!("{}/runs/{run}", self.url),
        }
    }
}

/// Notifies people and programs of reviews and runs. It stops when this is dropped.
pub struct Notifier {
    notifications: NotificationService,
    tasks: Vec<BackgroundTask>,
}

impl Notifier {
    /// Starts the notifier where the last one stopped. If no channel is set up, nothing runs.
    pub async fn run(options: NotifierOptions) -> Result<Self, Error> {
        let NotifierOptions { store, clock, settings, secrets, url, first_wait } = options;
        let outlets = Arc::new(Outlets::new(settings, &secrets, url)?);
        if outlets.is_empty() {
            // Channels that are set up later must not get notifications of what happened before.
            store.forget_outbox().await?;
            let notifications = NotificationService::new(clock, outlets);
            return Ok(Self { notifications, tasks: Vec::new() });
        }
        let added = watch::Sender::new(());
        let feeder = Feeder::new(store.clone(), clock.clone(), Arc::clone(&outlets), added.clone()).await?;
        let notifications = NotificationService::new(clock.clone(), Arc::clone(&outlets));
        let background = store.background().clone();
        let (commits, kept) = (store.commits(), store.clone());
        let mut tasks = vec![
            background.start("feeder", |stop| store::follow(feeder, commits, stop)),
            background.run("clean-up of deliveries", send::clean_up(kept)),
        ];
        for (name, lane) in [("sender", DeliveryLane::Others), ("sender of mails", DeliveryLane::Mails)] {
            let (terms, changed) = (sender::terms(&clock), added.subscribe());
            let (store, clock, outlets, added) = (store.clone(), clock.clone(), Arc::clone(&outlets), added.clone());
            let sender = Arc::new(Sender { store, clock, outlets, added, lane, terms, first_wait });
            tasks.push(background.start(name, |stop| store::consume(sender, changed, stop)));
        }
        Ok(Self { notifications, tasks })
    }

    /// Returns the interface for the API.
    pub fn notifications(&self) -> NotificationService {
        self.notifications.clone()
    }

    /// Starts no more deliveries, and waits for those that were started.
    pub async fn shutdown(self) {
        futures::future::join_all(self.tasks.into_iter().map(BackgroundTask::stop)).await;
    }
}
