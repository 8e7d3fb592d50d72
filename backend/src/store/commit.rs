//! The only write path: passes a change to the writer. If a decision needs answers of programs that guardrails ask,
//! asks them first.

use std::sync::Arc;
use std::time::Duration;

use shared::time::Timestamp;
use tokio::time::Instant;

use super::writer::CommitAnswer;
use super::{Change, CommitError, Committed, Store};
use crate::engine::GuardrailReply;
use crate::flow::guardrail::{GuardrailAnswer, GuardrailPrograms, Inquiry, ask_all};

/// The time limit for all programs that guardrails ask about one decision, since the caller waits.
pub const GUARDRAIL_TIME: Duration = Duration::from_secs(24);
/// The part of the time before a deadline that is reserved for the commit.
const TO_COMMIT: Duration = Duration::from_millis(500);
/// The largest number of answers of programs that one decision may need.
const MAX_REPLIES: usize = 10_000;

impl Store {
    /// Commits a change. Returns once it is on disk.
    pub async fn commit(&self, change: Change) -> Result<Committed, CommitError> {
        match self.inner.queue.commit(change).await {
            CommitAnswer::AskFirst { change, inquiries, until } => {
                let store = self.clone();
                // The commit continues even if the caller stops waiting.
                let committed = tokio::spawn(async move { store.commit_with_replies(*change, inquiries, until).await });
                committed.await.unwrap_or_else(|_| Err(CommitError::Unknown("the server is stopping".to_owned())))
            }
            CommitAnswer::Done(committed) => committed,
        }
    }

    /// Commits a change after asking programs. They have [`GUARDRAIL_TIME`] altogether, and at most until shortly
    /// before the deadline: a decision that arrived in time is then made without the missing answers.
    async fn commit_with_replies(
        &self,
        mut change: Change,
        mut inquiries: Vec<Inquiry>,
        deadline: Option<Timestamp>,
    ) -> Result<Committed, CommitError> {
        let until = Instant::now() + time_to_inquire(deadline, self.inner.clock.now());
        let mut replies = Vec::new();
        let mut asked = Vec::new();
        loop {
            asked.extend_from_slice(&inquiries);
            replies.extend(self.inquire(inquiries, until, usize::MAX).await);
            if let Some(known) = change.replies() {
                known.clone_from(&replies);
            }
            match self.inner.queue.commit(change).await {
                CommitAnswer::AskFirst { change: again, inquiries: more, .. } if replies.len() < MAX_REPLIES => {
                    (change, inquiries) = (*again, more);
                }
                CommitAnswer::AskFirst { .. } => {
                    let message =
                        format!("guardrails have called webhooks {MAX_REPLIES} times, and still need more calls");
                    return Err(CommitError::Conflict(message));
                }
                CommitAnswer::Done(Err(CommitError::Refused(refusal))) => {
                    return Err(CommitError::Refused(refusal.after_asking(deadline, &asked)));
                }
                CommitAnswer::Done(committed) => return committed,
            }
        }
    }

    /// Asks the programs that guardrails need for a decision, at most `at_once` at a time.
    pub async fn inquire(&self, inquiries: Vec<Inquiry>, until: Instant, at_once: usize) -> Vec<GuardrailReply> {
        let answers = match self.inner.guardrails.get() {
            Some(programs) => ask_all(&**programs, &inquiries, Some(until), at_once).await,
            None => vec![GuardrailAnswer::Fails { reason: "no webhook can be asked here".to_owned() }; inquiries.len()],
        };
        GuardrailReply::all(&inquiries, answers)
    }

    /// Sets the client that asks programs for guardrails. Only the first call has an effect.
    pub fn ask_guardrails_by(&self, programs: Arc<dyn GuardrailPrograms>) {
        if self.inner.guardrails.set(programs).is_err() {
            tracing::warn!("the caller of guardrail webhooks is already set, and stays");
        }
    }
}

/// The time that programs have if the decision must be made before this deadline.
fn time_to_inquire(deadline: Option<Timestamp>, now: Timestamp) -> Duration {
    let left = deadline.map(|at| at.since(now).saturating_sub(TO_COMMIT));
    left.map_or(GUARDRAIL_TIME, |left| left.min(GUARDRAIL_TIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_leave_the_end_of_the_time_before_a_deadline_to_the_commit() {
        let now = Timestamp(1_000_000);
        for (left, given) in [(2_000, 1_500), (500, 0), (100, 0), (60_000, 24_000)] {
            let left = Duration::from_millis(left);
            assert_eq!(time_to_inquire(Some(now.after(left)), now), Duration::from_millis(given), "{left:?}");
        }
        assert_eq!(time_to_inquire(Some(Timestamp(0)), now), Duration::ZERO, "it has passed");
        assert_eq!(time_to_inquire(None, now), GUARDRAIL_TIME);
    }
}
