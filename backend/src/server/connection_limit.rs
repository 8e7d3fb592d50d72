//! The number of connections, and which of them makes room for a new one.
//!
//! A connection on which the server waits for the client (for the rest of a head or a body, or for the next request)
//! can be closed without loss. If all places are taken, the one that has waited longest is closed: so clients that keep
//! half-finished requests open lock no one out.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Limits;
use crate::client_address::Network;
use crate::rate_limit::give_back;

pub(super) struct ConnectionLimit(Arc<LimitState>);

struct LimitState {
    all: usize,
    each: usize,
    taken: Mutex<Slots>,
    /// Notified when a slot was returned, or when a connection starts to wait for its client.
    changed: Notify,
}

#[derive(Default)]
struct Slots {
    all: usize,
    by_network: HashMap<Network, usize>,
    /// The connections that wait for their clients, in the order in which they began to wait.
    waiting: BTreeMap<u64, Arc<Notify>>,
    last: u64,
}

/// The slot of a connection. Dropping it returns the slot.
pub(super) struct ConnectionSlot {
    room: Arc<LimitState>,
    network: Option<Network>,
    /// The number of the connection among those that wait; 0 if it does not wait.
    waits: AtomicU64,
    evicted: Arc<Notify>,
}

impl ConnectionLimit {
    pub fn new(limits: Limits) -> Self {
        let Limits { connections: all, connections_per_address: each, .. } = limits;
        Self(Arc::new(LimitState { all, each, taken: Mutex::default(), changed: Notify::new() }))
    }

    /// Takes a slot for a new connection, which begins by waiting for its client. Returns `None` if the network has
    /// reached its limit. If all slots are taken, evicts a waiting connection, or waits until there is one.
    pub async fn enter(&self, network: Option<Network>) -> Option<ConnectionSlot> {
        let Self(room) = self;
        let mut evicted = false;
        loop {
            let mut changed = std::pin::pin!(room.changed.notified());
            changed.as_mut().enable();
            {
                let mut taken = room.taken.lock();
                if let Some(network) = network
                    && taken.by_network.get(&network).is_some_and(|own| *own >= room.each)
                {
                    return None;
                }
                if taken.all < room.all {
                    taken.all += 1;
                    if let Some(network) = network {
                        *taken.by_network.entry(network).or_default() += 1;
                    }
                    break;
                }
                // One eviction is enough, but the slot is returned with a delay.
                evicted = evicted || taken.evict();
            }
            changed.await;
        }
        let place = ConnectionSlot {
            room: Arc::clone(room),
            network,
            waits: AtomicU64::new(0),
            evicted: Arc::new(Notify::new()),
        };
        place.waits();
        Some(place)
    }

    /// Closes the connection that has waited longest for its client.
    pub fn evict(&self) {
        self.0.taken.lock().evict();
    }
}

impl Slots {
    fn evict(&mut self) -> bool {
        let longest = self.waiting.pop_first();
        if let Some((_, connection)) = &longest {
            metrics::counter!("countersign_connections_evicted_total").increment(1);
            connection.notify_one();
        }
        longest.is_some()
    }
}

impl ConnectionSlot {
    /// Records that the server waits for the client, so the connection may be evicted.
    pub fn waits(&self) {
        let mut taken = self.room.taken.lock();
        taken.last += 1;
        let number = taken.last;
        taken.waiting.remove(&self.waits.swap(number, Ordering::Relaxed));
        taken.waiting.insert(number, Arc::clone(&self.evicted));
        drop(taken);
        self.room.changed.notify_one();
    }

    /// Records that the client waits for the server, so the connection must not be evicted.
    pub fn works(&self) {
        let mut taken = self.room.taken.lock();
        taken.waiting.remove(&self.waits.swap(0, Ordering::Relaxed));
    }

    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut taken = self.room.taken.lock();
        taken.waiting.remove(&*self.waits.get_mut());
        taken.all -= 1;
        if let Some(network) = &self.network {
            give_back(&mut taken.by_network, network);
        }
        drop(taken);
        self.room.changed.notify_one();
    }
}
