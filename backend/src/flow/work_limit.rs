//! The limit of the work that templates, conditions, JSON Schemas and guardrails take together, on top of the budget of
//! each. A transition evaluates many of them while its writer serves nobody else, so it sets such a limit. What is
//! counted depends only on what is evaluated, never on a clock: the same transition always gets equally far.
//!
//! A unit is a byte that a template reads, copies or renders. It takes a few nanoseconds.

use std::cell::Cell;

use shared::JsonMap;

use super::EvalError;
use super::value_size::value_size;

/// The largest work of one transition: a few seconds. It is enough for 2,000 templates that each render a line for 1,000
/// items, or to copy a state of 4 MiB of text several thousand times.
pub const MAX_AT_ONCE: u64 = 1 << 30;
/// The units of one value, of one step of a condition, and of one instruction of the template engine.
pub const PER_STEP: u64 = 32;
/// The number of bytes of a text that are copied as fast as a template reads one.
const COPIED: usize = 16;

thread_local! {
    /// The units that are left. `None` without a limit.
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Restores the limit of the work around some work, even if that panics.
struct Restored(Option<u64>);

impl Drop for Restored {
    fn drop(&mut self) {
        LEFT.set(self.0);
    }
}

/// Does some work on this thread, within so many units. A smaller limit around it holds, too.
pub fn within<T>(most: u64, work: impl FnOnce() -> T) -> T {
    let around = LEFT.get();
    let _restored = Restored(around);
    LEFT.set(Some(around.map_or(most, |left| left.min(most))));
    work()
}

/// Counts work that was done.
pub fn count(units: u64) {
    LEFT.set(LEFT.get().map(|left| left.saturating_sub(units)));
}

/// Counts the copy of an object.
pub fn count_copy(members: &JsonMap) {
    if LEFT.get().is_none() {
        return;
    }
    let units = members.iter().map(|(key, value)| {
        let size = value_size(value);
        size.values as u64 * PER_STEP + ((key.len() + size.bytes) / COPIED) as u64
    });
    count(units.sum());
}

/// Whether nothing is left.
pub fn is_spent() -> bool {
    LEFT.get() == Some(0)
}

/// Fails if nothing is left.
pub fn check() -> Result<(), EvalError> {
    if is_spent() { Err(EvalError(SPENT.to_owned())) } else { Ok(()) }
}

/// The error if nothing is left.
pub const SPENT: &str = "the templates, conditions, schemas and guardrails that are evaluated in a row take too much \
                         work together; use smaller values, fewer loops, or a node that waits in between";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_limit_ends_with_its_work_and_is_never_wider_than_the_one_around_it() {
        count(u64::MAX);
        assert!(!is_spent(), "there is no limit");
        within(100, || {
            within(1_000, || count(100));
            assert!(!is_spent(), "inner work is counted within its own limit");
            within(1_000, || {
                count(100);
                assert!(is_spent());
                assert_eq!(check(), Err(EvalError(SPENT.to_owned())));
            });
            let panicked = std::panic::catch_unwind(|| within(1, || assert!(is_spent(), "one is left")));
            assert!(panicked.is_err() && !is_spent());
        });
        assert_eq!(check(), Ok(()));
    }

    #[test]
    fn a_copy_counts_its_values_and_its_text() {
        let members = |value: serde_json::Value| value.as_object().cloned().unwrap_or_default();
        within(1_000, || {
            count_copy(&members(json!({ "a": [1, 2, 3] })));
            count_copy(&members(json!({ "b": "x".repeat(12_000) })));
            assert!(!is_spent(), "5 values and 750 units of text");
            count_copy(&members(json!({ "c": [1, 2, 3] })));
            assert!(is_spent());
        });
    }
}
