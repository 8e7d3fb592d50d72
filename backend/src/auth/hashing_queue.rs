//! The order in which passwords are hashed. Hashing is deliberately slow, so few run at once; networks take turns, so
//! that many attempts from one network delay mainly each other, and anyone else by at most one attempt per other
//! network.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::Error;
use crate::client_address::Network;

/// The number of concurrent hashes. Each takes 19 MiB and some tens of milliseconds of a core.
const AT_ONCE: usize = 2;
/// The maximum number of waiting attempts per network.
const WAITING: usize = 32;

/// The queue for hashing passwords.
pub(super) struct HashingQueue {
    free: Semaphore,
    lines: Mutex<HashMap<Network, Arc<Line>>>,
}

/// The attempts of one network. Only the first of them competes with those of other networks.
struct Line {
    room: Semaphore,
    first: Semaphore,
}

impl HashingQueue {
    pub(super) fn new() -> Self {
        Self { free: Semaphore::new(AT_ONCE), lines: Mutex::default() }
    }

    /// Runs `work` when it is the turn of `network`, which is `None` for callers who are logged in already.
    pub(super) async fn take<T>(&self, network: Option<Network>, work: impl Future<Output = T>) -> Result<T, Error> {
        let Some(network) = network else {
            let _free = self.free.acquire().await.map_err(|error| closed(&error))?;
            return Ok(work.await);
        };
        let stand = Stand { turns: self, network, line: Some(self.line(network)) };
        let Some(line) = &stand.line else { return Err(Error::TooManyAttempts { retry_after: 1 }) };
        let _room = line.room.try_acquire().map_err(|_| Error::TooManyAttempts { retry_after: 1 })?;
        let _first = line.first.acquire().await.map_err(|error| closed(&error))?;
        let _free = self.free.acquire().await.map_err(|error| closed(&error))?;
        Ok(work.await)
    }

    fn line(&self, network: Network) -> Arc<Line> {
        let mut lines = self.lines.lock();
        let line = || Arc::new(Line { room: Semaphore::new(WAITING), first: Semaphore::new(1) });
        Arc::clone(lines.entry(network).or_insert_with(line))
    }
}

/// A place in the line of a network. An empty line is removed.
struct Stand<'a> {
    turns: &'a HashingQueue,
    network: Network,
    line: Option<Arc<Line>>,
}

impl Drop for Stand<'_> {
    fn drop(&mut self) {
        let mut lines = self.turns.lines.lock();
        self.line = None;
        if lines.get(&self.network).is_some_and(|line| Arc::strong_count(line) == 1) {
            lines.remove(&self.network);
        }
    }
}

fn closed(error: &tokio::sync::AcquireError) -> Error {
    Error::Hash(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use tokio::sync::mpsc;

    use super::*;
    use crate::client_address::ClientAddress;

    fn network(address: &str) -> Network {
        ClientAddress::from(address.parse::<IpAddr>().unwrap()).network()
    }

    #[tokio::test]
    async fn who_sends_many_attempts_waits_behind_their_own() {
        let turns = Arc::new(HashingQueue::new());
        let held = turns.free.acquire_many(2).await.unwrap();
        let (done, mut order) = mpsc::unbounded_channel();
        let mut all = tokio::task::JoinSet::new();
        for (who, address) in [("many", "192.0.2.1"); WAITING + 5].into_iter().chain([("one", "192.0.2.2")]) {
            let (turns, done) = (Arc::clone(&turns), done.clone());
            all.spawn(async move {
                let work = async { done.send(who).is_ok() };
                turns.take(Some(network(address)), work).await.is_ok()
            });
            // Lets each attempt join its line before the next one.
            tokio::task::yield_now().await;
        }
        drop(held);
        let heard = all.join_all().await.into_iter().filter(|heard| *heard).count();
        assert_eq!(heard, WAITING + 1, "a line has an end");
        let mut whose = Vec::new();
        while let Ok(who) = order.try_recv() {
            whose.push(who);
        }
        let place = whose.iter().position(|who| *who == "one").unwrap();
        assert!(place <= 2, "{place}");
        assert!(turns.lines.lock().is_empty());
    }
}
