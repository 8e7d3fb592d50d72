//! The content of a row of the log: the events of one run's commit, and the inputs that led to them.
//!
//! Data that all events of a row share (its time, its run, the run's summary) are stored once: the log is the largest
//! table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use shared::JsonMap;
use shared::access::Principal;
use shared::feedback::Feedback;
use shared::id::{ReviewId, RunId, TaskId, Username};
use shared::log::{EntryKind, Event};
use shared::time::Timestamp;

use super::compact_review::{self, Compact};
use super::unreadable::{self, reason};
use crate::clock::Moment;
use crate::engine::{Granted, Input, Launch};

/// The body of a row that is written.
#[derive(Debug, Clone, Serialize)]
pub(super) struct NewBody<'a> {
    /// What it tells, in order.
    events: Vec<Packed<'a>>,
    /// What the engine was told, in order. It is kept for a replay; what the log tells needs none of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<StoredInput<'a>>,
    /// Whether it tells of no run, though one has led to it: a run that only carries a question.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    of_no_run: bool,
    /// The format of the state that the engine made of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<u32>,
}

/// The body of a row that is read.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Body {
    events: Vec<StoredEvent>,
    #[serde(default)]
    of_no_run: bool,
}

/// How much of a review an entry shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// All of it, as the API does.
    Whole,
    /// Without what is empty in it: this is what was stored, and what is sealed. A seal must hold for as long as the
    /// log, and what is put back into an old review can change with a new member of reviews.
    Sealed,
}

/// An input as it was applied: with its moment, the run can be replayed.
#[derive(Debug, Clone)]
pub(super) struct Recorded {
    /// When, and with what randomness.
    pub moment: Moment,
    /// The start of the run.
    pub launch: Option<Launch>,
    /// Or what happened to it.
    pub input: Option<Input>,
    /// The grants on which it rests.
    pub grants: Vec<Granted>,
    /// The people who existed, where it rested on them.
    pub people: Option<Arc<[Principal]>>,
    /// The feedback that there was, where an agent was told of it.
    pub feedback: Vec<Feedback>,
    /// The tasks of calls that the run forgot after it, since no worker has them.
    pub forgotten: Vec<TaskId>,
}

impl Recorded {
    /// An input that rests on nothing else.
    pub fn of(moment: Moment, input: Input) -> Self {
        let (grants, feedback, forgotten) = (Vec::new(), Vec::new(), Vec::new());
        Self { moment, launch: None, input: Some(input), grants, people: None, feedback, forgotten }
    }
}

/// The same without what its row says already.
#[derive(Debug, Clone, Serialize)]
struct StoredInput<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
    seed: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    launch: Option<&'a Launch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a Input>,
    #[serde(skip_serializing_if = "<[Granted]>::is_empty")]
    grants: &'a [Granted],
    /// Names with roles.
    #[serde(skip_serializing_if = "Option::is_none")]
    people: Option<BTreeMap<&'a Username, &'a BTreeSet<String>>>,
    #[serde(skip_serializing_if = "<[Feedback]>::is_empty")]
    feedback: &'a [Feedback],
    #[serde(skip_serializing_if = "<[TaskId]>::is_empty")]
    forgotten: &'a [TaskId],
}

/// An event without what its row or its data says already.
#[derive(Debug, Clone, Serialize)]
struct Packed<'a> {
    kind: EntryKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    review_id: Option<ReviewId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<&'a Username>,
    data: PackedData<'a>,
}

/// The data of an event; the review in it without what is empty.
#[derive(Debug, Clone, Copy)]
struct PackedData<'a> {
    data: &'a JsonMap,
    /// Whether its run stands as it does in the event before it.
    same_run: bool,
}

impl Serialize for PackedData<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.data.len()))?;
        let mut shown = None;
        for (name, value) in self.data {
            match value {
                Value::Object(review) if name == REVIEW => shown = Some(review),
                _ if name == RUN && self.same_run => map.serialize_entry(name, SAME)?,
                _ => map.serialize_entry(name, value)?,
            }
        }
        if let Some(review) = shown {
            map.serialize_entry(REVIEW, &Compact(review))?;
        }
        map.end()
    }
}

/// The same as it was stored.
#[derive(Debug, Clone, Deserialize)]
struct StoredEvent {
    kind: EntryKind,
    at: Option<Timestamp>,
    run_id: Option<RunId>,
    review_id: Option<ReviewId>,
    actor: Option<Username>,
    data: JsonMap,
}

/// Stands for the same run summary as the event before it.
const SAME: &str = "=";
/// The member of an entry's data that shows a run's summary.
const RUN: &str = "run";
/// The member of an entry's data that shows a review.
const REVIEW: &str = "review";

/// What an event shows of this review, where it does.
pub(super) fn review_in(event: &Event, id: ReviewId) -> Option<Compact<'_>> {
    let review = event.data.get(REVIEW)?.as_object()?;
    (review_of(&event.data) == Some(id)).then_some(Compact(review))
}

impl<'a> NewBody<'a> {
    /// Packs the events of a row of this time and run.
    pub fn pack(at: Timestamp, run: Option<RunId>, events: &'a [Event]) -> Self {
        let mut last_run: Option<&Value> = None;
        let of_no_run = run.is_some() && !events.is_empty() && events.iter().all(|event| event.run_id.is_none());
        let events = events.iter().map(|event| {
            let summary = event.data.get(RUN);
            let same_run = summary.is_some() && last_run == summary;
            last_run = summary.or(last_run);
            Packed {
                kind: event.kind,
                at: Some(event.at).filter(|own| *own != at),
                run_id: event.run_id.filter(|own| Some(*own) != run),
                review_id: event.review_id.filter(|own| Some(*own) != review_of(&event.data)),
                actor: event.actor.as_ref(),
                data: PackedData { data: &event.data, same_run },
            }
        });
        Self { events: events.collect(), inputs: Vec::new(), of_no_run, format: None }
    }

    /// The same, with what the engine was told, and the format that it wrote.
    pub fn with_inputs(mut self, at: Timestamp, inputs: &'a [Recorded], format: u32) -> Self {
        let stored = |recorded: &'a Recorded| StoredInput {
            at: Some(recorded.moment.now).filter(|own| *own != at),
            seed: hex::encode(recorded.moment.seed),
            launch: recorded.launch.as_ref(),
            input: recorded.input.as_ref(),
            grants: &recorded.grants,
            people: recorded.people.as_ref().map(|all| all.iter().map(|one| (&one.username, &one.roles)).collect()),
            feedback: &recorded.feedback,
            forgotten: &recorded.forgotten,
        };
        self.inputs = inputs.iter().map(stored).collect();
        self.format = Some(format);
        self
    }
}

impl Body {
    /// The events, with the time and the run that their row has for all of them.
    pub fn unpack(self, at: Timestamp, run: Option<RunId>, form: Form) -> Vec<Event> {
        unpack(self.events.into_iter().map(Ok), at, run.filter(|_| !self.of_no_run), form)
    }
}

/// The body of a row of which something cannot be read.
#[derive(Debug, Deserialize)]
pub(super) struct Loose {
    events: Vec<Value>,
    #[serde(default)]
    of_no_run: bool,
}

impl Loose {
    /// The events; those that cannot be read are marked so.
    pub fn unpack(self, at: Timestamp, run: Option<RunId>, form: Form) -> Vec<Event> {
        let events =
            self.events.into_iter().map(|event| StoredEvent::deserialize(event).map_err(|error| reason(&error)));
        unpack(events, at, run.filter(|_| !self.of_no_run), form)
    }
}

fn unpack(
    events: impl Iterator<Item = Result<StoredEvent, String>>,
    at: Timestamp,
    run: Option<RunId>,
    form: Form,
) -> Vec<Event> {
    let mut last_run: Option<Value> = None;
    let events = events.map(|stored| {
        let stored = match stored {
            Ok(stored) => stored,
            Err(why) => return unreadable::event(at, run, &why),
        };
        let mut data = stored.data;
        if let Some(summary) = data.get_mut(RUN) {
            match &last_run {
                Some(last) if summary == SAME => *summary = last.clone(),
                _ => last_run = Some(summary.clone()),
            }
        }
        if let (Form::Whole, Some(Value::Object(review))) = (form, data.get_mut(REVIEW)) {
            compact_review::expand(review);
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

/// The review that an entry's data shows.
fn review_of(data: &JsonMap) -> Option<ReviewId> {
    data.get(REVIEW)?.get("id")?.as_str()?.parse().ok()
}
