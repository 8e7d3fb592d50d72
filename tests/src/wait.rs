//! Waits for a condition by polling, with a deadline.

use std::time::Duration;

use tokio::time::Instant;

/// The longest that a test waits for a condition.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// The pause between two looks at the page of a browser.
pub const POLL: Duration = Duration::from_millis(50);

/// Calls `ask` until it returns `Some`. Panics with `what` after [`DEADLINE`].
pub async fn eventually<T>(what: &str, ask: impl AsyncFnMut() -> Option<T>) -> T {
    eventually_within(DEADLINE, what, ask).await
}

/// Like [`eventually`], with another deadline.
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
