//! What deliveries are: by which channel they go to whom, and what they announce. Stored as words.

use shared::id::{ReviewId, RunId};
use shared::notification::{Channel, Occasion};

/// The kind of receiver of a delivery, and so the way in which it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeliveryKind {
    /// A program, by a webhook of the settings.
    Webhook,
    /// A program that asked without a flow or started a run, at its callback URL.
    Callback,
    /// A channel in Slack.
    SlackChannel,
    /// A person, by a channel of their choice.
    Person(Channel),
}

impl DeliveryKind {
    const ALL: [Self; 5] =
        [Self::Webhook, Self::Callback, Self::SlackChannel, Self::Person(Channel::Slack), Self::Person(Channel::Email)];

    /// Returns the stored word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Callback => "callback",
            Self::SlackChannel => "slack_channel",
            Self::Person(channel) => channel.as_str(),
        }
    }

    pub(super) fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// The deliveries that a sender claims. Each lane has a sender of its own, so that one slow mail server holds up no other
/// message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryLane {
    /// Mails: a mail server may take minutes for each.
    Mails,
    /// Everything else.
    Others,
}

impl DeliveryLane {
    /// The condition that selects its rows.
    pub(super) fn condition(self) -> &'static str {
        match self {
            Self::Mails => " AND channel = 'email'",
            Self::Others => " AND channel <> 'email'",
        }
    }
}

/// What a delivery is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeliverySubject {
    /// A review, with its run; `None` if the review belongs to no flow.
    Review(ReviewId, Option<RunId>),
    /// A run.
    Run(RunId),
}

impl DeliverySubject {
    /// Returns the subject with these stored ids; `None` if there is neither.
    pub(super) fn of_ids(review: Option<ReviewId>, run: Option<RunId>) -> Option<Self> {
        review.map(|review| Self::Review(review, run)).or_else(|| run.map(Self::Run))
    }

    /// Returns the review; `None` if it is about a run.
    pub fn review(self) -> Option<ReviewId> {
        match self {
            Self::Review(review, _) => Some(review),
            Self::Run(_) => None,
        }
    }

    /// Returns the run, or the run of the review; `None` if the review belongs to no flow.
    pub fn run(self) -> Option<RunId> {
        match self {
            Self::Review(_, run) => run,
            Self::Run(run) => Some(run),
        }
    }
}

/// What a delivery does: announces an event, or changes a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeliveryEvent {
    /// Announces an event of a review or a run.
    Announce(Occasion),
    /// Changes a message, because its review is over or others are asked.
    Update,
}

impl DeliveryEvent {
    const UPDATE: &'static str = "message.update";

    /// Returns the stored word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Announce(occasion) => occasion.as_str(),
            Self::Update => Self::UPDATE,
        }
    }

    pub(super) fn of_word(word: &str) -> Option<Self> {
        if word == Self::UPDATE { Some(Self::Update) } else { Occasion::of_word(word).map(Self::Announce) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_and_event_is_read_as_it_was_stored() {
        let words = DeliveryKind::ALL.map(DeliveryKind::as_str);
        assert_eq!(words, ["webhook", "callback", "slack_channel", "slack", "email"]);
        assert_eq!(words.map(DeliveryKind::of_word), DeliveryKind::ALL.map(Some));
        assert_eq!(DeliveryKind::of_word("pigeon"), None);
        for event in Occasion::ALL.iter().copied().map(DeliveryEvent::Announce).chain([DeliveryEvent::Update]) {
            assert_eq!(DeliveryEvent::of_word(event.as_str()), Some(event));
        }
        assert_eq!(DeliveryEvent::of_word("review.sung"), None);
    }
}
