//! Reasons why a message was not delivered, and the wait before the next attempt.

use std::time::Duration;

use reqwest::StatusCode;

use crate::clock::Ids;
use crate::http_client;
use crate::ssrf::{AddressRefused, Cause, cause};
use crate::store;

/// The number of failures after which a message is given up.
pub(super) const MAX_FAILURES: u32 = 9;
/// The longest wait between two attempts.
const MAX_WAIT: Duration = Duration::from_hours(6);
/// The largest part of a refusal that is kept, in characters.
const MAX_DETAIL: usize = 300;

/// A failed attempt to deliver a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeliveryFailure {
    /// What happened, without secrets.
    pub message: String,
    /// Whether another attempt may succeed.
    pub retry: bool,
    /// The wait that the receiver asked for, if any.
    pub after: Option<Duration>,
}

impl DeliveryFailure {
    /// A failure that another attempt may overcome.
    pub fn passing(message: impl Into<String>) -> Self {
        Self { message: message.into(), retry: true, after: None }
    }

    /// A failure that no further attempt can overcome.
    pub fn lasting(message: impl Into<String>) -> Self {
        Self { message: message.into(), retry: false, after: None }
    }

    /// The receiver responded with an error status.
    pub fn refused(status: StatusCode, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let message = http_client::refusal(status, body, MAX_DETAIL).replace(char::is_control, " ");
        // 410 Gone: the receiver will not exist again.
        Self { message, retry: status != StatusCode::GONE, after: retry_after }
    }
}

/// The receiver was not reached, or its response did not arrive whole.
impl From<reqwest::Error> for DeliveryFailure {
    fn from(error: reqwest::Error) -> Self {
        match cause(&error) {
            Cause::Refused(why) => Self::lasting(why),
            Cause::Failed(_) if error.is_timeout() => Self::passing("no answer in time"),
            Cause::Failed(why) => Self { retry: !error.is_builder(), ..Self::passing(format!("not reached: {why}")) },
        }
    }
}

impl From<AddressRefused> for DeliveryFailure {
    fn from(refused: AddressRefused) -> Self {
        Self::lasting(refused.to_string())
    }
}

/// A query failed while the message was composed; another attempt may succeed.
impl From<store::Error> for DeliveryFailure {
    fn from(error: store::Error) -> Self {
        tracing::warn!(%error, "a notification could not be composed");
        Self::passing("the database did not answer")
    }
}

/// Returns the wait after a failure that follows this number of earlier ones. It triples each time, up to a limit, and
/// varies by a quarter at random, so that a receiver that comes back is not met by all messages at once.
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
