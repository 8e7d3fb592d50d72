//! Whether to try again what failed to load, and the delay before the next attempt, also to connect.

use shared::error::{Code, Problem};

/// The longest delay, in milliseconds.
const LONGEST_MS: u32 = 30_000;

/// Whether another attempt may succeed. The server does not change its mind about other errors.
pub fn is_passing(problem: &Problem) -> bool {
    problem.status >= 500 || problem.code == Code::TooManyRequests
}

/// The delay in milliseconds after this many failures in a row. It doubles with each failure; `jitter`, from 0 to 1,
/// spreads it so that not all consoles reconnect at the same moment.
pub fn wait_ms(failures: u32, jitter: f64) -> u32 {
    let base = 500_u32.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(LONGEST_MS);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between half of it and all of it")]
    let wait = (f64::from(base) * (0.5 + jitter.clamp(0.0, 1.0) / 2.0)) as u32;
    wait
}

#[cfg(test)]
mod tests {
    use super::wait_ms;

    #[test]
    fn waits_grow_to_half_a_minute_and_stay_there() {
        assert_eq!(wait_ms(1, 1.0), 500);
        assert_eq!(wait_ms(2, 1.0), 1000);
        assert_eq!(wait_ms(2, 0.0), 500);
        assert_eq!(wait_ms(40, 1.0), 30_000);
    }
}
