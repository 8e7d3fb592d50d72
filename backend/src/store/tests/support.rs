//! A store with people and a flow, on either database.

use std::sync::Arc;

use serde_json::json;
use shared::JsonMap;
use shared::access::Principal;
use shared::api::{Decided, User};
use shared::decision::{DecisionRequest, Verdict, Via};
use shared::definition::Flow;
use shared::id::{ReviewId, RunId};
use shared::log::{Entry, EntryKind};
use shared::review::Review;
use shared::run::Run;
use shared::time::Timestamp;

use crate::clock::{Clock as _, Moment, SystemClock};
use crate::engine::Input;
use crate::store::testing::{Database, ManualClock};
use crate::store::{Actor, Change, CommitError, Committed, NewFlow, NewUserRecord, Operation, Store, StoreOptions};

/// Runs a test on both databases, in the `World` of its file.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {$(
        mod $name {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_sqlite() {
                super::$name(super::World::sqlite().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_postgres() {
                if let Some(world) = super::World::postgres().await {
                    super::$name(world).await;
                }
            }
        }
    )+};
}
pub(crate) use on_both;

/// Pseudo-random numbers that are the same in each run.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % limit
    }

    pub fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

pub struct World {
    pub store: Store,
    pub clock: Arc<ManualClock>,
    pub database: Database,
}

/// The flow: it asks a person about a text, then ends.
fn flow() -> Flow {
    serde_json::from_value(json!({
        "id": "ask",
        "input": {"type": "object", "properties": {"text": {"type": "string"}}},
        "nodes": {
            "check": {"human": {
                "prompt": "May this go out?",
                "review_keys": ["text"],
                "options": [{"id": "yes", "kind": "accept", "label": "Yes"}, {"id": "no", "kind": "stop", "label": "No"}],
                "timeout": "1h",
                "on_timeout": "reject",
            }},
        },
    }))
    .expect("the flow is well-formed")
}

impl World {
    pub async fn sqlite() -> Self {
        Self::on(Database::sqlite().expect("a temporary folder")).await
    }

    pub async fn postgres() -> Option<Self> {
        let database = Database::postgres().await.expect("PostgreSQL starts")?;
        Some(Self::on(database).await)
    }

    async fn on(database: Database) -> Self {
        let clock = ManualClock::now();
        // Tests of the index create it themselves.
        let options = StoreOptions { index_log: false, ..database.options(clock.clone()) };
        let store = Store::open(options).await.expect("the store opens");
        let world = Self { store, clock, database };
        for (name, roles) in
            [("dev", &["developer"][..]), ("ana", &["reviewer"]), ("tom", &["reviewer"]), ("boss", &["admin"])]
        {
            world.add_user(name, roles).await;
        }
        let source = serde_json::to_string(&flow()).expect("the flow is JSON");
        let new = NewFlow { flow: flow(), source, digest: "sha256:1".to_owned() };
        world.store.commit(Change::by_server(Operation::SaveFlow(Box::new(new)))).await.expect("the flow is saved");
        world
    }

    pub async fn add_user(&self, name: &str, roles: &[&str]) {
        let roles = roles.iter().map(ToString::to_string).collect();
        let user = User::new(name.parse().expect("a name"), roles, self.clock.now());
        let record = NewUserRecord { user, password_hash: None };
        self.store.commit(Change::by_server(Operation::CreateUser(Box::new(record)))).await.expect("a person is added");
    }

    /// A second store on the same database, as another process would open it.
    pub async fn another(&self) -> Store {
        let options = StoreOptions { index_log: false, ..self.database.options(self.clock.clone()) };
        Store::open(options).await.expect("the store opens again")
    }

    pub async fn launch(&self, text: &str) -> Run {
        let Committed::Run { run } = self.store.commit(launch(text)).await.expect("the run starts") else {
            panic!("a launch answers a run")
        };
        *run
    }

    /// Returns the whole log, after checking that it has an entry of this kind.
    pub async fn told(&self, kind: EntryKind) -> Vec<Entry> {
        let page = self.store.log(&self.store.origin(), None, 1000).await.expect("reads").expect("of this log");
        assert!(page.entries.iter().any(|entry| entry.event.kind == kind), "the log has no {kind}");
        page.entries
    }

    pub async fn review_of(&self, run: RunId) -> Review {
        self.store.run_reviews(run).await.expect("reviews are read").pop().expect("the run asks")
    }

    pub async fn launched_review(&self, text: &str) -> Review {
        let run = self.launch(text).await;
        self.review_of(run.summary.id).await
    }
}

pub fn person(name: &str) -> Principal {
    Principal::new(name.parse().expect("a name"), std::collections::BTreeSet::new())
}

/// An actor with no other rights than those that the store reads.
pub fn actor(name: &str) -> Actor {
    Actor::of(person(name))
}

pub fn new_run() -> RunId {
    RunId(Moment::of(&SystemClock).ids().uuid())
}

pub fn launch(text: &str) -> Change {
    let mut input = JsonMap::new();
    input.insert("text".to_owned(), json!(text));
    let operation = Operation::launch(new_run(), "ask".parse().expect("an id"), input);
    Change { by: Some(actor("dev")), key: None, operation }
}

pub fn decide(review: &Review, who: &str, option: &str) -> Change {
    let request = DecisionRequest {
        revision: review.revision,
        digest: review.digest.clone(),
        verdict: Verdict::Choose { option: option.to_owned(), fields: JsonMap::new() },
        edits: JsonMap::new(),
        comment: None,
        metadata: JsonMap::new(),
    };
    let input = Input::decide(review.id, person(who), Via::Human, request);
    on_review(review.id, who, input)
}

pub fn on_review(review: ReviewId, who: &str, input: Input) -> Change {
    Change { by: Some(actor(who)), key: None, operation: Operation::Review { review, input: Box::new(input) } }
}

pub fn decided(answer: Result<Committed, CommitError>) -> Result<Decided, CommitError> {
    match answer? {
        Committed::Decided { decided } => Ok(*decided),
        other => panic!("a decision answers a review, not {other:?}"),
    }
}

pub fn hours(hours: i64) -> i64 {
    hours * 3_600_000_000
}

pub fn after(time: Timestamp, hours_: i64) -> Timestamp {
    Timestamp(time.0 + hours(hours_))
}
