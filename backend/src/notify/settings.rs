//! The receivers and channels in the settings file and the environment.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use shared::definition::Severity;
use shared::id::{FlowId, MAX_NAME};
use shared::notification::{Channel, MAX_RULES, Occasion, Rule};
use shared::review::ReviewKind;

use super::Error;
use super::filter::Filter;

/// The longest delay of a rule.
const MAX_AFTER: Duration = Duration::from_hours(30 * 24);

/// `[notifications]` of the settings file. Secrets are not in the file: they come from the environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NotificationSettings {
    /// The address of the console, for links; default: the first of `origins`, or the address listened on.
    pub url: Option<String>,
    /// Private hosts (`host` or `host:port`) that requests may go to; public hosts are always allowed.
    pub allowed_hosts: Vec<String>,
    /// Programs to notify, by the name under which deliveries show them.
    pub webhooks: BTreeMap<String, WebhookSettings>,
    /// The app in Slack. `None`: nobody is notified there.
    pub slack: Option<SlackSettings>,
    /// The mail server. `None`: no mail is sent.
    pub smtp: Option<SmtpSettings>,
    /// What people get who chose no rules of their own.
    pub default: DefaultNotifications,
}

/// `[notifications.default]`: the notifications of people who chose no rules of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DefaultNotifications {
    /// The rules, as people choose them.
    pub rules: Vec<Rule>,
}

impl DefaultNotifications {
    /// Returns the rules, checked against the channels that are set up.
    pub(super) fn checked(self, channels: &[Channel]) -> Result<Vec<Rule>, Error> {
        let wrong = |why: String| Error::Settings(format!("[notifications.default]: {why}"));
        let mistakes = rule_mistakes(&self.rules);
        if let Some(RuleMistake { rule, why }) = mistakes.first() {
            return Err(wrong(match rule {
                Some((index, field)) => format!("rule {}: `{field}`: {why}", index + 1),
                None => format!("`rules`: {why}"),
            }));
        }
        match self.rules.iter().enumerate().find(|(_, rule)| !channels.contains(&rule.channel)) {
            Some((index, rule)) => {
                let section = match rule.channel {
                    Channel::Slack => "[notifications.slack]",
                    Channel::Email => "[notifications.smtp]",
                };
                let (number, channel) = (index + 1, rule.channel.as_str());
                Err(wrong(format!("rule {number} needs the channel `{channel}`: set up {section}")))
            }
            None => Ok(self.rules),
        }
    }
}

/// A mistake in notification rules.
#[derive(Debug)]
pub struct RuleMistake {
    /// The index and the field of the rule. `None` if the mistake is in all of them.
    pub rule: Option<(usize, &'static str)>,
    /// What must be changed.
    pub why: String,
}

/// Returns every mistake in the rules of a person or of the settings.
pub fn rule_mistakes(rules: &[Rule]) -> Vec<RuleMistake> {
    let too_many =
        (rules.len() > MAX_RULES).then(|| RuleMistake { rule: None, why: format!("at most {MAX_RULES} rules") });
    let in_rules = rules.iter().enumerate().flat_map(|(index, rule)| {
        let wrong = |is_wrong: bool, field, why: &str| {
            is_wrong.then(|| RuleMistake { rule: Some((index, field)), why: why.to_owned() })
        };
        let too_long = rule.after.is_some_and(|after| after.0 > MAX_AFTER);
        let events = wrong(rule.events.is_empty(), "events", "at least one event");
        events.into_iter().chain(wrong(too_long, "after", "at most 30 days"))
    });
    too_many.into_iter().chain(in_rules).collect()
}

/// `[notifications.slack]`: an app in Slack, or in a program with the same API. Its bot token is
/// `COUNTERSIGN_SLACK_TOKEN`, its signing secret `COUNTERSIGN_SLACK_SIGNING_SECRET`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SlackSettings {
    /// The base URL of the API; default: `https://slack.com/api`.
    pub api: Option<String>,
    /// The channels that get reviews, whoever asks for them, by their names in Slack.
    pub channels: BTreeMap<String, Filter>,
}

/// `[notifications.smtp]`: the mail server. Its password is `COUNTERSIGN_SMTP_PASSWORD`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmtpSettings {
    /// The host name of the server; with encryption, its certificate must be for this name.
    pub host: String,
    /// The port; default: 587 with `starttls`, 465 with `tls`, 25 with `none`.
    pub port: Option<u16>,
    /// How the connection is encrypted.
    #[serde(default)]
    pub encryption: Encryption,
    /// The user name for the login. `None`: no login.
    pub username: Option<String>,
    /// The sender, such as `Countersign <reviews@example.org>`.
    pub from: String,
}

/// How a connection to a mail server is encrypted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encryption {
    /// The connection begins unencrypted and must be upgraded to TLS.
    #[default]
    Starttls,
    /// The connection uses TLS from the first byte.
    Tls,
    /// The connection is not encrypted: for a server on this machine. No password is sent.
    None,
}

/// `[notifications.webhooks.NAME]`: a program to notify.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookSettings {
    /// The URL that messages are posted to.
    pub url: String,
    /// The occasions of which the program is notified; default: all of reviews, and none of runs.
    #[serde(default = "of_reviews")]
    pub events: Vec<Occasion>,
    /// Only reviews and runs of these flows; if empty, of all.
    #[serde(default)]
    pub flows: Vec<FlowId>,
    /// Only reviews for one of these roles; if empty, for all.
    #[serde(default)]
    pub roles: Vec<String>,
    /// Only reviews of these kinds; if empty, of all.
    #[serde(default)]
    pub kinds: Vec<ReviewKind>,
    /// Only reviews with one of these severities; if empty, with any.
    #[serde(default)]
    pub severities: Vec<Severity>,
}

fn of_reviews() -> Vec<Occasion> {
    Occasion::OF_REVIEWS.to_vec()
}

/// The secrets of the channels, by environment variable.
#[derive(Clone, Default)]
pub struct NotificationSecrets(BTreeMap<String, String>);

impl NotificationSecrets {
    /// Picks the variables that belong to notifications. Empty ones count as not set.
    pub fn from_env(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let prefixes =
            ["COUNTERSIGN_WEBHOOK_SECRET_", "COUNTERSIGN_CALLBACK_SECRET", "COUNTERSIGN_SLACK_", "COUNTERSIGN_SMTP_"];
        let ours = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
        Self(variables.into_iter().filter(|(name, value)| ours(name) && !value.trim().is_empty()).collect())
    }

    /// Returns the trimmed value of a variable, if it is set.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.trim())
    }

    /// Returns the name of the variable that holds a webhook's secrets, and its value if it is set.
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

/// Whether this is a valid name for a webhook. The name appears in lists and in names of variables.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_rules_that_cannot_apply_are_refused_with_their_place_and_the_remedy() {
        let checked = |rules: &str, channels: &[Channel]| {
            let settings: NotificationSettings =
                toml::from_str(&format!("[default]\nrules = [{rules}]")).expect("TOML");
            settings.default.checked(channels).map_err(|error| error.to_string())
        };
        let good = "{ channel = \"email\", events = [\"review.requested\", \"review.expiring\"], after = \"10m\" }";
        assert_eq!(checked(good, &[Channel::Email]).expect("it is right").len(), 1);
        for (rules, expected) in [
            (good.replace("email", "slack"), "rule 1 needs the channel `slack`: set up [notifications.slack]"),
            (format!("{good}, {}", good.replace("10m", "31d")), "rule 2: `after`: at most 30 days"),
            ("{ channel = \"email\", events = [] }".to_owned(), "rule 1: `events`: at least one event"),
            (vec![good; MAX_RULES + 1].join(", "), "`rules`: at most 20 rules"),
        ] {
            let error = checked(&rules, &[Channel::Email]).expect_err("it is wrong");
            assert_eq!(error, format!("[notifications.default]: {expected}"));
        }
    }
}
