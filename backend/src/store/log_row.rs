//! The content of a row of the log: the events of one run's commit, and the inputs that led to them.
//!
//! Data that all events of a row share (its time, its run, the run's summary) is stored once, since the log is the
//! largest table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use shared::JsonMap;
use shared::access::Principal;
use shared::feedback::Feedback;
use shared::id::{ReviewId, RunId, TaskId, TokenId, Username};
use shared::log::{EntryKind, Event, EventData};
use shared::time::Timestamp;

use super::blobs::Owner;
use super::compact_review::{self, Compact};
use super::unreadable::{self, reason};
use crate::clock::Moment;
use crate::engine::{Granted, Input, RunStart};

/// The body of a row to write.
#[derive(Debug, Clone, Serialize)]
pub(super) struct NewBody<'a> {
    events: Vec<Packed<'a>>,
    /// The inputs of the engine, in order. They are kept for a replay, and the events do not need them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<StoredInput<'a>>,
    /// Whether the events name no run although a run caused them: a run that only carries a question.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    of_no_run: bool,
    /// The format of the state that the engine wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<u32>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Body {
    events: Vec<StoredEvent>,
    #[serde(default)]
    of_no_run: bool,
}

/// How much of a review an entry contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// All members, as in the API.
    Whole,
    /// Without members that have their default value: this is what was stored, and what is sealed. A seal must hold for
    /// as long as the log, but the members that are restored in an old review can change with new members of reviews.
    Sealed,
}

/// An input as it was applied, with what is needed to replay it.
#[derive(Debug, Clone)]
pub(super) struct Recorded {
    /// The time and the randomness of the transition.
    pub moment: Moment,
    pub cause: Cause,
    /// The grants that it used.
    pub grants: Vec<Granted>,
    /// The people who existed, if the input depended on them.
    pub people: Option<Arc<[Principal]>>,
    /// The feedback that existed, if an agent was given it.
    pub feedback: Vec<Feedback>,
    /// The tasks of calls that the run forgot after the input, since no worker has them.
    pub forgotten: Vec<TaskId>,
}

/// What the engine applied: the launch that starts a run, or an input to a run.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Cause {
    Launch(Box<RunStart>),
    Input(Box<Input>),
}

impl Recorded {
    /// An input that depends on nothing else.
    pub fn of(moment: Moment, input: Input) -> Self {
        let (grants, feedback, forgotten) = (Vec::new(), Vec::new(), Vec::new());
        Self { moment, cause: Cause::Input(Box::new(input)), grants, people: None, feedback, forgotten }
    }
}

/// A [`Recorded`] without data that its row has.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize)]
struct StoredInput<'a> {
    at: Option<Timestamp>,
    seed: String,
    #[serde(flatten)]
    cause: &'a Cause,
    #[serde(skip_serializing_if = "<[Granted]>::is_empty")]
    grants: &'a [Granted],
    /// Roles by username.
    people: Option<BTreeMap<&'a Username, &'a BTreeSet<String>>>,
    #[serde(skip_serializing_if = "<[Feedback]>::is_empty")]
    feedback: &'a [Feedback],
    #[serde(skip_serializing_if = "<[TaskId]>::is_empty")]
    forgotten: &'a [TaskId],
}

/// An event without data that its row has or that follows from its data.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize)]
struct Packed<'a> {
    kind: EntryKind,
    at: Option<Timestamp>,
    run_id: Option<RunId>,
    review_id: Option<ReviewId>,
    actor: Option<&'a Username>,
    token: Option<TokenId>,
    data: PackedData<'a>,
}

/// The data of an event, with a review without default values.
#[derive(Debug, Clone, Copy)]
struct PackedData<'a> {
    data: &'a JsonMap,
    /// Whether the run's summary equals that of the event before.
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

#[derive(Debug, Clone, Deserialize)]
struct StoredEvent {
    kind: EntryKind,
    at: Option<Timestamp>,
    run_id: Option<RunId>,
    review_id: Option<ReviewId>,
    actor: Option<Username>,
    token: Option<TokenId>,
    data: JsonMap,
}

/// The placeholder for a run summary that equals that of the event before.
const SAME: &str = "=";
/// The member of an entry's data that has the run's summary.
const RUN: &str = "run";
/// The member of an entry's data that has the review.
const REVIEW: &str = "review";

/// Returns the review with this id if the event contains it.
pub(super) fn review_in(event: &Event, id: ReviewId) -> Option<Compact<'_>> {
    let review = event.data.get(REVIEW)?.as_object()?;
    (review_of(&event.data) == Some(id)).then_some(Compact(review))
}

impl<'a> NewBody<'a> {
    /// Packs the events of a row with this time and run.
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
                token: event.token,
                data: PackedData { data: &event.data, same_run },
            }
        });
        Self { events: events.collect(), inputs: Vec::new(), of_no_run, format: None }
    }

    /// Adds the inputs of the engine, and the format of the state that it wrote.
    pub fn with_inputs(mut self, at: Timestamp, inputs: &'a [Recorded], format: u32) -> Self {
        let stored = |recorded: &'a Recorded| StoredInput {
            at: Some(recorded.moment.now).filter(|own| *own != at),
            seed: hex::encode(recorded.moment.seed),
            cause: &recorded.cause,
            grants: &recorded.grants,
            people: recorded.people.as_ref().map(|all| all.iter().map(|one| (&one.username, &one.roles)).collect()),
            feedback: &recorded.feedback,
            forgotten: &recorded.forgotten,
        };
        self.inputs = inputs.iter().map(stored).collect();
        self.format = Some(format);
        self
    }

    /// Whose data the parts of the body are.
    pub fn owner(&self) -> Owner {
        let events = self.events.iter().map(|packed| (packed.kind, packed.data.data));
        owner_of(events, Owner::of(&self.inputs))
    }
}

/// Whose data the parts of a stored body are, whose events have been unpacked. An input of an earlier version that can
/// no longer be read is the engine's.
pub(super) fn owner_of_stored(events: &[Event], body: &Value) -> Owner {
    let inputs = body.get("inputs").and_then(Value::as_array).into_iter().flatten().map(|input| {
        Owner::members([
            Owner::read_member::<RunStart>(input, "launch"),
            Owner::read_member::<Input>(input, "input"),
            Owner::read_member::<Vec<Granted>>(input, "grants"),
        ])
    });
    owner_of(events.iter().map(|event| (event.kind, &event.data)), Owner::items(inputs))
}

/// Whose data the parts of a body with these events are. The data of events are JSON already: they are read as their
/// types. What is left out or repeated in the body has no part in it that could be owned.
fn owner_of<'e>(events: impl Iterator<Item = (EntryKind, &'e JsonMap)>, inputs: Owner) -> Owner {
    let events = events.map(|(kind, data)| {
        let data = EventData::read(kind, data).map_or(Owner::Engine, |typed| Owner::of(&typed));
        Owner::members([("data".to_owned(), data)])
    });
    Owner::members([("events".to_owned(), Owner::items(events)), ("inputs".to_owned(), inputs)])
}

impl Body {
    /// Restores the events, given the time and the run of their row.
    pub fn unpack(self, at: Timestamp, run: Option<RunId>, form: Form) -> Vec<Event> {
        unpack(self.events.into_iter().map(Ok), at, run.filter(|_| !self.of_no_run), form)
    }
}

/// The body of a row of which some events cannot be read.
#[derive(Debug, Deserialize)]
pub(super) struct Loose {
    events: Vec<Value>,
    #[serde(default)]
    of_no_run: bool,
}

impl Loose {
    /// Restores the events. Those that cannot be read are marked as unreadable.
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
            token: stored.token,
            data,
        }
    });
    events.collect()
}

/// The id of the review in an entry's data.
fn review_of(data: &JsonMap) -> Option<ReviewId> {
    data.get(REVIEW)?.get("id")?.as_str()?.parse().ok()
}
