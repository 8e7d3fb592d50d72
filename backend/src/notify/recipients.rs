//! Chooses the people who are notified, by their rules, and checks whether a message is still useful when it is due.

use std::collections::BTreeMap;
use std::time::Duration;

use shared::access::Principal;
use shared::definition::Severity;
use shared::id::DeliveryId;
use shared::log::{Announced, AnnouncedSubject};
use shared::notification::{Channel, Notifications, Occasion};
use shared::review::Review;
use shared::run::RunStatus;
use shared::time::Timestamp;

use super::Outlets;
use super::comments::{NewComments, has_answered};
use super::email::{MailItem, mail};
use super::failure::DeliveryFailure;
use super::plan::{Announcement, OVER, PASSED_ON, update};
use super::sender::Sender;
use super::slack;
use crate::store::{
    self, DeliveryEvent, DeliveryKind, DeliveryOutcome, DeliverySubject, NewDelivery, Store, StoredDelivery, UserRecord,
};

/// The largest number of messages that a person gets on a channel in [`WINDOW`]; further ones wait, and are sent as
/// one.
const CAP: u32 = 12;
const WINDOW: Duration = Duration::from_hours(1);
/// The largest number of chat messages that are sent separately, so that each can be decided in the chat.
const FEW: usize = 5;
/// After this many failures, a delivery is sent alone.
const ALONE_AFTER: u32 = 5;

/// A person who may be notified.
pub(super) struct Recipient {
    record: UserRecord,
    choice: Notifications,
    principal: Principal,
    /// The time at which these rights change by themselves; `None` if no deputyship begins or ends.
    pub changes_at: Option<Timestamp>,
}

impl Recipient {
    /// Reads for whom the person stands in, if they are a deputy.
    pub async fn of(store: &Store, record: UserRecord, choice: Notifications) -> Result<Self, store::Error> {
        let mut principal = record.principal(None);
        let mut changes_at = None;
        if !record.deputyships.is_empty() {
            let standing = store.standing(&record).await?;
            (principal.stands_for, changes_at) = (standing.stands_for, standing.until);
        }
        Ok(Self { record, choice, principal, changes_at })
    }
}

pub(super) fn plan(notice: &Announcement<'_>, people: &[Recipient], outlets: &Outlets) -> Vec<NewDelivery> {
    let channels = outlets.channels();
    let Announced { occasion, about, only } = notice.announced;
    let mut deliveries: Vec<NewDelivery> = Vec::new();
    for Recipient { record, choice, principal, .. } in people {
        if only.as_ref().is_some_and(|only| !only.contains(&principal.username)) {
            continue;
        }
        for rule in choice.applied() {
            let wanted = rule.events.contains(occasion)
                && has_severity(about, &rule.severities)
                && channels.contains(&rule.channel)
                && address(rule.channel, record, choice).is_some()
                && !notice.entry.event.is_done_by(&principal.username);
            if !wanted || !concerns(principal, *occasion, about) {
                continue;
            }
            let after = rule.after.map(|span| span.0).unwrap_or_default();
            let made = notice.delivery(
                DeliveryKind::Person(rule.channel),
                &principal.username,
                &[&after.as_secs().to_string()],
            );
            if deliveries.iter().all(|known| known.id != made.id) {
                deliveries.push(NewDelivery { due_at: made.due_at.after(after), ..made });
            }
        }
    }
    deliveries
}

/// Whether this has one of these severities. If there are none, and for runs, which have no severity, there is no limit.
fn has_severity(about: &AnnouncedSubject, severities: &[Severity]) -> bool {
    match about {
        AnnouncedSubject::Review(review) => severities.is_empty() || severities.contains(&review.stakes.severity),
        AnnouncedSubject::Run(_) => true,
    }
}

/// Whether a person is notified: of the runs that they started, of reviews that they may decide and have not voted on, of
/// the end of reviews that they requested or voted on, and of comments on reviews in which they take part.
fn concerns(principal: &Principal, occasion: Occasion, about: &AnnouncedSubject) -> bool {
    match about {
        AnnouncedSubject::Review(review) => concerns_review(principal, occasion, review),
        AnnouncedSubject::Run(run) => shared::log::has_started(principal, run),
    }
}

fn concerns_review(principal: &Principal, occasion: Occasion, review: &Review) -> bool {
    match occasion {
        Occasion::Requested | Occasion::Expiring => shared::log::is_asked(principal, review),
        Occasion::Resolved => {
            let voted = review.decisions.iter().any(|decision| decision.by == principal.username);
            voted || review.requested_by == principal.username
        }
        Occasion::Commented => shared::log::takes_part(principal, review),
        Occasion::RunWaiting | Occasion::RunCompleted | Occasion::RunFailed | Occasion::RunCancelled => false,
    }
}

/// Returns the person's address on a channel, or `None` if they have none.
pub(super) fn address(channel: Channel, record: &UserRecord, choice: &Notifications) -> Option<String> {
    match channel {
        Channel::Slack => choice.slack_user_id.clone(),
        Channel::Email => choice.email.clone().or_else(|| record.user.email.clone()),
    }
}

/// Groups deliveries that go in one message: mails to one person, and chat messages to one person about the same event
/// of one review or run, or about everything if they are many. An update of a message always stands alone, and so does a
/// delivery that failed often, since the others may have failed because of it.
pub(super) fn together(claimed: Vec<StoredDelivery>) -> Vec<Vec<StoredDelivery>> {
    let mut groups: BTreeMap<(DeliveryKind, String), Vec<StoredDelivery>> = BTreeMap::new();
    for held in claimed {
        let joins = matches!((held.kind, held.event), (DeliveryKind::Person(_), DeliveryEvent::Announce(_)));
        let with = if joins && held.failures < ALONE_AFTER { held.target.clone() } else { held.id.to_string() };
        groups.entry((held.kind, with)).or_default().push(held);
    }
    groups.into_values().flat_map(messages).collect()
}

/// Splits a group of chat messages by review or run, and event, if there are few of them.
fn messages(group: Vec<StoredDelivery>) -> Vec<Vec<StoredDelivery>> {
    if group.iter().any(|held| held.kind != DeliveryKind::Person(Channel::Slack)) {
        return vec![group];
    }
    let mut messages: BTreeMap<(DeliverySubject, DeliveryEvent), Vec<StoredDelivery>> = BTreeMap::new();
    for held in &group {
        messages.entry((held.subject, held.event)).or_default().push(held.clone());
    }
    if messages.len() <= FEW { messages.into_values().collect() } else { vec![group] }
}

/// What a message to a person says of a review or a run, and the deliveries that it carries out.
struct Item<'a> {
    lead: &'a StoredDelivery,
    others: Vec<&'a StoredDelivery>,
    occasion: Occasion,
    about: AnnouncedSubject,
}

impl<'a> Item<'a> {
    fn held(&self) -> impl Iterator<Item = &'a StoredDelivery> {
        std::iter::once(self.lead).chain(self.others.iter().copied())
    }

    fn shown<'b>(&'b self, to: &Principal, outlets: &Outlets) -> MailItem<'b> {
        let Self { occasion, about, lead, .. } = self;
        let comments = match about {
            AnnouncedSubject::Review(review) if *occasion == Occasion::Commented => {
                NewComments::for_reader(&to.username, review, self.others.len() + 1)
            }
            _ => None,
        };
        MailItem { occasion: *occasion, about, comments, link: outlets.link(lead.subject) }
    }
}

impl Sender {
    /// Sends one person the deliveries of a group that are still useful, as one message.
    pub async fn to_person<'a>(
        &self,
        channel: Channel,
        group: &'a [StoredDelivery],
    ) -> Result<Vec<(&'a StoredDelivery, DeliveryOutcome)>, DeliveryFailure> {
        let all = |outcome: DeliveryOutcome| group.iter().map(|held| (held, outcome.clone())).collect::<Vec<_>>();
        let Some(first) = group.first() else { return Ok(Vec::new()) };
        let Some(person) = self.person(&first.target).await? else {
            return Ok(all(DeliveryOutcome::Dropped("this person no longer gets notifications")));
        };
        let Some(to) = address(channel, &person.record, &person.choice) else {
            return Ok(all(DeliveryOutcome::Dropped("this person has no address for this channel")));
        };
        let (mut outcomes, mut open) = (Vec::new(), Vec::<Item<'a>>::new());
        for held in group {
            match self.still(&person.principal, held).await? {
                Err(why) => outcomes.push((held, DeliveryOutcome::Dropped(why))),
                Ok((occasion, about)) => {
                    match open.iter_mut().find(|item| item.occasion == occasion && item.lead.subject == held.subject) {
                        Some(item) => item.others.push(held),
                        None => open.push(Item { lead: held, others: Vec::new(), occasion, about }),
                    }
                }
            }
        }
        let mut items = Vec::new();
        for item in open {
            let is_comment = item.occasion == Occasion::Commented;
            let pause = if is_comment { self.comment_pause(item.lead).await? } else { None };
            match pause {
                Some(after) => outcomes.extend(item.held().map(|held| (held, DeliveryOutcome::Postponed { after }))),
                None => items.push(item),
            }
        }
        let Some(lead) = items.first().map(|item| item.lead) else { return Ok(outcomes) };
        let held = items.iter().flat_map(Item::held);
        if let Some(after) = self.too_much(lead).await? {
            outcomes.extend(held.map(|held| (held, DeliveryOutcome::Postponed { after })));
            return Ok(outcomes);
        }
        let shown: Vec<_> = items.iter().map(|item| item.shown(&person.principal, &self.outlets)).collect();
        let receipt = self.send(channel, &to, lead.id, &shown).await?;
        // The first delivery is the message, and the others are part of it.
        outcomes.push((lead, DeliveryOutcome::Sent { receipt, shown: None }));
        outcomes.extend(held.skip(1).map(|held| (held, DeliveryOutcome::Joined)));
        Ok(outcomes)
    }

    /// Sends a message. Returns its receipt, by which it can be changed later, if the channel supports that.
    async fn send(
        &self,
        channel: Channel,
        to: &str,
        id: DeliveryId,
        items: &[MailItem<'_>],
    ) -> Result<Option<String>, DeliveryFailure> {
        let now = self.clock.now();
        let missing =
            || DeliveryFailure::lasting(format!("{} is not set up in this server's settings", channel.as_str()));
        if channel == Channel::Email {
            let mailer = self.outlets.mailer.as_ref().ok_or_else(missing)?;
            mailer.send(to, id, now, mail(items, &self.outlets.url, now)).await?;
            return Ok(None);
        }
        let slack = self.outlets.slack.as_ref().ok_or_else(missing)?;
        let message = match items {
            [item] => slack::about(item, now),
            several => slack::digest(several, &self.outlets.url),
        };
        let posted = slack.post(to, id, &message).await?;
        // A message about comments, a run or several of them is not changed later.
        let may_change = matches!(items, [MailItem { comments: None, about: AnnouncedSubject::Review(_), .. }]);
        Ok(may_change.then(|| serde_json::to_string(&posted.receipt).unwrap_or_default()))
    }

    /// Updates a message whose review is over, or is asked of others. The review is read again after each update, so
    /// the last of several concurrent updates shows its current state.
    pub async fn update(&self, held: &StoredDelivery) -> Result<DeliveryOutcome, DeliveryFailure> {
        let receipt = held.receipt.as_deref().and_then(|receipt| serde_json::from_str(receipt).ok());
        let (Some(slack), Some(receipt)) = (&self.outlets.slack, receipt) else {
            return Ok(DeliveryOutcome::Dropped("there is no message to update"));
        };
        let DeliverySubject::Review(id, _) = held.subject else {
            return Ok(DeliveryOutcome::Dropped("a message about a run is not updated"));
        };
        let mut shown = None;
        while let Some(review) = self.store.review(id).await? {
            if shown.replace(review.is_pending()) == Some(review.is_pending()) {
                break;
            }
            let link = self.outlets.link(held.subject);
            let message =
                if review.is_pending() { slack::passed_on(&review, &link) } else { slack::over(&review, &link) };
            slack.update(&receipt, &message).await?;
        }
        Ok(if shown.is_some() { DeliveryOutcome::Joined } else { DeliveryOutcome::Dropped("there is no such review") })
    }

    /// Plans an update of a message that was sent while its review was decided or passed on to others.
    pub async fn catch_up(&self, held: &StoredDelivery, receipt: &str) -> Result<(), store::Error> {
        let DeliverySubject::Review(id, _) = held.subject else { return Ok(()) };
        let Some(review) = self.store.review(id).await? else { return Ok(()) };
        let is_late = match held.kind {
            DeliveryKind::SlackChannel => !self.outlets.is_asked_in(&review, &held.target),
            DeliveryKind::Person(_) => !review.is_pending(),
            // What a program was sent is never changed.
            DeliveryKind::Webhook | DeliveryKind::Callback => false,
        };
        if is_late && held.event != DeliveryEvent::Announce(Occasion::Resolved) {
            let message = StoredDelivery { receipt: Some(receipt.to_owned()), ..held.clone() };
            let since = if review.is_pending() { PASSED_ON } else { OVER };
            self.store.add_deliveries(&[update(&message, since, self.clock.now())]).await?;
            self.added.send_replace(());
        }
        Ok(())
    }

    /// Returns a person who may log in.
    async fn person(&self, username: &str) -> Result<Option<Recipient>, DeliveryFailure> {
        let Some(record) = self.store.user(username).await?.filter(|record| record.user.active) else {
            return Ok(None);
        };
        let choice = self.outlets.with_defaults(self.store.notifications(username).await?);
        Ok(Some(Recipient::of(&self.store, record, choice).await?))
    }

    /// Returns the occasion of a delivery, and the review or run as it is now, if it is still useful; otherwise the reason
    /// why not.
    async fn still(
        &self,
        principal: &Principal,
        held: &StoredDelivery,
    ) -> Result<Result<(Occasion, AnnouncedSubject), &'static str>, DeliveryFailure> {
        let DeliveryEvent::Announce(occasion) = held.event else { return Ok(Err("it announces nothing")) };
        let about = match held.subject {
            DeliverySubject::Review(review, _) => {
                let Some(review) = self.store.review(review).await? else {
                    return Ok(Err("there is no such review"));
                };
                if occasion != Occasion::Resolved && !review.is_pending() {
                    return Ok(Err("it was already decided"));
                }
                if occasion == Occasion::Commented && has_answered(&principal.username, &review) {
                    return Ok(Err("this person has answered"));
                }
                AnnouncedSubject::Review(Box::new(review))
            }
            DeliverySubject::Run(run) => {
                let Some(run) = self.store.visible_summary(principal, run).await? else {
                    return Ok(Err("there is no such run"));
                };
                if occasion == Occasion::RunWaiting && run.status != RunStatus::WaitingForHuman {
                    return Ok(Err("it no longer waits"));
                }
                AnnouncedSubject::Run(Box::new(run))
            }
        };
        if !concerns(principal, occasion, &about) {
            return Ok(Err("it no longer concerns this person"));
        }
        Ok(Ok((occasion, about)))
    }

    /// Returns the wait if the receiver got [`CAP`] messages within [`WINDOW`].
    async fn too_much(&self, held: &StoredDelivery) -> Result<Option<Duration>, DeliveryFailure> {
        let (count, first) = self.store.sent_since(held.kind, &held.target, WINDOW).await?;
        let wait = || first.map_or(WINDOW, |first| first.after(WINDOW).since(self.clock.now()));
        Ok((count >= CAP).then(|| wait().max(Duration::from_secs(1))))
    }
}
