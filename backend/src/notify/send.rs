//! Sends deliveries: claims them, passes each to its channel, and records the outcome. It runs beside the worker and
//! shares only the loop with it ([`store::consume`]): a slow receiver delays no run.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::failure::{DeliveryFailure, MAX_FAILURES, wait};
use super::sender::Sender;
use super::{recipients, webhook};
use crate::clock::Moment;
use crate::store::{
    self, Consumer, DeliveryEvent, DeliveryKind, DeliveryOutcome, DeliverySubject, Jobs, Lease, LeaseTerms, NextReady,
    Store, StoredDelivery, WorkTable, with_retries,
};

/// The outcome if the entry of a delivery is gone.
const NO_ENTRY: DeliveryOutcome = DeliveryOutcome::Dropped("the log no longer has its entry");
/// The largest number of messages of a lane in flight.
const SLOTS: usize = 32;
/// The time that ended deliveries are kept at least, and the interval at which older ones are removed.
const RETENTION: Duration = Duration::from_hours(30 * 24);
const CLEANUP: Duration = Duration::from_hours(1);
/// The interval if older ones are left over after a removal.
const CLEANUP_OF_MORE: Duration = Duration::from_millis(100);

/// Removes old deliveries as long as the server runs, each hour.
pub(super) async fn clean_up(store: Store) {
    loop {
        let more = store.forget_deliveries(RETENTION).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "could not remove old deliveries; trying again later");
            false
        });
        tokio::time::sleep(if more { CLEANUP_OF_MORE } else { CLEANUP }).await;
    }
}

impl Consumer for Sender {
    const TABLE: WorkTable = WorkTable::Deliveries;
    /// The number of further messages that may be in flight.
    type Room = u32;
    /// Deliveries that go in one message.
    type Work = Vec<StoredDelivery>;
    type Job = ();

    fn store(&self) -> &Store {
        &self.store
    }

    fn terms(&self) -> &LeaseTerms {
        &self.terms
    }

    fn room(&self, jobs: &Jobs<()>) -> Option<u32> {
        u32::try_from(SLOTS.saturating_sub(jobs.count())).ok().filter(|free| *free > 0)
    }

    async fn claim(&self, room: u32, held: &[Lease]) -> Result<Vec<Vec<StoredDelivery>>, store::Error> {
        let LeaseTerms { owner, lease, .. } = &self.terms;
        let claimed = self.store.claim_deliveries(self.lane, owner, room, *lease, held).await?;
        Ok(recipients::together(claimed))
    }

    async fn next_due(&self, _room: u32, held: &[Lease]) -> Result<Option<NextReady>, store::Error> {
        self.store.next_delivery(self.lane, held).await
    }

    fn leases(group: &Vec<StoredDelivery>) -> Vec<Lease> {
        group.iter().map(StoredDelivery::lease).collect()
    }

    /// A delivery whose lease was lost is not cancelled, since its message may already be out.
    fn start(self: Arc<Self>, group: Vec<StoredDelivery>, lost: CancellationToken) -> ((), BoxFuture<'static, ()>) {
        ((), async move { self.handle(group, lost).await }.boxed())
    }
}

impl Sender {
    /// Makes one attempt for deliveries that go in one message, and records their outcomes.
    async fn handle(&self, group: Vec<StoredDelivery>, lost: CancellationToken) {
        let group = self.with_further_comments(group).await;
        let Some(first) = group.first() else { return };
        let span = tracing::info_span!(
            "delivery",
            channel = first.kind.as_str(),
            target = first.target,
            event = first.event.as_str(),
            review = first.subject.review().map(tracing::field::display),
            run = first.subject.run().map(tracing::field::display),
        );
        async {
            // A panic counts as a failure, so that it is not retried for ever.
            let attempt = AssertUnwindSafe(self.attempt(first, &group)).catch_unwind().await.unwrap_or_else(|_| {
                tracing::error!("a notification panicked");
                Err(DeliveryFailure::passing("it could not be composed; see the server's log"))
            });
            let failed = |failure: DeliveryFailure| {
                group.iter().map(|held| (held, self.failed(held, failure.clone()))).collect::<Vec<_>>()
            };
            self.settle(&attempt.unwrap_or_else(failed), &lost).await;
        }
        .instrument(span)
        .await;
    }

    /// Sends deliveries that go in one message; `first` is the first of `group`.
    async fn attempt<'a>(
        &self,
        first: &'a StoredDelivery,
        group: &'a [StoredDelivery],
    ) -> Result<Vec<(&'a StoredDelivery, DeliveryOutcome)>, DeliveryFailure> {
        if first.failures >= MAX_FAILURES {
            return Err(DeliveryFailure::lasting("servers repeatedly ended while sending it"));
        }
        let outcome = match (first.kind, first.event) {
            (DeliveryKind::Webhook, _) => self.to_webhook(first).await,
            (DeliveryKind::Callback, _) => self.to_callback(first).await,
            (DeliveryKind::SlackChannel | DeliveryKind::Person(_), DeliveryEvent::Update) => self.update(first).await,
            (DeliveryKind::SlackChannel, DeliveryEvent::Announce(_)) => self.to_channel(first).await,
            (DeliveryKind::Person(channel), DeliveryEvent::Announce(_)) => return self.to_person(channel, group).await,
        };
        outcome.map(|outcome| vec![(first, outcome)])
    }

    /// Records the outcomes of an attempt. While the leases hold, this is retried if the database does not respond,
    /// since a message without a recorded outcome is sent again.
    async fn settle(&self, outcomes: &[(&StoredDelivery, DeliveryOutcome)], lost: &CancellationToken) {
        for (held, outcome) in outcomes {
            report(held, outcome);
        }
        // If the lease is lost, the next owner sends the message again under the same id.
        let settled = lost.run_until_cancelled(with_retries(|| self.store.settle(outcomes))).await;
        let recorded = match settled {
            Some(Ok(recorded)) => recorded,
            Some(Err(error)) => return tracing::error!(%error, "the outcome of a notification could not be stored"),
            None => return tracing::info!("another sender may hold this notification now"),
        };
        for ((held, sent), recorded) in outcomes.iter().zip(recorded) {
            if !recorded {
                tracing::info!(id = %held.id, "another sender holds this notification now");
            } else if let DeliveryOutcome::Sent { receipt: Some(receipt), .. } = sent
                && let Err(error) = self.catch_up(held, receipt).await
            {
                tracing::warn!(%error, "could not check whether a message is outdated");
            }
        }
    }

    fn failed(&self, held: &StoredDelivery, failure: DeliveryFailure) -> DeliveryOutcome {
        let DeliveryFailure { message: error, retry, after } = failure;
        if !retry || held.failures + 1 >= MAX_FAILURES {
            return DeliveryOutcome::GivenUp { error };
        }
        let backoff = wait(self.first_wait, held.failures, &mut Moment::of(&*self.clock).ids());
        DeliveryOutcome::Failed {
            after: after.map_or(backoff, |after| after.max(backoff).min(Duration::from_hours(1))),
            error,
        }
    }

    async fn to_callback(&self, held: &StoredDelivery) -> Result<DeliveryOutcome, DeliveryFailure> {
        let Some(body) = self.body(held).await? else { return Ok(NO_ENTRY) };
        self.outlets.call_back(held, &self.store, self.clock.now(), body).await?;
        Ok(DeliveryOutcome::SENT)
    }

    async fn to_webhook(&self, held: &StoredDelivery) -> Result<DeliveryOutcome, DeliveryFailure> {
        let Some(body) = self.body(held).await? else { return Ok(NO_ENTRY) };
        let Some(webhook) = self.outlets.webhooks.get(&held.target) else {
            return Err(DeliveryFailure::lasting("the settings no longer have a webhook with this name"));
        };
        self.outlets.post(&webhook.url, &webhook.keys, held.id, self.clock.now(), body).await?;
        Ok(DeliveryOutcome::SENT)
    }

    /// Returns the log entry of a delivery as a program gets it, or `None` if the log no longer has it.
    async fn body(&self, held: &StoredDelivery) -> Result<Option<String>, DeliveryFailure> {
        let entry = match held.subject {
            DeliverySubject::Review(review, _) => {
                let entry = self.store.entry_of_review(review, &held.place).await?;
                entry.filter(|entry| entry.event.review_id == Some(review))
            }
            DeliverySubject::Run(run) => {
                let entry = self.store.entry_of_run(run, &held.place).await?;
                entry.filter(|entry| entry.event.kind.as_str() == held.event.as_str())
            }
        };
        Ok(entry.map(|entry| webhook::body(&entry, held.event, &self.outlets.link(held.subject))))
    }
}

fn report(held: &StoredDelivery, sent: &DeliveryOutcome) {
    let outcome = match sent {
        DeliveryOutcome::Sent { .. } | DeliveryOutcome::Joined => "sent",
        DeliveryOutcome::Dropped(_) => "dropped",
        DeliveryOutcome::Failed { .. } => "failed",
        DeliveryOutcome::Postponed { .. } => "later",
        DeliveryOutcome::GivenUp { .. } => "given_up",
    };
    metrics::counter!("countersign_deliveries_total", "channel" => held.kind.as_str(), "outcome" => outcome)
        .increment(1);
    match sent {
        DeliveryOutcome::Failed { error, after } => {
            tracing::warn!(id = %held.id, error, again_in = ?after, "a notification failed");
        }
        DeliveryOutcome::GivenUp { error } => tracing::error!(id = %held.id, error, "a notification was given up"),
        _ => tracing::info!(id = %held.id, outcome, "a notification"),
    }
}
