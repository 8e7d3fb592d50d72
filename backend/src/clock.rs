//! Time, ids and randomness, injected: nothing else in the server reads a clock or a source of randomness.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime};

use shared::time::Timestamp;
use uuid::Uuid;

/// A clock with a source of randomness.
pub trait Clock: Send + Sync + 'static {
    /// The current time.
    fn now(&self) -> Timestamp;
    /// The time since the server started. It never goes back, even if the machine's clock is set back.
    fn uptime(&self) -> Duration;
    /// Returns sixteen random bytes that nobody can guess.
    fn random(&self) -> [u8; 16];
    /// How far the clock is moved from the machine's, in microseconds. `None` if it cannot be moved.
    fn offset(&self) -> Option<&AtomicI64> {
        None
    }
}

/// A shared clock.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's clock and randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    fn now(&self) -> Timestamp {
        SystemTime::now().into()
    }

    fn uptime(&self) -> Duration {
        static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
        BEGUN.elapsed()
    }

    fn random(&self) -> [u8; 16] {
        rand::random()
    }
}

/// The clock of a server: the machine's, which can be moved onto that of a database that several servers share.
pub struct ServerClock {
    machine: SharedClock,
    offset: AtomicI64,
}

impl ServerClock {
    /// Creates a clock that shows the time of `machine` until it is moved.
    pub fn new(machine: SharedClock) -> Self {
        Self { machine, offset: AtomicI64::new(0) }
    }
}

impl Clock for ServerClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.machine.now().0.saturating_add(self.offset.load(Ordering::Acquire)))
    }

    fn uptime(&self) -> Duration {
        self.machine.uptime()
    }

    fn random(&self) -> [u8; 16] {
        self.machine.random()
    }

    fn offset(&self) -> Option<&AtomicI64> {
        Some(&self.offset)
    }
}

/// The time and the randomness of one transition: everything that it depends on besides the state and the input.
/// Recorded in the log, so that a run can be replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Moment {
    /// The time of the transition.
    pub now: Timestamp,
    /// Random bytes, from which the transition's ids and the jitter of its retries are derived.
    pub seed: [u8; 16],
}

impl Moment {
    /// Takes the current time and fresh randomness from `clock`.
    pub fn of(clock: &dyn Clock) -> Self {
        Self { now: clock.now(), seed: clock.random() }
    }

    /// Returns the generator of the ids of this moment.
    pub fn ids(self) -> Ids {
        Ids { moment: self, given: 0 }
    }
}

/// A generator of UUIDv7s that is derived from a moment: the same moment yields the same ids in the same order.
#[derive(Debug, Clone)]
pub struct Ids {
    moment: Moment,
    given: u32,
}

impl Ids {
    /// Returns the next id, a UUIDv7. The ids of one moment are ordered: a counter precedes the random bits (RFC 9562,
    /// 6.2, method 1), so rows of one commit are listed in the order in which they were made.
    pub fn uuid(&mut self) -> Uuid {
        let mut random = [0_u8; 10];
        random.copy_from_slice(&self.mix()[..10]);
        // The counter has twelve bits; the version overwrites the upper four.
        random[..2].copy_from_slice(&self.given.to_be_bytes()[2..]);
        let millis = u64::try_from(self.moment.now.millis()).unwrap_or(0);
        uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
    }

    /// Returns a number from 0 (inclusive) to 1 (exclusive), for jitter.
    pub fn fraction(&mut self) -> f64 {
        let mixed = self.mix();
        let bits = u32::from_be_bytes([mixed[0], mixed[1], mixed[2], mixed[3]]);
        f64::from(bits) / (f64::from(u32::MAX) + 1.0)
    }

    fn mix(&mut self) -> [u8; 32] {
        use sha2::{Digest, Sha256};
        self.given += 1;
        Sha256::new().chain_update(self.moment.seed).chain_update(self.given.to_be_bytes()).finalize().into()
    }
}
