//! The receivers and channels in the settings file and the environment.

use std::collections::BTreeMap;

use serde::Deserialize;
use shared::definition::Severity;
use shared::id::{FlowId, MAX_NAME};
use shared::notification::Occasion;
use shared::review::ReviewKind;

/// `[notifications]` of the settings file. Secrets never stand here: they come from the environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NotificationSettings {
    /// Where people find the console, for links; default: the first of `origins`, or the address listened on.
    pub url: Option<String>,
    /// Private hosts (`host` or `host:port`) that may be told; public ones always may.
    pub allowed_hosts: Vec<String>,
    /// Programs that are told, by the name under which deliveries show them.
    pub webhooks: BTreeMap<String, WebhookSettings>,
    /// The app in Slack; none: nobody is told there.
    pub slack: Option<SlackSettings>,
    /// The server that takes mails; none: nobody is written to.
    pub smtp: Option<SmtpSettings>,
}

/// `[notifications.slack]`: an app in Slack, or in what speaks like it. Its bot token is `COUNTERSIGN_SLACK_TOKEN`, its
/// signing secret `COUNTERSIGN_SLACK_SIGNING_SECRET`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SlackSettings {
    /// Where its API is; default: `https://slack.com/api`.
    pub api: Option<String>,
}

/// `[notifications.smtp]`: the server that takes mails. Its password is `COUNTERSIGN_SMTP_PASSWORD`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmtpSettings {
    /// The host name of the server; with encryption, its certificate must be for this name.
    pub host: String,
    /// Default: 587 with `starttls`, 465 with `tls`, 25 with `none`.
    pub port: Option<u16>,
    /// How the connection is kept private.
    #[serde(default)]
    pub encryption: Encryption,
    /// As whom to log in; none: not at all.
    pub username: Option<String>,
    /// Who writes: `Countersign <reviews@example.org>`.
    pub from: String,
}

/// How a connection to a mail server is kept private.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encryption {
    /// It begins in the open and must become private.
    #[default]
    Starttls,
    /// It is private from the first byte.
    Tls,
    /// It is not: for a server on this machine. No password is sent.
    None,
}

/// `[notifications.webhooks.NAME]`: a program that is told.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookSettings {
    /// Where each message is posted.
    pub url: String,
    /// Of what it is told.
    #[serde(default = "everything")]
    pub events: Vec<Occasion>,
    /// Only of reviews of these flows; none: of all.
    #[serde(default)]
    pub flows: Vec<FlowId>,
    /// Only of reviews for one of these roles; none: of all.
    #[serde(default)]
    pub roles: Vec<String>,
    /// Only of reviews of these kinds; none: of all.
    #[serde(default)]
    pub kinds: Vec<ReviewKind>,
    /// Only of reviews with so much at stake; none: of all.
    #[serde(default)]
    pub severities: Vec<Severity>,
}

fn everything() -> Vec<Occasion> {
    Occasion::ALL.to_vec()
}

/// What is secret, by the names of the environment.
#[derive(Clone, Default)]
pub struct NotificationSecrets(BTreeMap<String, String>);

impl NotificationSecrets {
    /// What belongs to notifications among these variables.
    pub fn from_env(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let prefixes =
            ["COUNTERSIGN_WEBHOOK_SECRET_", "COUNTERSIGN_CALLBACK_SECRET", "COUNTERSIGN_SLACK_", "COUNTERSIGN_SMTP_"];
        let ours = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
        Self(variables.into_iter().filter(|(name, value)| ours(name) && !value.trim().is_empty()).collect())
    }

    /// The value of a variable.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.trim())
    }

    /// The secrets of a webhook, and the variable in which they stand.
    pub(super) fn of_webhook(&self, name: &str) -> (String, Option<&str>) {
        let variable = format!("COUNTERSIGN_WEBHOOK_SECRET_{}", name.to_ascii_uppercase().replace('-', "_"));
        let secrets = self.get(&variable);
        (variable, secrets)
    }
}

impl std::fmt::Debug for NotificationSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NotificationSecrets").field("names", &self.0.keys().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

/// Whether a webhook may be called so: its name stands in lists and in the names of variables.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}
