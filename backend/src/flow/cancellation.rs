//! Whether a piece of work is still needed: it checks now and then, and ends if it is not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set when nobody waits any more. Clones are of the same work.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Whether the work is for nobody.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets it when what this gives is dropped: with the future of whoever waits.
    pub fn on_drop(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }
}

/// Held by whoever waits.
#[derive(Debug)]
pub struct CancelOnDrop(CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}
