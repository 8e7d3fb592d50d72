//! The order in which passwords are hashed. Hashing is deliberately slow, so few run at once; networks and people take
//! turns, so that many attempts of one delay mainly each other, and anyone else by at most one attempt per other line.
//! The /64 networks of one site take turns among themselves first: whoever has a /48 has 65,536 of them.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Error;
use crate::client_address::Network;
use crate::waiting_lines::{Turn, WaitingLines};

/// The number of concurrent hashes. Each takes 19 MiB and some tens of milliseconds of a core.
const AT_ONCE: usize = 2;
/// The maximum number of attempts in the line of a network, which many people may share.
const PLACES_OF_NETWORK: usize = 32;
/// The maximum number of networks in the line of a site, each of which has a line of its own.
const PLACES_OF_SITE: usize = 64;
/// The maximum number of attempts in the line of a person.
const PLACES_OF_PERSON: usize = 8;

/// Whose line an attempt waits in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Origin {
    /// The network of a caller whom nothing has identified yet.
    Network(Network),
    /// The networks of a site, which compete with others as one.
    Site(Network),
    /// The username of a caller who is logged in, or whose browser has logged in before.
    Person(String),
}

impl Origin {
    /// Returns the lines in which an attempt waits, one after the other.
    fn lines(self) -> Vec<Self> {
        match self {
            Self::Network(network) => vec![self, Self::Site(network.site())],
            Self::Site(_) | Self::Person(_) => vec![self],
        }
    }
}

/// The queue for hashing passwords. Only the first attempt of each origin competes with those of others.
pub(super) struct HashingQueue {
    free: Arc<Semaphore>,
    lines: WaitingLines<Origin>,
}

/// Permission to hash. It goes where the work is done, so that a caller who hangs up does not let the next one begin
/// earlier.
pub(super) struct HashingTurn {
    _free: OwnedSemaphorePermit,
    _in_lines: Vec<Turn<Origin>>,
}

impl HashingQueue {
    pub(super) fn new() -> Self {
        Self { free: Arc::new(Semaphore::new(AT_ONCE)), lines: WaitingLines::default() }
    }

    /// Waits for the turn of `origin`, which is `None` for the server itself.
    pub(super) async fn turn(&self, origin: Option<Origin>) -> Result<HashingTurn, Error> {
        let mut in_lines = Vec::new();
        for origin in origin.into_iter().flat_map(Origin::lines) {
            let places = match origin {
                Origin::Network(_) => PLACES_OF_NETWORK,
                Origin::Site(_) => PLACES_OF_SITE,
                Origin::Person(_) => PLACES_OF_PERSON,
            };
            let turn = self.lines.turn(origin, places, 1).await;
            in_lines.push(turn.ok_or(Error::TooManyAttempts(1))?);
        }
        let free = Arc::clone(&self.free).acquire_owned().await.map_err(|error| Error::Hash(error.to_string()))?;
        Ok(HashingTurn { _free: free, _in_lines: in_lines })
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use tokio::sync::mpsc;

    use super::*;
    use crate::client_address::ClientAddress;

    fn network(address: &str) -> Origin {
        Origin::Network(ClientAddress::from(address.parse::<IpAddr>().unwrap()).network())
    }

    fn person(name: &str) -> Origin {
        Origin::Person(name.to_owned())
    }

    async fn is_fair(many: Origin, one: Origin, places: usize) {
        let queue = Arc::new(HashingQueue::new());
        let held = Arc::clone(&queue.free).acquire_many_owned(2).await.unwrap();
        let (done, mut order) = mpsc::unbounded_channel();
        let mut all = tokio::task::JoinSet::new();
        for origin in vec![many; places + 5].into_iter().chain([one.clone()]) {
            let (queue, done) = (Arc::clone(&queue), done.clone());
            all.spawn(async move {
                let turn = queue.turn(Some(origin.clone())).await;
                turn.is_ok_and(|_turn| done.send(origin).is_ok())
            });
            // Lets each attempt join its line before the next one.
            tokio::task::yield_now().await;
        }
        drop(held);
        let heard = all.join_all().await.into_iter().filter(|heard| *heard).count();
        assert_eq!(heard, places + 1, "a line has an end");
        let mut whose = Vec::new();
        while let Ok(who) = order.try_recv() {
            whose.push(who);
        }
        let place = whose.iter().position(|who| *who == one).unwrap();
        assert!(place <= 2, "{place}");
        assert_eq!(queue.lines.count(), 0);
    }

    #[tokio::test]
    async fn who_sends_many_attempts_waits_behind_their_own() {
        is_fair(network("192.0.2.1"), network("192.0.2.2"), PLACES_OF_NETWORK).await;
        is_fair(person("eve"), network("192.0.2.2"), PLACES_OF_PERSON).await;
        is_fair(person("eve"), person("tom"), PLACES_OF_PERSON).await;
    }

    #[tokio::test]
    async fn the_networks_of_a_site_wait_behind_each_other() {
        let queue = Arc::new(HashingQueue::new());
        let held = Arc::clone(&queue.free).acquire_many_owned(2).await.unwrap();
        let networks: Vec<_> = (0..PLACES_OF_SITE).map(|n| network(&format!("2001:db8:1:{n:x}::1"))).collect();
        let mut attempts: Vec<_> = networks.into_iter().map(|each| Box::pin(queue.turn(Some(each)))).collect();
        for attempt in &mut attempts {
            assert!(futures::poll!(attempt).is_pending());
        }
        assert!(queue.turn(Some(network("2001:db8:1:ffff::1"))).await.is_err(), "the line of a site has an end");
        let other = queue.turn(Some(network("2001:db8:2::1")));
        tokio::pin!(other);
        assert!(futures::poll!(&mut other).is_pending());
        drop(held);
        let _first = attempts.remove(0).await.unwrap();
        assert!(futures::poll!(&mut other).is_ready(), "one attempt of the site was before it");
    }

    #[tokio::test]
    async fn a_turn_lasts_as_long_as_the_work() {
        let queue = Arc::new(HashingQueue::new());
        let first = queue.turn(Some(person("eve"))).await.unwrap();
        let next = queue.turn(Some(person("eve")));
        tokio::pin!(next);
        assert!(futures::poll!(&mut next).is_pending());
        drop(first);
        next.await.unwrap();
    }
}
