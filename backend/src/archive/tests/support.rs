//! A database with finished runs, and a folder to archive them in.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use shared::access::Principal;
use shared::id::RunId;
use shared::seal::SealCheck;
use tempfile::TempDir;

use crate::archive::{ArchiveError, Archiver, Folder, Retention, verify};
use crate::audit::tests::support as audit;
use crate::clock::{Moment, SystemClock};
use crate::store::{Actor, Change, IdempotencyKey, NewFlow, Operation, Store};

pub const DAY: Duration = Duration::from_hours(24);
/// The retention of runs.
pub const RETENTION: Duration = Duration::from_hours(90 * 24);

pub struct World {
    pub record: audit::World,
    folder: TempDir,
}

impl World {
    pub async fn sqlite() -> Self {
        Self::on(audit::World::sqlite().await).await
    }

    pub async fn postgres() -> Option<Self> {
        Some(Self::on(audit::World::postgres().await?).await)
    }

    async fn on(record: audit::World) -> Self {
        let world = Self { record, folder: tempfile::tempdir().expect("a temporary folder") };
        world.record.people(&["dev"]).await;
        world.save(json!({"id": "note", "nodes": {"keep": {"set": {"note": "{{ text }}"}}}})).await;
        let human = json!({"prompt": "May it go out?", "options": [{"id": "yes", "kind": "accept", "label": "Yes"}]});
        world.save(json!({"id": "ask", "nodes": {"check": {"human": human}}})).await;
        world
    }

    /// Saves a flow whose input is a text.
    pub async fn save(&self, mut flow: serde_json::Value) {
        flow["input"] = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        let source = flow.to_string();
        let flow = serde_json::from_value(flow).expect("the flow is well-formed");
        let new = NewFlow { digest: format!("sha256:{}", source.len()), source, flow };
        self.store().commit(Change::by_server(Operation::SaveFlow(Box::new(new)))).await.expect("the flow is saved");
    }

    pub fn store(&self) -> &Store {
        &self.record.store
    }

    pub fn folder(&self) -> Folder {
        Folder::at(self.path())
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("archive")
    }

    /// Returns the path of the only archive file.
    pub fn file(&self) -> PathBuf {
        let files = std::fs::read_dir(self.path()).expect("a folder").map(|file| file.expect("a file").path());
        let mut files: Vec<PathBuf> = files.filter(|file| file.extension().is_some_and(|end| end == "gz")).collect();
        assert_eq!(files.len(), 1, "{files:?}");
        files.remove(0)
    }

    /// Creates an archiver with the retention [`RETENTION`], as after a restart of the server.
    pub fn archiver(&self) -> Archiver {
        self.archiver_of(Some(RETENTION))
    }

    pub fn archiver_of(&self, runs: Option<Duration>) -> Archiver {
        let retention = Retention { runs, folder: self.path() };
        Archiver::new(self.store().clone(), self.record.trusted.clone(), self.record.clock.clone(), retention)
    }

    pub async fn launch(&self, flow: &str, text: &str) -> RunId {
        launch(self.store(), flow, text, None).await
    }

    /// Runs so many flows to their end. Half of the runs have a value that is stored beside the log.
    pub async fn finished(&self, count: usize) -> Vec<RunId> {
        let mut runs = Vec::new();
        for n in 0..count {
            let text = if n % 2 == 0 { format!("text {n}") } else { format!("{n} ").repeat(1000) };
            runs.push(self.launch("note", &text).await);
        }
        runs
    }

    /// Seals everything, and lets the retention of finished runs pass.
    pub async fn grow_old(&mut self) {
        self.record.seal_all().await;
        self.record.clock.advance(RETENTION + DAY);
    }

    /// Verifies the audit log together with the archive files.
    pub async fn verify(&self) -> SealCheck {
        let checked: Result<_, ArchiveError> = verify(self.store(), &self.record.trusted, &[], &self.folder()).await;
        checked.expect("reads")
    }

    /// Counts the rows of a table.
    pub async fn rows(&self, table: &str) -> u64 {
        self.store().counts().await.expect("counts")[table]
    }
}

pub async fn launch(store: &Store, flow: &str, text: &str, key: Option<IdempotencyKey>) -> RunId {
    let run = RunId(Moment::of(&SystemClock).ids().uuid());
    let principal: Principal =
        serde_json::from_value(json!({"username": "dev", "roles": ["developer"], "token": false})).expect("somebody");
    let input = [("text".to_owned(), json!(text))].into_iter().collect();
    let operation = Operation::launch(run, flow.parse().expect("an id"), input);
    store.commit(Change { by: Some(Actor::of(principal)), key, operation }).await.expect("the run starts");
    run
}

/// Creates an unused idempotency key.
pub fn key() -> IdempotencyKey {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let key = NEXT.fetch_add(1, Ordering::Relaxed).to_string();
    IdempotencyKey { scope: "dev POST /api/v1/runs".to_owned(), key, body: [7; 32] }
}
