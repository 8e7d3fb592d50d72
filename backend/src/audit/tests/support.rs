//! A sealed log on either database, and changes behind the server's back.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt as _;
use serde_json::json;
use shared::access::Principal;
use shared::api::{AuditQuery, User};
use shared::id::RunId;
use shared::seal::{FirstBad, SealCheck, Tampering};
use tempfile::TempDir;

use crate::audit::key::{SealKey, Trusted};
use crate::audit::sealer::{Sealed, Sealer};
use crate::audit::{Export, ExportError, Format, Head, HeadFile, Seals, register, verify};
use crate::clock::{Clock as _, Moment, SystemClock};
use crate::store::testing::{Database, ManualClock};
use crate::store::{Actor, Change, NewFlow, NewUserRecord, Operation, Store, StoreOptions};

pub(crate) use crate::store::tests::support::on_both;

pub struct World {
    pub store: Store,
    pub clock: Arc<ManualClock>,
    pub database: Database,
    pub folder: TempDir,
    pub trusted: Trusted,
    pub sealer: Sealer,
}

impl World {
    pub async fn sqlite() -> Self {
        Self::on(Database::sqlite().expect("a temporary folder")).await
    }

    pub async fn postgres() -> Option<Self> {
        Some(Self::on(Database::postgres().await.expect("PostgreSQL starts")?).await)
    }

    async fn on(database: Database) -> Self {
        let clock = ManualClock::now();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (key, trusted) = SealKey::open(&folder.path().join("seal.key"), &SystemClock).expect("a key is made");
        let options = StoreOptions { row_keys: Some(key.row_keys()), ..database.options(clock.clone()) };
        let store = Store::open(options).await.expect("the store opens");
        register(&store, &key, &trusted).await.expect("the key is registered");
        let seals = Seals::new(trusted.clone(), HeadFile::at(folder.path().join("seal.head")));
        let sealer = Sealer::new(store.clone(), key, seals, clock.clone());
        Self { store, clock, database, folder, trusted, sealer }
    }

    /// Opens the store of another server, or of this one after a restart.
    pub async fn another_store(&self) -> Store {
        let (key, _) = SealKey::open(&self.key_path(), &SystemClock).expect("the key is read");
        let options = StoreOptions { row_keys: Some(key.row_keys()), ..self.database.options(self.clock.clone()) };
        Store::open(options).await.expect("the store opens")
    }

    pub fn key_path(&self) -> PathBuf {
        self.folder.path().join("seal.key")
    }

    /// Creates the sealer of another server, or of this one after a crash.
    pub fn another_sealer(&self) -> Sealer {
        let (key, trusted) = SealKey::open(&self.key_path(), &SystemClock).expect("the key is read");
        Sealer::new(self.store.clone(), key, self.seals(trusted), self.clock.clone())
    }

    /// Creates the state of a server that trusts these keys.
    pub fn seals(&self, trusted: Trusted) -> Seals {
        Seals::new(trusted, self.kept())
    }

    pub fn kept(&self) -> HeadFile {
        HeadFile::at(self.folder.path().join("seal.head"))
    }

    /// Checks that neither the running server nor a restarted one seals anything, and that each reports why.
    pub async fn nothing_is_sealed_on_top(&mut self, why: &str) {
        self.people(&["zoe"]).await;
        self.clock.advance(Duration::from_mins(1));
        let before = self.store.last_seal().await.expect("reads");
        let mut restarted = self.another_sealer();
        for sealer in [&mut self.sealer, &mut restarted] {
            let error = sealer.seal().await.expect_err("nothing can be built on this").to_string();
            assert!(error.contains(why), "{error}");
        }
        assert_eq!(self.store.last_seal().await.expect("reads"), before);
    }

    /// Returns the finding of the server's own verification.
    pub async fn bad_for_the_server(&self) -> FirstBad {
        let check = self.seals(self.trusted.clone()).check(&self.store).await.expect("reads");
        assert!(!check.valid, "{check:?}");
        check.first_bad.expect("it is named")
    }

    /// Adds an entry to the log for each of these people.
    pub async fn people(&self, names: &[&str]) {
        for name in names {
            add_user(&self.store, name, self.clock.now()).await;
        }
    }

    /// Adds six people, in three seals of two each.
    pub async fn three_seals(&mut self) -> Head {
        for (count, names) in [(2, ["ada", "bob"]), (4, ["cem", "dot"]), (6, ["eli", "fay"])] {
            self.people(&names).await;
            self.seal(count).await;
        }
        self.head().await
    }

    /// Seals so many entries.
    pub async fn seal(&mut self, entries: u64) {
        let mut sealed = Sealed::Some;
        while self.check(None).await.sealed < entries {
            assert_eq!(sealed, Sealed::Some, "there are fewer than {entries} entries");
            sealed = self.sealer.seal().await.expect("seals");
        }
    }

    /// Seals all existing entries.
    pub async fn seal_all(&mut self) {
        let sealing = async {
            loop {
                self.clock.advance(Duration::from_secs(10));
                self.sealer.seal().await.expect("seals");
                let check = self.check(None).await;
                assert!(check.valid, "{check:?}");
                if check.sealed == check.entries {
                    return;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), sealing).await.expect("everything is sealed");
    }

    pub async fn check(&self, expected: Option<&Head>) -> SealCheck {
        verify(&self.store, &self.trusted, expected.cloned().as_slice()).await.expect("reads")
    }

    pub async fn head(&self) -> Head {
        self.check(None).await.head.expect("there is a seal").parse().expect("a head")
    }

    /// Returns the first finding.
    pub async fn first_bad(&self, expected: Option<&Head>) -> (Tampering, FirstBad) {
        let check = self.check(expected).await;
        assert!(!check.valid, "{check:?}");
        let bad = check.first_bad.expect("it is named");
        (bad.what, bad)
    }

    /// Executes a statement in the database without the server.
    pub async fn behind_its_back(&self, sql: &str) {
        for statement in sql.split(';').filter(|statement| !statement.trim().is_empty()) {
            let changed = self.database.execute(statement).await.expect("runs");
            assert!(changed > 0, "{sql}");
        }
    }

    pub fn is_postgres(&self) -> bool {
        self.database.url.starts_with("postgres")
    }

    /// Starts a run whose input is large enough to be stored beside the log. It ends at once.
    pub async fn run(&self, text: &str) -> RunId {
        self.people(&["dev"]).await;
        let flow: shared::definition::Flow = serde_json::from_value(json!({
            "id": "note", "input": {"type": "object", "properties": {"text": {"type": "string"}}},
            "nodes": {"keep": {"set": {"note": "{{ text }}"}}},
        }))
        .expect("the flow is well-formed");
        let new = NewFlow { source: "note".to_owned(), digest: "sha256:1".to_owned(), flow };
        let saved = Change::by_server(Operation::SaveFlow(Box::new(new)));
        self.store.commit(saved).await.expect("the flow is saved");
        let run = RunId(Moment::of(&SystemClock).ids().uuid());
        let principal: Principal =
            serde_json::from_value(json!({"username": "dev", "roles": ["developer"], "token": false}))
                .expect("somebody");
        let input = [("text".to_owned(), json!(text))].into_iter().collect();
        let operation = Operation::launch(run, "note".parse().expect("an id"), input);
        let by = Some(Actor::of(principal));
        self.store.commit(Change { by, key: None, operation }).await.expect("the run starts");
        run
    }

    /// Exports entries as JSON lines.
    pub async fn export(&self, query: AuditQuery) -> String {
        let export = self.begin_export(query).await.expect("it begins");
        export.pages().try_collect().await.expect("reads")
    }

    /// Begins an export as JSON lines, in pages of two entries.
    pub async fn begin_export(&self, query: AuditQuery) -> Result<Export, ExportError> {
        Export::begin(self.store.clone(), Format::JsonLines, AuditQuery { limit: Some(2), ..query }).await
    }
}

pub async fn add_user(store: &Store, name: &str, created_at: shared::time::Timestamp) {
    let user = json!({"username": name, "roles": ["developer"], "created_at": created_at});
    let user: User = serde_json::from_value(user).expect("a person");
    let record = NewUserRecord { user, password_hash: None };
    store.commit(Change::by_server(Operation::CreateUser(Box::new(record)))).await.expect("a person is added");
}
