//! A group of changes: the data that they depend on, as read, and the data to write, as decided. `decide` decides each
//! change.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use shared::api::FlowVersion;
use shared::author::Author;
use shared::feedback::Feedback;
use shared::grant::Grant;
use shared::id::{FeedbackId, FlowId, GrantId, ReviewId, RunId, StepId, TaskId, TokenId, Username};
use shared::inbox::Urgency;
use shared::log::{Event, EventData};
use shared::run::Step;
use shared::time::Timestamp;

use super::super::blobs::Blobs;
use super::super::log_row::Recorded;
use super::super::notifications::StoredNotifications;
use super::super::saved_views::StoredViews;
use super::super::{CommitError, Committed, Credential, CredentialKind, IdempotencyKey, UserRecord};
use super::pending::{Archiving, Erasures};
use crate::clock::Moment;
use crate::engine::{Snapshot, Task};
use crate::flow::{Compiled, Environment};
use shared::access::Principal;

/// The data that changes depend on, and the data to write.
#[derive(Default)]
pub(super) struct Group {
    pub blobs: Blobs,
    pub keys: HashMap<(String, String), UsedKey>,
    pub users: BTreeMap<Username, UserRecord>,
    pub credentials: BTreeMap<[u8; 32], Credential>,
    /// The people by the Slack member IDs that changes name.
    pub slack_users: BTreeMap<String, Username>,
    /// The notification settings that changes depend on.
    pub notifications: BTreeMap<Username, StoredNotifications>,
    /// The saved views that changes replace.
    pub saved_views: BTreeMap<Username, StoredViews>,
    /// Everyone who may log in, as read. Empty if no change of the group needs them.
    pub active: Arc<BTreeMap<Username, Principal>>,
    pub runs: BTreeMap<RunId, RunWork>,
    /// The runs of the reviews that changes name.
    pub run_of: BTreeMap<ReviewId, RunId>,
    /// The newest version of each flow that changes name. The version itself is `None` if it cannot be read, or no
    /// change saves the next one.
    pub newest: BTreeMap<FlowId, (u32, Option<FlowVersion>)>,
    pub compiled: HashMap<(FlowId, u32), Arc<Compiled>>,
    /// The versions of flows that must be compiled before these changes are decided.
    pub uncompiled: Vec<(FlowId, u32)>,
    /// The versions of flows that this server cannot read, with the reason.
    pub unreadable: HashMap<(FlowId, u32), String>,
    /// The number of pending questions without a flow, by kind and person.
    pub asked: BTreeMap<String, u64>,
    /// The number of tokens that have not expired, of the people for whom changes create another one.
    pub live_tokens: BTreeMap<Username, u64>,
    /// The grants that may apply to these runs, and those that changes name.
    pub grants: BTreeMap<GrantId, Grant>,
    /// The newest feedback on agents that request it, newest first for each agent.
    pub feedback: Vec<Feedback>,
    /// The feedback that changes of this group retract.
    pub retractable: Vec<Feedback>,
    pub longest_grant: Duration,
    /// What flows use of the server's environment.
    pub environment: Arc<Environment>,
    pub archiving: Archiving,
    pub erasures: Erasures,
    pub out: Out,
}

/// The answer to a change.
pub(super) type ChangeResult = Result<Committed, CommitError>;

/// An idempotency key that was used before.
pub(super) struct UsedKey {
    pub body: [u8; 32],
    /// The result. `None` if it came with a secret.
    pub answer: Option<Committed>,
}

/// A run, as read and as changed by the group.
#[derive(Default)]
pub(super) struct RunWork {
    /// `None` if the run does not exist yet.
    pub snapshot: Option<Snapshot>,
    /// The status in the database. `None` if the run does not exist yet.
    pub stored_status: Option<String>,
    /// The format in the database. `None` if the run does not exist yet.
    pub stored_format: Option<u32>,
    /// The steps in the row of the run. `None` if they are elsewhere, or cannot be read.
    pub stored_steps: Option<Vec<Step>>,
    /// Where the database has the reviews that are pending there.
    pub stored_reviews: BTreeMap<ReviewId, StoredIndexRows>,
    /// Set if stored data of the run cannot be read. The snapshot then comes from its columns, and the run can only be
    /// given up.
    pub unreadable: Option<UnreadableRun>,
    /// The tasks that changes name, with their attempts.
    pub tasks: HashMap<TaskId, u32>,
    pub changed: Option<Changed>,
}

/// Where the database has a pending review.
pub(super) struct StoredIndexRows {
    pub queue: Urgency,
    /// The audience keys under which it is found. `None` if they are unknown because the review cannot be read.
    pub audience_keys: Option<BTreeSet<String>>,
}

/// A run whose state or pending review cannot be read.
pub(super) struct UnreadableRun {
    pub why: String,
    /// All tasks of the run.
    pub tasks: Vec<TaskId>,
}

/// The data of a run to write, besides its state.
#[derive(Default)]
pub(super) struct Changed {
    pub reviews: BTreeSet<ReviewId>,
    pub steps: Vec<Step>,
    pub tasks: BTreeMap<TaskId, Task>,
    pub ended_tasks: BTreeSet<TaskId>,
    pub abandoned_tasks: BTreeSet<TaskId>,
    pub events: Vec<Event>,
    /// The inputs that changed the run. Without any, only the entries are written.
    pub inputs: Vec<Recorded>,
}

impl Changed {
    /// Adds a step. A later version of the same step replaces the earlier one.
    pub fn step(&mut self, step: Step) {
        let id: StepId = step.id;
        match self.steps.iter_mut().find(|known| known.id == id) {
            Some(known) => *known = step,
            None => self.steps.push(step),
        }
    }
}

/// Which credentials of a person end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndedAccess {
    All,
    /// All except the session with this SHA-256.
    AllBut([u8; 32]),
    /// All except tokens and the session with this SHA-256.
    AllButTokensAnd([u8; 32]),
}

/// The data to write beside that of changed runs.
#[derive(Default, PartialEq)]
pub(super) struct Out {
    pub flows: Vec<FlowVersion>,
    pub users: BTreeSet<Username>,
    pub notifications: BTreeMap<Username, StoredNotifications>,
    pub saved_views: BTreeMap<Username, StoredViews>,
    pub ended_credentials: BTreeSet<[u8; 32]>,
    /// The people whose credentials end, and which ones.
    pub ended_access: Vec<(Username, EndedAccess)>,
    pub new_credentials: BTreeMap<[u8; 32], Credential>,
    /// The sessions whose owners have proved that they are theirs, and when.
    pub confirmed_sessions: BTreeMap<[u8; 32], Timestamp>,
    pub new_grants: BTreeMap<GrantId, Grant>,
    pub ended_grants: BTreeSet<GrantId>,
    pub feedback: Vec<Feedback>,
    /// The URLs to which the ends of new runs are posted.
    pub callbacks: Vec<(RunId, String)>,
    pub retracted_feedback: BTreeSet<FeedbackId>,
    pub keys: Vec<(IdempotencyKey, Timestamp, Option<Committed>)>,
    /// The entries that no change of a run caused, one row each, with the run that they are about, if there is one.
    pub events: Vec<(Option<RunId>, Event)>,
}

impl Group {
    pub fn is_empty(&self) -> bool {
        self.out == Out::default()
            && self.erasures.steps.is_empty()
            && self.runs.values().all(|run| run.changed.is_none())
    }

    /// Whether there are new tasks, so that workers should look for them.
    pub fn has_new_tasks(&self) -> bool {
        self.runs.values().any(|run| run.changed.as_ref().is_some_and(|changed| !changed.tasks.is_empty()))
    }

    pub fn flow(&self, id: &FlowId, version: u32) -> Result<&Arc<Compiled>, CommitError> {
        let key = (id.clone(), version);
        self.compiled.get(&key).ok_or_else(|| match self.unreadable.get(&key) {
            Some(why) => CommitError::Unreadable(why.clone()),
            None => CommitError::Unreadable(format!("version {version} of the flow `{id}` does not exist")),
        })
    }

    /// Adds a log entry that belongs to no run. `by` is `None` if the server itself acts.
    pub fn emit(&mut self, by: Option<&Principal>, data: &EventData, moment: Moment) {
        self.out.events.push((None, Event::new(moment.now, by.map(Author::from), data)));
    }

    /// Like [`Self::emit`], with the name of the person who acts, without a token.
    pub fn emit_by(&mut self, name: Option<&Username>, data: &EventData, moment: Moment) {
        self.out.events.push((None, Event::new(moment.now, name.cloned().map(Author::from), data)));
    }

    /// Returns the credential of a token, with the SHA-256 of its secret.
    pub fn token(&self, id: TokenId) -> Option<([u8; 32], &Credential)> {
        let (digest, credential) = self
            .credentials
            .iter()
            .find(|(_, credential)| credential.kind == CredentialKind::Token && credential.id == Some(id))?;
        Some((*digest, credential))
    }
}
