//! The dependencies of the sender of deliveries. `send` claims and sends them; `recipients` and `channel` reach people
//! and channels.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::{Outlets, TIMEOUT};
use crate::clock::SharedClock;
use crate::store::{DeliveryLane, LeaseTerms, Store};

/// Claims deliveries of a lane that are due and sends them.
pub(super) struct Sender {
    pub store: Store,
    pub clock: SharedClock,
    pub outlets: Arc<Outlets>,
    /// Signalled whenever deliveries were added.
    pub added: watch::Sender<()>,
    pub lane: DeliveryLane,
    pub terms: LeaseTerms,
    /// The wait after the first failure.
    pub first_wait: Duration,
}

pub(super) fn terms(clock: &SharedClock) -> LeaseTerms {
    LeaseTerms {
        owner: format!("sender-{}", hex::encode(&clock.random()[..6])),
        // Longer than a request, which is limited by [`TIMEOUT`]. The lease of a mail is renewed while it is sent.
        lease: Duration::from_secs(20),
        heartbeat: Duration::from_secs(7),
        poll: Duration::from_secs(2),
        grace: TIMEOUT,
    }
}
