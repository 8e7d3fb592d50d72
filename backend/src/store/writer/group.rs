//! A group of changes: the data that they depend on, as they were read, and the data to write, as decided. `decide`
//! decides each change.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use shared::JsonMap;
use shared::api::FlowVersion;
use shared::feedback::Feedback;
use shared::grant::Grant;
use shared::id::{FlowId, GrantId, ReviewId, RunId, StepId, TaskId, TokenId, Username};
use shared::inbox::Urgency;
use shared::log::{Event, EventData};
use shared::notification::Notifications;
use shared::run::Step;
use shared::time::Timestamp;

use super::super::blobs::Blobs;
use super::super::log_row::Recorded;
use super::super::{CommitError, Committed, Credential, CredentialKind, IdempotencyKey, UserRecord};
use super::pending::{Archiving, Erasures};
use crate::clock::Moment;
use crate::engine::{Snapshot, Task};
use crate::flow::Compiled;
use shared::access::Principal;

/// What changes rest on, and what is to be written.
#[derive(Default)]
pub(super) struct Group {
    pub blobs: Blobs,
    pub keys: HashMap<(String, String), UsedKey>,
    pub users: BTreeMap<Username, UserRecord>,
    pub credentials: BTreeMap<[u8; 32], Credential>,
    /// Who has the names in Slack that are named.
    pub slack_users: BTreeMap<String, Username>,
    /// All who may log in, as they were read; empty where no flow of the group needs them.
    pub active: BTreeMap<Username, Principal>,
    pub runs: BTreeMap<RunId, RunWork>,
    /// The runs of the reviews that are named.
    pub run_of: BTreeMap<ReviewId, RunId>,
    /// The newest version of each flow that is named; none beside its number where it cannot be read, or no change saves
    /// the next.
    pub newest: BTreeMap<FlowId, (u32, Option<FlowVersion>)>,
    pub compiled: HashMap<(FlowId, u32), Arc<Compiled>>,
    /// Versions of flows that this server cannot read, and why.
    pub unreadable: HashMap<(FlowId, u32), String>,
    /// How many questions of a kind wait that somebody asks without a flow, by their subject.
    pub asked: BTreeMap<String, u64>,
    /// Grants that may count for these runs, and those that are named.
    pub grants: BTreeMap<GrantId, Grant>,
    /// The newest feedback on agents that are told it, newest first for each.
    pub feedback: Vec<Feedback>,
    /// How long a grant may hold.
    pub longest_grant: Duration,
    /// What flows see as `env`.
    pub env: Arc<JsonMap>,
    pub archiving: Archiving,
    pub erasures: Erasures,
    pub out: Out,
}

/// An idempotency key that was used.
pub(super) struct UsedKey {
    pub body: [u8; 32],
    /// None: there was a secret beside it.
    pub answer: Option<Committed>,
}

/// A run as it was read, and as it has become.
#[derive(Default)]
pub(super) struct RunWork {
    /// None: there is no such run yet.
    pub snapshot: Option<Snapshot>,
    /// How it stands in the database; none: there is no such run yet.
    pub stored_status: Option<String>,
    /// The visits that stand in its row; none where these are not all.
    pub stored_steps: Option<Vec<Step>>,
    /// Where its reviews that are pending in the database are found there.
    pub stored_reviews: BTreeMap<ReviewId, StoredPlaces>,
    /// Where what is stored of it cannot be read: the snapshot is what its columns say, and it can only be given up.
    pub unreadable: Option<UnreadableRun>,
    /// The tasks that are named, with their attempts.
    pub tasks: HashMap<TaskId, u32>,
    pub changed: Option<Changed>,
}

/// Where a pending review is found in the database.
pub(super) struct StoredPlaces {
    pub queue: Urgency,
    /// Under which subjects; none: it cannot be read, and nobody knows.
    pub subjects: Option<BTreeSet<String>>,
}

/// A run of which the state or a pending review cannot be read.
pub(super) struct UnreadableRun {
    pub why: String,
    /// All its tasks.
    pub tasks: Vec<TaskId>,
}

/// What is to be written of a run, beside its state.
#[derive(Default)]
pub(super) struct Changed {
    pub reviews: BTreeSet<ReviewId>,
    pub steps: Vec<Step>,
    pub tasks: BTreeMap<TaskId, Task>,
    pub ended_tasks: BTreeSet<TaskId>,
    pub abandoned_tasks: BTreeSet<TaskId>,
    pub events: Vec<Event>,
    pub inputs: Vec<Recorded>,
}

impl Changed {
    /// Takes a step; a later form of the same step replaces the earlier one.
    pub fn step(&mut self, step: Step) {
        let id: StepId = step.id;
        match self.steps.iter_mut().find(|known| known.id == id) {
            Some(known) => *known = step,
            None => self.steps.push(step),
        }
    }
}

/// What of that which lets somebody in ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum EndedAccess {
    /// All of it.
    All,
    /// All but their tokens, and the session with this SHA-256.
    AllButTokensAnd([u8; 32]),
}

/// What is to be written beside runs.
#[derive(Default)]
pub(super) struct Out {
    pub flows: Vec<FlowVersion>,
    pub users: BTreeSet<Username>,
    pub notifications: BTreeMap<Username, Notifications>,
    pub ended_credentials: BTreeSet<[u8; 32]>,
    /// People whose sessions, links and more end.
    pub ended_access: Vec<(Username, EndedAccess)>,
    pub new_credentials: BTreeMap<[u8; 32], Credential>,
    pub new_grants: BTreeMap<GrantId, Grant>,
    pub ended_grants: BTreeSet<GrantId>,
    pub feedback: Vec<Feedback>,
    pub keys: Vec<(IdempotencyKey, Timestamp, Option<Committed>)>,
    /// Entries that are of no run, one row each.
    pub events: Vec<(Moment, Event)>,
}

impl Group {
    /// Whether nothing is to be written.
    pub fn is_empty(&self) -> bool {
        let Out {
            flows,
            users,
            notifications,
            ended_credentials,
            ended_access,
            new_credentials,
            new_grants,
            ended_grants,
            feedback,
            keys,
            events,
        } = &self.out;
        flows.is_empty()
            && users.is_empty()
            && notifications.is_empty()
            && ended_credentials.is_empty()
            && ended_access.is_empty()
            && new_credentials.is_empty()
            && new_grants.is_empty()
            && ended_grants.is_empty()
            && feedback.is_empty()
            && keys.is_empty()
            && events.is_empty()
            && self.erasures.is_empty()
            && self.runs.values().all(|run| run.changed.is_none())
    }

    /// Whether somebody should look for tasks.
    pub fn has_new_tasks(&self) -> bool {
        self.runs.values().any(|run| run.changed.as_ref().is_some_and(|changed| !changed.tasks.is_empty()))
    }

    /// A version of a flow, ready to run.
    pub fn flow(&self, id: &FlowId, version: u32) -> Result<&Arc<Compiled>, CommitError> {
        let key = (id.clone(), version);
        self.compiled.get(&key).ok_or_else(|| match self.unreadable.get(&key) {
            Some(why) => CommitError::Unreadable(why.clone()),
            None => CommitError::Unreadable(format!("version {version} of the flow `{id}` does not exist")),
        })
    }

    /// Puts an entry that is of no run into the log; nobody: the server itself did it.
    pub fn emit(&mut self, by: Option<&Principal>, data: &EventData, moment: Moment) {
        self.emit_by(by.map(|by| &by.username), data, moment);
    }

    /// The same for somebody who is let in by it.
    pub fn emit_by(&mut self, name: Option<&Username>, data: &EventData, moment: Moment) {
        self.out.events.push((moment, Event::new(moment.now, name.cloned(), data)));
    }

    /// The credential of a token.
    pub fn token(&self, id: TokenId) -> Option<([u8; 32], &Credential)> {
        let (digest, credential) = self
            .credentials
            .iter()
            .find(|(_, credential)| credential.kind == CredentialKind::Token && credential.id == Some(id))?;
        Some((*digest, credential))
    }
}
