//! Numbers that environment variables set for a run of the tests; the crate's documentation lists them.

use rand::SeedableRng;
use rand::rngs::StdRng;

/// Reads a number from an environment variable. Panics if it is not a number.
pub fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`, which is no number")),
        Err(_) => default,
    }
}

/// Reads a number whose default is `usual`, or `full` with `cargo xtask test --full`.
fn size(name: &str, usual: u64, full: u64) -> u64 {
    number(name, if std::env::var_os("COUNTERSIGN_TEST_FULL").is_some() { full } else { usual })
}

/// The number of rounds of each race.
pub fn rounds() -> u64 {
    size("COUNTERSIGN_TEST_ROUNDS", 20, 100)
}

/// How often the server is killed under load.
pub fn kills() -> u64 {
    size("COUNTERSIGN_TEST_KILLS", 10, 50)
}

/// The number of log entries that a reconnecting socket has to receive.
pub fn entries() -> usize {
    usize::try_from(size("COUNTERSIGN_TEST_ENTRIES", 2_000, 10_000)).unwrap_or(usize::MAX)
}

/// The seconds for which three servers are disturbed under load.
pub fn seconds() -> u64 {
    size("COUNTERSIGN_TEST_SECONDS", 15, 45)
}

/// The seed of random choices.
pub fn seed() -> u64 {
    number("COUNTERSIGN_TEST_SEED", 1)
}

/// A random number generator that starts from [`seed`].
pub fn random() -> StdRng {
    StdRng::seed_from_u64(seed())
}
