//! Nothing names the erased person, and the audit log stays valid.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use shared::api::AuditQuery;
use shared::entry_numbers::EntryNumbers;
use shared::id::RunId;
use shared::log::{EntryKind, Event, RunsArchived};
use shared::seal::Tampering;
use shared::single_sign_on::Trouble;

use super::support::{NAME, REMARK, World};
use crate::archive::{Archiver, Folder, Retention, verify};
use crate::audit::{Explained, verify_file};
use crate::clock::Clock as _;
use crate::erasure::eraser::Reached;
use crate::store::tests::support::on_both;
use crate::store::{Change, CommitError, Form, NewArchive, Operation, ProviderAccount, RefusedSignIn, WholeRun};

on_both! {
    nothing_names_whoever_was_erased_and_the_record_holds,
    whoever_had_their_account_by_mistake_keeps_their_name,
    an_account_that_an_older_server_has_not_looked_for_is_erased,
    what_was_erased_and_changed_afterwards_is_found,
    an_erasure_that_is_stopped_between_its_steps_goes_on,
    what_was_changed_before_is_never_erased,
    a_name_in_data_of_users_is_treated_alike_wherever_the_data_stand,
    what_was_erased_is_still_proved_once_it_is_archived,
}

impl World {
    /// Creates a person with traces in their own runs and in those of others. All runs are over, sealed and indexed.
    async fn left(&mut self) {
        self.account().await;
        self.finished(NAME, NAME, REMARK).await;
        self.finished("zoe", NAME, REMARK).await;
        for n in 0..40 {
            self.record.people(&[&format!("p{n}")]).await;
        }
        self.deactivate().await;
        self.record.seal_all().await;
        let indexed = async {
            let of_index = |table: &String| table.starts_with("log_terms") || table == "log_blocks";
            while !self.record.database.holding("xotically").await.expect("reads").iter().any(of_index) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), indexed).await.expect("the log is indexed");
    }

    /// Returns everything that is stored about a run, as text.
    async fn whole(&self, run: RunId) -> String {
        let whole = self.store().whole_run(run).await.expect("reads").expect("it is there");
        let WholeRun { state, steps, reviews, deliveries, mut rows } = whole;
        let mut text = format!("{state:?} {steps:?} {reviews:?} {deliveries:?}");
        while let Some(row) = rows.next().await.expect("reads") {
            let _ = write!(text, " {row:?}");
        }
        text
    }

    /// Returns the entries that the audit log finds.
    async fn found(&self, query: AuditQuery) -> Vec<Event> {
        let query = AuditQuery { limit: Some(200), ..query };
        let page = self.store().audit(&query, Form::Whole).await.expect("reads");
        page.items.into_iter().map(|entry| entry.event).collect()
    }
}

async fn nothing_names_whoever_was_erased_and_the_record_holds(mut world: World) {
    let untouched = world.finished("zoe", "zoe", "Mine stays as it is").await;
    world.left().await;
    let before = world.whole(untouched).await;
    let zoe = world.store().user("zoe").await.expect("reads").expect("she is there").user;
    let entries = world.record.check(None).await.entries;

    let erased = world.erase().await.expect("they are erased");
    assert!(erased.username.starts_with("erased-") && !erased.active && erased.email.is_none(), "{erased:?}");
    let erasure = world.store().erasure(NAME).await.expect("reads").expect("it is under way");
    assert!(!erasure.done && erasure.username == erased.username, "{erasure:?}");
    world.erase_all().await;

    assert_eq!(world.traces().await, [""; 0]);
    assert!(world.store().erasure(NAME).await.expect("reads").is_none(), "nothing knows the name");
    assert!(world.store().erasure(&erased.username).await.expect("reads").expect("it was done").done);
    for round in ["written", "sealed"] {
        let check = world.record.check(None).await;
        assert!(check.valid && check.erased > 10, "{round}: {check:?}");
        assert!(check.entries > entries, "{check:?}");
        world.record.seal_all().await;
        let whole = world.record.export(AuditQuery::default()).await;
        let file = verify_file(whole.as_bytes(), &world.record.trusted, None).expect("reads").check;
        assert!(file.valid && file.erased == check.erased, "{round}: {file:?}");
    }

    let theirs = world.found(AuditQuery { actor: Some(erased.username.to_string()), ..AuditQuery::default() }).await;
    assert!(theirs.iter().any(|event| event.kind == EntryKind::ReviewResolved), "what they did is still found");
    let told = world.found(AuditQuery { kind: Some(EntryKind::UserErased.to_string()), ..AuditQuery::default() }).await;
    assert_eq!(told.len(), 1);
    assert_eq!(world.whole(untouched).await, before, "others lose nothing");
    assert_eq!(world.store().user("zoe").await.expect("reads").expect("she is there").user, zoe);

    // Repeating the erasure changes nothing.
    let head = world.store().head().await.expect("reads");
    let erase = Operation::EraseUser(erased.username.clone());
    world.store().commit(Change::by_server(erase)).await.expect("it was done");
    assert_eq!(world.eraser().pass(u64::MAX).await.expect("erases"), Reached::End);
    assert_eq!(world.store().head().await.expect("reads"), head);
}

async fn whoever_had_their_account_by_mistake_keeps_their_name(mut world: World) {
    let account = ProviderAccount { issuer: "https://id.example".to_owned(), subject: "x-stasia-7".to_owned() };
    let link = |account| Operation::LinkAccount { username: "zoe".parse().expect("a name"), account };
    let refused =
        RefusedSignIn { account: account.clone(), username: None, trouble: Trouble::Inactive, is_recorded: true };
    for operation in [link(Some(account)), Operation::RefuseSignIn(Box::new(refused)), link(None)] {
        world.store().commit(Change::by_server(operation)).await.expect("it is recorded");
    }
    // Now it is linked to the right person.
    world.left().await;
    let erased = world.erase().await.expect("they are erased");
    world.erase_all().await;
    let names = async |kind: EntryKind| {
        let entries = world.found(AuditQuery { kind: Some(kind.to_string()), ..AuditQuery::default() }).await;
        let with_account =
            entries.iter().filter(|event| event.data.get("single_sign_on").is_some_and(serde_json::Value::is_object));
        let names = with_account.map(|event| event.data["username"].as_str().expect("a name").to_owned());
        names.collect::<BTreeSet<_>>()
    };
    let both = BTreeSet::from([erased.username.to_string(), "zoe".to_owned()]);
    assert_eq!(names(EntryKind::LoginFailed).await, both);
    assert_eq!(names(EntryKind::UserUpdated).await, both);
    assert_eq!(world.traces().await, [""; 0]);
    assert!(world.record.check(None).await.valid);
}

async fn an_account_that_an_older_server_has_not_looked_for_is_erased(mut world: World) {
    world.left().await;
    let erased = world.erase().await.expect("they are erased");
    // The older server removes the name everywhere, and then forgets it.
    world.record.behind_its_back("UPDATE erased_users SET provider_account = NULL").await;
    world.erase_all().await;
    let left = "UPDATE erased_users SET provider_account = 'https://id.example x-stasia-7'";
    world.record.behind_its_back(left).await;
    assert!(!world.store().erasure(&erased.username).await.expect("reads").expect("it is known").done);
    world.erase_all().await;
    assert_eq!(world.traces().await, [""; 0]);
    assert!(world.store().erasure(&erased.username).await.expect("reads").expect("it was done").done);
    assert!(world.record.check(None).await.valid);
}

async fn what_was_erased_and_changed_afterwards_is_found(mut world: World) {
    world.left().await;
    world.erase().await.expect("they are erased");
    world.erase_all().await;
    world.record.seal_all().await;
    let of_comment = "seq = (SELECT MIN(seq) FROM log WHERE body LIKE '%[erased]%')";
    let change =
        |from: &str, to: &str| format!("UPDATE log SET body = replace(body, '{from}', '{to}') WHERE {of_comment}");
    world.record.behind_its_back(&change("[erased]", "[ERASED]")).await;
    assert_eq!(world.record.first_bad(None).await.0, Tampering::Changed);
    let back = change("[ERASED]", "[erased]").replace("'%[erased]%'", "'%[ERASED]%'");
    world.record.behind_its_back(&back).await;
    assert!(world.record.check(None).await.valid);
    // Without the row that leads to its explanation, the entry counts as changed.
    world.record.behind_its_back("DELETE FROM erasures WHERE number = 1").await;
    assert_eq!(world.record.first_bad(None).await.0, Tampering::Changed);
}

async fn an_erasure_that_is_stopped_between_its_steps_goes_on(mut world: World) {
    world.left().await;
    world.erase().await.expect("they are erased");
    let mut steps = 0;
    // Each time as a server that was killed and restarted.
    loop {
        let reached = world.eraser().pass(1).await.expect("erases");
        let before = steps;
        steps = Explained::read(world.store()).await.expect("reads").last_erasure();
        assert!(steps <= before + 1, "{reached:?} after {steps} steps, and {before} before");
        let check = world.record.check(None).await;
        assert!(check.valid, "after step {steps}: {check:?}");
        match reached {
            Reached::End => break,
            // If the log was indexed meanwhile, the pass has left a step to the next one.
            Reached::Stopped | Reached::Soon => {}
            reached => panic!("{reached:?}"),
        }
    }
    assert_eq!(steps, 3, "the entries of no run, and two runs");
    assert_eq!(world.traces().await, [""; 0]);
}

async fn what_was_changed_before_is_never_erased(mut world: World) {
    world.left().await;
    world.erase().await.expect("they are erased");
    let lie =
        "UPDATE log SET body = replace(body, 'Quixotically', 'Quixotically not') WHERE body LIKE '%Quixotically%'";
    world.record.behind_its_back(lie).await;
    assert_eq!(world.eraser().pass(u64::MAX).await.expect("looks"), Reached::Later);
    assert!(world.record.database.holding("Quixotically not").await.expect("reads").contains(&"log".to_owned()));
    assert_eq!(world.record.first_bad(None).await.0, Tampering::Changed);
}

async fn a_name_in_data_of_users_is_treated_alike_wherever_the_data_stand(mut world: World) {
    let run = world.decided_form().await;
    world.deactivate().await;
    world.erase().await.expect("they are erased");
    world.record.seal_all().await;
    world.erase_all().await;
    let whole = world.whole(run).await;
    let owners = |name: &str| whole.matches(&format!("\"owner\": String(\"{name}\")")).count();
    assert!(owners(NAME) >= 6, "the input, and the metadata of the decision: {}", owners(NAME));
    assert_eq!(whole.matches("\"owner\": String(").count(), owners(NAME));
    assert!(!whole.contains(&format!("by: \"{NAME}\"")), "who decided is named by the pseudonym");
}

async fn what_was_erased_is_still_proved_once_it_is_archived(mut world: World) {
    world.left().await;
    let erased = world.erase().await.expect("they are erased");
    world.erase_all().await;
    world.record.seal_all().await;
    let now = world.record.clock.now();
    let stale = RunsArchived {
        archive: 1,
        file: "2026-08-25.jsonl.gz".to_owned(),
        position: 0,
        bytes: 0,
        digest: String::new(),
        runs: 0,
        first_ended_at: now,
        last_ended_at: now,
        entries: EntryNumbers::default(),
    };
    let stale = Operation::ArchiveRuns(Box::new(NewArchive { entry: stale, runs: Vec::new(), erasures: 0 }));
    let refused = world.store().commit(Change::by_server(stale)).await;
    assert!(matches!(refused, Err(CommitError::Conflict(_))), "what was read before still names them: {refused:?}");
    let path = world.record.folder.path().join("archive");
    let retention = Retention { runs: Some(Duration::from_hours(1)), folder: path.clone() };
    let (store, trusted) = (world.store().clone(), world.record.trusted.clone());
    let mut archiver = Archiver::new(store.clone(), trusted.clone(), world.record.clock.clone(), retention);
    world.record.clock.advance(Duration::from_hours(48));
    let archiving = async {
        let mut archived = 0;
        while archived < 2 {
            // Responses under idempotency keys are removed some commits later.
            world.record.people(&[&format!("late{}", world.record.check(None).await.entries)]).await;
            archived += archiver.pass().await.expect("archives");
        }
    };
    tokio::time::timeout(Duration::from_secs(20), archiving).await.expect("both runs are archived");
    let check = verify(&store, &trusted, &[], &Folder::at(path)).await.expect("reads");
    assert!(check.valid && check.archived > 0 && check.erased > 0, "{check:?}");
    let erasure = store.erasure(&erased.username).await.expect("reads").expect("it was done");
    assert_eq!((erasure.done, erasure.archived_runs), (true, 1));
}
