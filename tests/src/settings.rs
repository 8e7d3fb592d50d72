//! Numbers that a run of the tests may choose.

use rand::SeedableRng;
use rand::rngs::StdRng;

/// A number from the environment.
pub fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`, which is no number")),
        Err(_) => default,
    }
}

/// A size: as much as shows a mistake soon, and more with `cargo xtask test --full`.
fn size(name: &str, usual: u64, full: u64) -> u64 {
    number(name, if std::env::var_os("COUNTERSIGN_TEST_FULL").is_some() { full } else { usual })
}

/// How often each race is run.
pub fn rounds() -> u64 {
    size("COUNTERSIGN_TEST_ROUNDS", 20, 100)
}

/// How often the server is killed under load.
pub fn kills() -> u64 {
    size("COUNTERSIGN_TEST_KILLS", 10, 50)
}

/// How many entries of the log a listener hears who comes and goes.
pub fn entries() -> usize {
    usize::try_from(size("COUNTERSIGN_TEST_ENTRIES", 2_000, 10_000)).unwrap_or(usize::MAX)
}

/// For how long three servers are harmed under load.
pub fn seconds() -> u64 {
    size("COUNTERSIGN_TEST_SECONDS", 15, 45)
}

/// Where random choices begin.
pub fn seed() -> u64 {
    number("COUNTERSIGN_TEST_SEED", 1)
}

/// Random choices that are the same in every run with the same seed.
pub fn random() -> StdRng {
    StdRng::seed_from_u64(seed())
}
