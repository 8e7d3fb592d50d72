//! Waiting for a condition, with a deadline.

use std::time::Duration;

use tokio::time::Instant;

/// How long a test waits for anything at most.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Asks again until there is an answer; fails the test, with `what`, when [`DEADLINE`] has passed.
pub async fn eventually<T>(what: &str, ask: impl AsyncFnMut() -> Option<T>) -> T {
    eventually_within(DEADLINE, what, ask).await
}

/// The same with a deadline of one's own.
pub async fn eventually_within<T>(deadline: Duration, what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + deadline;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < end, "after {deadline:?} still not: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
