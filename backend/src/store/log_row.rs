//! What a row of the log holds: the events of one run's commit, and the inputs that led to them.
//!
//! What every event of a row shares (its time, its run, the run's summary) is stored once: the log is the largest
//! table.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::JsonMap;
use shared::id::{ReviewId, RunId, Username};
use shared::log::{EntryKind, Event};
use shared::time::Timestamp;

use crate::clock::Moment;
use crate::engine::{Input, Launch};

/// The body of a row.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Body {
    /// What it tells, in order.
    events: Vec<Stored>,
    /// What the engine was told, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<Recorded>,
    /// The format of the state that the engine made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    format: Option<u32>,
}

/// An input as it was applied: with its moment, the run can be replayed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Recorded {
    /// When, and with what randomness.
    pub moment: Moment,
    /// The start of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
    /// Or what happened to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Input>,
}

/// An event without what its row or its data says already.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Stored {
    kind: EntryKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run_id: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    review_id: Option<ReviewId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    actor: Option<Username>,
    data: JsonMap,
}

/// Stands for the same run summary as the event before it.
const SAME: &str = "=";

impl Body {
    /// Packs the events of a row of this time and run.
    pub fn pack(at: Timestamp, run: Option<RunId>, events: &[Event]) -> Self {
        let mut last_run: Option<&Value> = None;
        let events = events.iter().map(|event| {
            let mut data = event.data.clone();
            if let Some(summary) = event.data.get("run") {
                if last_run == Some(summary) {
                    data.insert("run".to_owned(), Value::from(SAME));
                }
                last_run = Some(summary);
            }
            Stored {
                kind: event.kind,
                at: Some(event.at).filter(|own| *own != at),
                run_id: event.run_id.filter(|own| Some(*own) != run),
                review_id: event.review_id.filter(|own| Some(*own) != review_of(&event.data)),
                actor: event.actor.clone(),
                data,
            }
        });
        Self { events: events.collect(), inputs: Vec::new(), format: None }
    }

    /// The same, with what the engine was told, and the format that it wrote.
    pub fn with_inputs(mut self, inputs: Vec<Recorded>, format: u32) -> Self {
        self.inputs = inputs;
        self.format = Some(format);
        self
    }

    /// The events, whole.
    pub fn unpack(self, at: Timestamp, run: Option<RunId>) -> Vec<Event> {
        let mut last_run: Option<Value> = None;
        let events = self.events.into_iter().map(|stored| {
            let mut data = stored.data;
            if let Some(summary) = data.get_mut("run") {
                match &last_run {
                    Some(last) if summary == SAME => *summary = last.clone(),
                    _ => last_run = Some(summary.clone()),
                }
            }
            Event {
                kind: stored.kind,
                at: stored.at.unwrap_or(at),
                run_id: stored.run_id.or(run),
                review_id: stored.review_id.or_else(|| review_of(&data)),
                actor: stored.actor,
                data,
            }
        });
        events.collect()
    }
}

/// The review that an entry's data shows.
fn review_of(data: &JsonMap) -> Option<ReviewId> {
    data.get("review")?.get("id")?.as_str()?.parse().ok()
}
