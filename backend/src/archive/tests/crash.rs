//! Crashes at any point: each run is in the database or in the file, and at most once in the file.

use std::collections::BTreeMap;
use std::io::Write as _;

use shared::id::RunId;

use super::support::{World, launch};
use crate::archive::folder::Folder;
use crate::archive::piece::{self, ArchiveLine, Header, Writer};
use crate::store::tests::support::on_both;
use crate::store::{Change, CommitError, NewArchive, Operation, RunInArchive};

on_both! {
    what_a_crash_left_in_the_file_is_written_over,
    what_a_crash_left_in_the_database_is_removed_by_the_next,
    a_run_that_changes_meanwhile_stays,
    runs_start_and_end_while_others_are_archived,
}

impl World {
    /// Counts how often each run occurs in the file.
    fn in_file(&self) -> BTreeMap<RunId, usize> {
        let bytes = std::fs::read(self.file()).expect("reads");
        let (mut rest, mut runs) = (&bytes[..], BTreeMap::new());
        while !rest.is_empty() {
            let read = piece::read(rest, |line| {
                if let ArchiveLine::Run(run) = line {
                    *runs.entry(run.run).or_default() += 1;
                }
                Ok(true)
            });
            rest = &rest[read.expect("each archive is whole").expect("to its end")..];
        }
        runs
    }

    fn once(runs: &[RunId]) -> BTreeMap<RunId, usize> {
        runs.iter().map(|run| (*run, 1)).collect()
    }
}

async fn what_a_crash_left_in_the_file_is_written_over(mut world: World) {
    let first = world.finished(2).await;
    world.grow_old().await;
    world.archiver().pass().await.expect("archives");
    // The next runs have the same day as the first.
    let file = world.file();
    let name = file.file_name().expect("a name").to_string_lossy().into_owned();
    let known = std::fs::read(&file).expect("reads").len() as u64;
    let header = |log: &str| Header::new(log.to_owned(), 2, "2026-01-01".to_owned());
    let whole = |log: &str| Writer::new(&header(log), Vec::new()).expect("begins").finish().expect("ends");
    let log = world.store().log_id().to_owned();
    let ours = whole(&log);
    let append = |bytes: &[u8]| {
        let mut open = std::fs::OpenOptions::new().append(true).open(&file).expect("opens");
        open.write_all(bytes).expect("writes");
    };
    let write = |folder: &Folder| folder.append(&name, known, &header(&log), &mut &ours[..]);
    for left in [&ours[..], &ours[..ours.len() / 2], &ours[..1]] {
        append(left);
        write(&world.folder()).expect("it is written over");
        assert_eq!(std::fs::read(&file).expect("reads").len() as u64, known + ours.len() as u64);
        let open = std::fs::OpenOptions::new().write(true).open(&file).expect("opens");
        open.set_len(known).expect("cuts");
    }
    // Foreign data stay: archives of another database, and those that an older backup does not know.
    for foreign in [whole("another"), [&ours[..], &ours[..]].concat()] {
        append(&foreign);
        write(&world.folder()).expect_err("it is not written over");
        assert_eq!(std::fs::read(&file).expect("reads").len() as u64, known + foreign.len() as u64);
        let open = std::fs::OpenOptions::new().write(true).open(&file).expect("opens");
        open.set_len(known).expect("cuts");
    }
    write(&Folder::at(world.path())).expect("writes");
    std::fs::OpenOptions::new().write(true).open(&file).expect("opens").set_len(known - 1).expect("cuts");
    write(&world.folder()).expect_err("what the database knows of is missing");
    assert_eq!(first.len(), 2);
}

async fn what_a_crash_left_in_the_database_is_removed_by_the_next(mut world: World) {
    let runs = world.finished(3).await;
    world.grow_old().await;
    let lock = world.folder().lock().expect("a folder");
    let mut killed = world.archiver();
    let mut sources = killed.sources().await.expect("looks");
    for (day, found) in killed.find(&mut sources).await.expect("looks") {
        killed.archive(&day, &mut found.into()).await.expect("archives");
    }
    // The server is killed here: the file and its record exist, and of the database only the runs themselves were
    // removed.
    drop(lock);
    assert!(world.rows("blobs").await >= 1);
    assert!(world.verify().await.valid);
    for run in &runs {
        assert!(world.store().find_run(*run).await.expect("reads").is_none());
    }
    world.archiver().pass().await.expect("goes on");
    assert_eq!((world.rows("runs").await, world.rows("blobs").await), (0, 0));
    assert_eq!(world.in_file(), World::once(&runs));
    assert!(world.verify().await.valid);
}

async fn a_run_that_changes_meanwhile_stays(mut world: World) {
    let runs = world.finished(1).await;
    world.grow_old().await;
    let _lock = world.folder().lock().expect("a folder");
    let mut archiver = world.archiver();
    let mut sources = archiver.sources().await.expect("looks");
    let found = archiver.find(&mut sources).await.expect("looks").into_values().flatten().next().expect("a run");
    assert_eq!(found.id, runs[0]);
    let mut sources = archiver.sources().await.expect("looks");
    let (day, all) = archiver.find(&mut sources).await.expect("looks").pop_first().expect("a run");
    archiver.archive(&day, &mut all.into()).await.expect("archives");
    // Another server that read the same runs comes second.
    let told = world.store().archives(0, 1).await.expect("reads").remove(0);
    let entry = crate::audit::archive_entry(world.store(), &told).await.expect("reads").expect("it is told");
    let again = |archive, last_row| {
        let entry = shared::log::RunsArchived { archive, ..entry.clone() };
        let run = RunInArchive {
            id: found.id,
            flow: found.flow.clone(),
            requested_by: found.requested_by.clone(),
            ended_at: found.last_at,
            last_row,
        };
        Change::by_server(Operation::ArchiveRuns(Box::new(NewArchive { entry, runs: vec![run], erasures: 0 })))
    };
    for change in [again(1, found.last_row), again(2, found.last_row)] {
        let refused = world.store().commit(change).await.expect_err("it came second");
        assert!(matches!(refused, CommitError::Conflict(_)), "{refused}");
    }
    let young = world.launch("note", "young").await;
    let mut changed = again(2, 1);
    if let Operation::ArchiveRuns(archive) = &mut changed.operation {
        archive.runs[0].id = young;
    }
    let refused = world.store().commit(changed).await.expect_err("something has happened to it since");
    assert!(matches!(refused, CommitError::Conflict(_)), "{refused}");
    assert!(world.store().find_run(young).await.expect("reads").is_some());
}

async fn runs_start_and_end_while_others_are_archived(mut world: World) {
    let old = world.finished(40).await;
    world.grow_old().await;
    let store = world.store().clone();
    let working = tokio::spawn(async move {
        let mut runs = Vec::new();
        for n in 0..40 {
            runs.push(launch(&store, "note", &format!("new {n}"), None).await);
        }
        runs
    });
    // Of two servers on one folder, one archives.
    let (mut one, mut other) = (world.archiver(), world.archiver());
    let (one, other) = tokio::join!(one.pass(), other.pass());
    let archived = one.expect("archives") + other.expect("archives");
    let new = working.await.expect("works");
    assert_eq!(archived, 40);
    assert_eq!(world.in_file(), World::once(&old));
    for run in new {
        assert!(world.store().find_run(run).await.expect("reads").is_some());
    }
    assert!(world.verify().await.valid);
}
