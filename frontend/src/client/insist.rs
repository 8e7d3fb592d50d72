//! Requests that are repeated until the server answers, for pages that can show nothing without the answer.

use gloo_timers::future::TimeoutFuture;
use shared::error::Problem;

use crate::state::reconnect::{is_passing, wait_ms};

/// The shortest pause between two attempts, in milliseconds.
const PAUSE_MS: u32 = 1000;

/// Asks again, after pauses that grow, while the server cannot answer and `goes_on` returns `true` for the problem.
pub async fn insist<T>(
    ask: impl AsyncFn() -> Result<T, Problem>,
    goes_on: impl Fn(&Problem) -> bool,
) -> Result<T, Problem> {
    let mut failures = 0;
    loop {
        let answer = ask().await;
        if !answer.as_ref().is_err_and(|problem| is_passing(problem) && goes_on(problem)) {
            return answer;
        }
        failures += 1;
        TimeoutFuture::new(wait_ms(failures, js_sys::Math::random()).max(PAUSE_MS)).await;
    }
}
