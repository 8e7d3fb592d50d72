//! Why a message could not be delivered, and when to retry.

use std::time::Duration;

use reqwest::StatusCode;

use crate::clock::Ids;
use crate::http_client;
use crate::ssrf::{Cause, cause};
use crate::store;

/// How often a message is tried before it is given up.
pub(super) const MAX_FAILURES: u32 = 9;
/// The longest wait between two attempts.
const MAX_WAIT: Duration = Duration::from_hours(6);
/// How much of a refusal is kept, in characters.
const MAX_DETAIL: usize = 300;

/// A message that did not get through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeliveryFailure {
    /// What happened, without secrets.
    pub message: String,
    /// Whether trying again can help.
    pub retry: bool,
    /// When the receiver wants to be asked again.
    pub after: Option<Duration>,
}

impl DeliveryFailure {
    /// It may work later.
    pub fn passing(message: impl Into<String>) -> Self {
        Self { message: message.into(), retry: true, after: None }
    }

    /// It will never work.
    pub fn lasting(message: impl Into<String>) -> Self {
        Self { message: message.into(), retry: false, after: None }
    }

    /// No whole answer came.
    pub fn unreached(error: &reqwest::Error) -> Self {
        match cause(error) {
            Cause::Refused(why) => Self::lasting(why),
            Cause::Failed(_) if error.is_timeout() => Self::passing("no answer in time"),
            Cause::Failed(why) => Self { retry: !error.is_builder(), ..Self::passing(format!("not reached: {why}")) },
        }
    }

    /// The answer was no.
    pub fn refused(status: StatusCode, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let message = http_client::refusal(status, body, MAX_DETAIL).replace(char::is_control, " ");
        // 410 says that nobody will listen there again.
        Self { message, retry: status != StatusCode::GONE, after: retry_after }
    }
}

/// The database could not be asked.
pub(super) fn unread(error: &store::Error) -> DeliveryFailure {
    tracing::warn!(%error, "a notification could not be composed");
    DeliveryFailure::passing("the database did not answer")
}

/// How long to wait after so many failures: three times as long each time, and a quarter more or less by chance, so that
/// receivers that were away are not met by everything at once.
pub(super) fn wait(first: Duration, failures: u32, ids: &mut Ids) -> Duration {
    let factor = 3_u32.saturating_pow(failures.min(12));
    let wait = first.saturating_mul(factor).min(MAX_WAIT);
    wait.mul_f64(0.75 + ids.fraction() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Moment;

    #[test]
    fn waits_grow_to_a_limit_and_differ() {
        let mut ids = Moment { now: shared::time::Timestamp::default(), seed: [7; 16] }.ids();
        let first = Duration::from_secs(5);
        for (failures, expected) in [(0, 5), (1, 15), (2, 45), (20, MAX_WAIT.as_secs())] {
            let waited = wait(first, failures, &mut ids);
            let expected = Duration::from_secs(expected);
            assert!(waited >= expected * 3 / 4 && waited <= expected * 5 / 4, "{failures}: {waited:?}");
        }
        assert_ne!(wait(first, 1, &mut ids), wait(first, 1, &mut ids));
    }
}
