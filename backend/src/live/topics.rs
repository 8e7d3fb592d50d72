//! The topics that a session has subscribed to.

use shared::id::RunId;
use shared::log::EntryKind;
use shared::protocol::Topic;

/// The maximum number of runs that a session may follow.
pub(super) const MAX_RUNS: usize = 32;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Topics {
    /// Whether reviews are requested, so that snapshots contain them.
    pub reviews: bool,
    runs: bool,
    /// Whether the numbers of the inbox are requested.
    pub inbox: bool,
    pub followed: Vec<RunId>,
}

impl Topics {
    /// Reads the requested topics. Without any, the topics are all reviews and runs. Fails if too many runs are named.
    pub fn new(asked: Option<Vec<Topic>>) -> Result<Self, String> {
        let mut topics = Self::default();
        let asked = asked.unwrap_or_else(|| vec![Topic::Reviews, Topic::Runs]);
        for topic in asked {
            match topic {
                Topic::Reviews => topics.reviews = true,
                Topic::Runs => topics.runs = true,
                Topic::Inbox => topics.inbox = true,
                Topic::Run(run) if !topics.followed.contains(&run) => topics.followed.push(run),
                Topic::Run(_) => {}
            }
        }
        if topics.followed.len() > MAX_RUNS {
            return Err(format!("at most {MAX_RUNS} runs can be followed over one socket"));
        }
        Ok(topics)
    }

    /// Whether this run, and so its token streams, is followed.
    pub fn follows(&self, run: RunId) -> bool {
        self.followed.contains(&run)
    }

    /// Whether an entry of this kind, which belongs to this run if any, belongs to one of the topics.
    pub fn has(&self, kind: EntryKind, run: Option<RunId>) -> bool {
        // Views of reviews are in the log, but are no news.
        if kind == EntryKind::ReviewViewed {
            return false;
        }
        if run.is_some_and(|run| self.follows(run)) {
            return true;
        }
        if kind.is_review() { self.reviews } else { self.runs && is_milestone(kind) }
    }
}

/// Whether entries of this kind concern a run as a whole, and not one of its steps.
fn is_milestone(kind: EntryKind) -> bool {
    use EntryKind::{RunCancelled, RunCompleted, RunFailed, RunResumed, RunStarted, WorkflowWaiting};
    matches!(kind, RunStarted | RunResumed | WorkflowWaiting | RunCompleted | RunFailed | RunCancelled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: u128) -> RunId {
        RunId(uuid::Uuid::from_u128(number))
    }

    #[test]
    fn a_topic_has_its_entries_and_no_others() {
        let receives = |topics: &[&str], kind| {
            let topics = topics.iter().map(|topic| Topic::try_from((*topic).to_owned()).expect("a topic")).collect();
            Topics::new(Some(topics)).expect("few").has(kind, Some(run(1)))
        };
        let one = format!("run:{}", run(1));
        let other = format!("run:{}", run(2));
        assert!(receives(&["reviews"], EntryKind::ReviewUpdated));
        assert!(!receives(&["reviews"], EntryKind::RunStarted));
        assert!(receives(&["runs"], EntryKind::WorkflowWaiting));
        assert!(!receives(&["runs"], EntryKind::StepCompleted));
        assert!(!receives(&["runs"], EntryKind::ReviewRequested));
        for kind in [EntryKind::StepCompleted, EntryKind::ReviewResolved, EntryKind::RunFailed] {
            assert!(receives(&[&one], kind));
            assert!(!receives(&[&other], kind));
        }
        assert!(!receives(&["inbox"], EntryKind::ReviewUpdated), "numbers, and no entries");
        assert!(!receives(&[], EntryKind::RunStarted));
    }

    #[test]
    fn whoever_names_no_topics_gets_reviews_and_runs() {
        let topics = Topics::new(None).expect("few");
        assert!(topics.has(EntryKind::RunStarted, None) && topics.has(EntryKind::ReviewRequested, None));
        assert!(!topics.inbox);
        assert!(!topics.has(EntryKind::StepStarted, Some(run(1))));
    }
}
