//! Log entries that wait for the end of their transition.
//!
//! The run is added to its entries when the transition is finished: all entries of one commit show the same revision of
//! the run, and folds ignore what is not newer than what they have.

use shared::JsonMap;
use shared::id::{ReviewId, RunId, Username};
use shared::log::{Event, EventData, OfRun, RunCancelled, RunCompleted};
use shared::run::RunSummary;
use shared::time::Timestamp;

/// An entry that waits for the end of its transition.
#[derive(Debug)]
pub(super) struct Emitted {
    pub review_id: Option<ReviewId>,
    pub actor: Option<Username>,
    pub data: Emission,
}

/// What an entry says.
#[derive(Debug)]
pub(super) enum Emission {
    /// A change of the run; the summary of the run is added at the end of the transition.
    Run(RunChange),
    /// Anything else, complete as it is.
    Other(EventData),
}

/// What happened to a run as a whole.
#[derive(Debug)]
pub(super) enum RunChange {
    Started,
    Resumed,
    Waiting,
    Completed { output: JsonMap },
    Failed,
    Cancelled { reason: Option<String> },
}

impl RunChange {
    fn of(self, run: Box<RunSummary>) -> EventData {
        match self {
            Self::Started => EventData::RunStarted(OfRun { run }),
            Self::Resumed => EventData::RunResumed(OfRun { run }),
            Self::Waiting => EventData::WorkflowWaiting(OfRun { run }),
            Self::Completed { output } => EventData::RunCompleted(RunCompleted { run, output }),
            Self::Failed => EventData::RunFailed(OfRun { run }),
            Self::Cancelled { reason } => EventData::RunCancelled(RunCancelled { run, reason }),
        }
    }
}

impl Emitted {
    /// Builds the entry, with the run as it is after the transition. `id` is `None` for a carrier.
    pub(super) fn event(self, at: Timestamp, id: Option<RunId>, run: &RunSummary) -> Event {
        let data = match self.data {
            Emission::Run(change) => change.of(Box::new(run.clone())),
            Emission::Other(data) => data,
        };
        let event = Event::new(at, self.actor, &data);
        Event { run_id: id, review_id: self.review_id, ..event }
    }
}
