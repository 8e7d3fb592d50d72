//! The audit log stays valid for archived entries, and reports which were changed.

use std::time::Duration;

use futures::TryStreamExt as _;
use shared::api::AuditQuery;
use shared::id::RunId;
use shared::log::EntryKind;
use shared::seal::{FirstBad, Tampering};

use super::support::World;
use crate::archive::look_up;
use crate::audit::{ExportError, verify_file};
use crate::store::tests::support::on_both;

on_both! {
    what_is_old_stands_in_a_file_and_the_record_still_holds,
    an_export_is_verified_by_itself_after_archiving,
    an_export_during_which_runs_are_archived_is_aborted,
    a_file_that_was_changed_or_is_gone_is_named,
    a_run_that_somebody_deleted_is_not_taken_for_archived,
    what_no_entry_explains_was_removed,
    what_no_row_leads_to_was_removed,
    whoever_stands_where_something_was_archived_reads_a_snapshot_again,
}

async fn what_is_old_stands_in_a_file_and_the_record_still_holds(mut world: World) {
    let waiting = world.launch("ask", "may it?").await;
    let old = world.finished(6).await;
    world.grow_old().await;
    let young = world.launch("note", "young").await;
    world.record.seal_all().await;
    let before = world.record.check(None).await;

    assert_eq!(world.archiver().pass().await.expect("archives"), 6);

    let mut in_file = 0;
    for run in &old {
        assert!(world.store().find_run(*run).await.expect("reads").is_none());
        let found = look_up(world.store(), &world.folder(), *run).await.expect("reads").expect("it is archived");
        assert_eq!((found.archived.id, found.run.summary.id), (*run, *run));
        assert_eq!(found.run.state["note"], found.run.input["text"]);
        in_file += found.log.len() as u64;
        let kinds: Vec<EntryKind> = found.log.iter().map(|event| event.kind).collect();
        assert_eq!((kinds.first(), kinds.last()), (Some(&EntryKind::RunStarted), Some(&EntryKind::RunCompleted)));
    }
    for run in [waiting, young] {
        assert!(world.store().find_run(run).await.expect("reads").is_some());
        assert!(look_up(world.store(), &world.folder(), run).await.expect("reads").is_none());
    }
    assert_eq!((world.rows("runs").await, world.rows("reviews").await, world.rows("blobs").await), (2, 1, 0));

    let check = world.record.check(None).await;
    assert!(check.valid, "{check:?}");
    assert_eq!(check.entries, before.entries + 1, "that they are archived is on the record");
    assert_eq!(check.archived, in_file, "{check:?}");
    assert_eq!(world.verify().await, check);
    world.record.seal_all().await;
    assert!(world.verify().await.valid);
    assert_eq!(world.archiver().pass().await.expect("archives"), 0, "nothing is archived twice");
}

async fn an_export_is_verified_by_itself_after_archiving(mut world: World) {
    world.launch("ask", "may it?").await;
    world.finished(4).await;
    world.grow_old().await;
    world.archiver().pass().await.expect("archives");
    world.record.seal_all().await;
    let whole = world.record.export(AuditQuery::default()).await;
    let archived = world.record.check(None).await.archived;
    let found = verify_file(whole.as_bytes(), &world.record.trusted, None).expect("reads").check;
    assert!(found.valid && found.archived == archived && archived > 0, "{found:?}");
    // Without the record of the archive, its entries are missing.
    let cut: String = whole.split_inclusive('\n').filter(|line| !line.contains("runs.archived")).collect();
    let found = verify_file(cut.as_bytes(), &world.record.trusted, None).expect("reads").check;
    assert!(!found.valid, "{found:?}");
}

async fn an_export_during_which_runs_are_archived_is_aborted(mut world: World) {
    world.finished(4).await;
    world.grow_old().await;
    world.record.seal_all().await;
    let export = world.record.begin_export(AuditQuery::default()).await.expect("it begins");
    let mut pages = Box::pin(export.pages());
    assert!(pages.try_next().await.expect("reads").is_some());
    world.archiver().pass().await.expect("archives");
    let next = pages.try_next().await;
    assert!(matches!(next, Err(ExportError::Unexplained)), "not only at the end: {next:?}");
    let unsealed = world.record.begin_export(AuditQuery::default()).await;
    assert!(matches!(unsealed, Err(ExportError::Unexplained)), "no seal holds the entry about the archive yet");
    world.record.clock.advance(Duration::from_mins(2));
    let stopped = world.record.begin_export(AuditQuery::default()).await;
    assert!(matches!(stopped, Err(ExportError::Unsealed(waited)) if waited >= Duration::from_mins(2)), "told apart");
    let part = AuditQuery { kind: Some("run.completed".to_owned()), ..AuditQuery::default() };
    assert!(world.record.begin_export(part).await.is_ok(), "a part is exported nevertheless");
    world.record.seal_all().await;
    let whole = world.record.export(AuditQuery::default()).await;
    assert!(verify_file(whole.as_bytes(), &world.record.trusted, None).expect("reads").check.valid);
}

async fn a_file_that_was_changed_or_is_gone_is_named(mut world: World) {
    world.finished(3).await;
    world.grow_old().await;
    world.archiver().pass().await.expect("archives");
    world.record.seal_all().await;
    let file = world.file();
    let whole = std::fs::read(&file).expect("reads");
    for at in [0, whole.len() / 2, whole.len() - 1] {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        std::fs::write(&file, &changed).expect("writes");
        let bad = world.verify().await.first_bad.expect("it is named");
        assert_eq!(bad.what, Tampering::Archive, "byte {at}: {bad:?}");
        assert!(bad.message.contains("archive 1") && bad.message.contains(".jsonl.gz"), "{bad:?}");
        assert!(world.record.check(None).await.valid, "the database alone still holds");
    }
    std::fs::remove_file(&file).expect("removes");
    assert_eq!(world.verify().await.first_bad.expect("it is named").what, Tampering::Archive);
    std::fs::write(&file, &whole).expect("writes");
    assert!(world.verify().await.valid);
}

async fn a_run_that_somebody_deleted_is_not_taken_for_archived(mut world: World) {
    let young = world.archived_and_young().await;
    let of_run = if world.record.is_postgres() { format!("'{young}'") } else { format!("x'{}'", young.0.simple()) };
    let bad = world.removed(&format!("DELETE FROM log WHERE run_id = {of_run}")).await;
    // A forged row in the table of archived runs explains nothing.
    let archived = format!("INSERT INTO archived_runs VALUES ({of_run}, 'note', 'dev', 1, 1, 1)");
    assert_eq!(world.removed(&archived).await, bad);
}

async fn what_no_entry_explains_was_removed(mut world: World) {
    world.archived_and_young().await;
    world.removed("DELETE FROM log WHERE body LIKE '%runs.archived%'").await;
}

async fn what_no_row_leads_to_was_removed(mut world: World) {
    world.archived_and_young().await;
    world.removed("DELETE FROM archives").await;
}

impl World {
    /// Archives some runs, and leaves one that is too young. All of it is sealed.
    async fn archived_and_young(&mut self) -> RunId {
        self.finished(3).await;
        self.grow_old().await;
        self.archiver().pass().await.expect("archives");
        let young = self.launch("note", "young").await;
        self.record.seal_all().await;
        young
    }

    /// Returns the first finding after a statement was executed in the database.
    async fn removed(&self, sql: &str) -> FirstBad {
        self.record.behind_its_back(sql).await;
        let (what, bad) = self.record.first_bad(None).await;
        assert_eq!(what, Tampering::Removed, "{sql}: {bad:?}");
        bad
    }
}

async fn whoever_stands_where_something_was_archived_reads_a_snapshot_again(mut world: World) {
    world.finished(1).await;
    let archived = world.store().head().await.expect("reads");
    world.finished(2).await;
    world.grow_old().await;
    world.record.people(&["zoe"]).await;
    let late = world.store().head().await.expect("reads");
    world.archiver().pass().await.expect("archives");
    let another = world.record.another_store().await;
    assert!(another.log(&archived, None, 10).await.expect("reads").is_none(), "entries behind it are gone");
    assert!(another.log(&late, None, 10).await.expect("reads").is_some());
    // Reading from the first entry on, page by page, yields everything that is left.
    let (mut place, mut read) = (another.origin(), 0);
    loop {
        let page = another.log(&place, None, 1).await.expect("reads").expect("a page");
        read += page.entries.len() as u64;
        assert!(page.entries.iter().all(|entry| entry.event.run_id.is_none()), "what is left is of no run");
        place = page.cursor;
        if !page.more {
            break;
        }
    }
    let check = world.record.check(None).await;
    assert_eq!(read, check.entries - check.archived);
    another.close().await;
}
