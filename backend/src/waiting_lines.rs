//! Lines in which callers wait for their turn, each line with a key of its own: whoever calls often delays mainly
//! themselves.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

type Lines<K> = Arc<Mutex<HashMap<K, Arc<WaitingLine>>>>;

/// The lines of all keys.
#[derive(Debug)]
pub struct WaitingLines<K>(Lines<K>);

#[derive(Debug)]
struct WaitingLine {
    places: Arc<Semaphore>,
    turns: Arc<Semaphore>,
}

/// A turn. It ends when this is dropped.
#[derive(Debug)]
pub struct Turn<K: Eq + Hash> {
    _permit: OwnedSemaphorePermit,
    _place: OwnedSemaphorePermit,
    _stand: Stand<K>,
}

/// Keeps a line. The last one removes it.
#[derive(Debug)]
struct Stand<K: Eq + Hash> {
    lines: Lines<K>,
    key: K,
    line: Option<Arc<WaitingLine>>,
}

impl<K> Default for WaitingLines<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Clone + Eq + Hash> WaitingLines<K> {
    /// Waits for a turn in the line of `key`, in which `at_once` callers have one and `places` have one or wait. `None` if
    /// the line is full.
    pub async fn turn(&self, key: K, places: usize, at_once: usize) -> Option<Turn<K>> {
        let [places, turns] = [places, at_once].map(|permits| Arc::new(Semaphore::new(permits)));
        let line = || Arc::new(WaitingLine { places, turns });
        let line = Arc::clone(self.0.lock().entry(key.clone()).or_insert_with(line));
        let (places, turns) = (Arc::clone(&line.places), Arc::clone(&line.turns));
        let stand = Stand { lines: Arc::clone(&self.0), key, line: Some(line) };
        let place = places.try_acquire_owned().ok()?;
        // The semaphore is never closed.
        let turn = turns.acquire_owned().await.ok()?;
        Some(Turn { _permit: turn, _place: place, _stand: stand })
    }

    /// Returns the number of lines.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.0.lock().len()
    }
}

impl<K: Eq + Hash> Drop for Stand<K> {
    fn drop(&mut self) {
        let mut lines = self.lines.lock();
        self.line = None;
        if lines.get(&self.key).is_some_and(|line| Arc::strong_count(line) == 1) {
            lines.remove(&self.key);
        }
    }
}
