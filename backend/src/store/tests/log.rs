//! Reading the log while others write.

use std::collections::BTreeMap;
use std::time::Duration;

use shared::api::AuditQuery;
use shared::id::RunId;
use shared::log::{Cursor, Entry, EntryKind};
use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::support::{World, decide, decided, launch, on_both, person};
use crate::store::audit_scan::{newest, rows};
use crate::store::cursor::LogPlace;
use crate::store::db::Sql;
use crate::store::log::{RowsOf, page_of};
use crate::store::seals::between;
use crate::store::{CommitFollower, Committed, Error, Form, Resume, Store, follow, open};

on_both! {
    a_reader_misses_nothing_while_many_write,
    a_foreign_or_future_place_is_none,
    a_page_may_end_within_a_transaction,
    the_audit_is_the_log_backwards,
    a_snapshot_and_its_place_are_of_one_moment,
    another_process_is_woken,
    what_is_read_at_once_is_what_is_stored,
    how_far_readers_are_behind_is_known,
}

async fn read_all(store: &Store, mut after: Cursor, limit: u32) -> Vec<Entry> {
    let mut entries = Vec::new();
    loop {
        let page = store.log(&after, None, limit).await.expect("reads").expect("of this log");
        entries.extend(page.entries);
        after = page.cursor;
        if !page.more {
            return entries;
        }
    }
}

async fn a_reader_misses_nothing_while_many_write(world: World) {
    const WRITERS: usize = 16;
    const RUNS: usize = 12;
    let start = world.store.head().await.expect("reads");
    let others = [world.another().await, world.store.clone()];
    let mut writing = tokio::task::JoinSet::new();
    for n in 0..WRITERS {
        let store = others[n % 2].clone();
        writing.spawn(async move {
            let mut runs = Vec::new();
            for _ in 0..RUNS {
                let Ok(Committed::Run { run }) = store.commit(launch("hello")).await else { panic!("launches") };
                let review = store.run_reviews(run.summary.id).await.expect("reads").pop().expect("asks");
                decided(store.commit(decide(&review, "ana", "yes")).await).expect("decides");
                runs.push(run.summary.id);
            }
            runs
        });
    }
    let store = world.store.clone();
    let done = CancellationToken::new();
    let stop = done.clone();
    let from = start.clone();
    let reader = tokio::spawn(async move {
        let (mut after, mut entries) = (from, Vec::new());
        loop {
            let last = stop.is_cancelled();
            let page = store.log(&after, None, 7).await.expect("reads").expect("of this log");
            entries.extend(page.entries);
            after = page.cursor;
            if last && !page.more {
                return entries;
            }
        }
    });
    let runs: Vec<RunId> = writing.join_all().await.into_iter().flatten().collect();
    let expected = read_all(&world.store, start.clone(), 1000).await;
    assert!(expected.len() >= runs.len() * 4);
    done.cancel();
    let read = reader.await.expect("the reader ends");
    assert_eq!(read.len(), expected.len());
    assert!(read == expected, "what was read live is what stands there afterwards, in the same order");
    let mut by_run: BTreeMap<RunId, Vec<EntryKind>> = BTreeMap::new();
    for entry in &read {
        if let Some(run) = entry.event.run_id {
            by_run.entry(run).or_default().push(entry.event.kind);
        }
    }
    assert_eq!(by_run.len(), WRITERS * RUNS);
    for kinds in by_run.values() {
        assert_eq!(kinds.first(), Some(&EntryKind::RunStarted), "{kinds:?}");
        assert_eq!(kinds.last(), Some(&EntryKind::RunCompleted), "{kinds:?}");
    }
    others[0].close().await;
}

async fn a_foreign_or_future_place_is_none(world: World) {
    world.launch("hello").await;
    let head = world.store.head().await.expect("reads");
    let future = head.0.rsplitn(4, '.').collect::<Vec<_>>();
    let future = format!("{}.0.7fffffff.0", future.last().expect("a generation"));
    for place in ["", "garbage", "s00.0.1.0", future.as_str()] {
        let page = world.store.log(&Cursor(place.to_owned()), None, 10).await.expect("reads");
        assert!(page.is_none(), "{place}");
    }
    let page = world.store.log(&head, None, 10).await.expect("reads").expect("of this log");
    assert!(!page.more);
}

async fn a_page_may_end_within_a_transaction(world: World) {
    let run = world.launch("hello").await.summary.id;
    let origin = world.store.origin();
    let all = read_all(&world.store, origin.clone(), 1000).await;
    let one_by_one = read_all(&world.store, origin.clone(), 1).await;
    assert_eq!(one_by_one, all);
    for (index, entry) in all.iter().enumerate() {
        assert_eq!(read_all(&world.store, entry.cursor.clone(), 3).await, all[index + 1..]);
    }
    let of_run = world.store.log(&origin, Some(run), 100).await.expect("reads").expect("of this log").entries;
    assert!(of_run.len() >= 3);
    assert!(of_run.iter().all(|entry| entry.event.run_id == Some(run)));
    let beside = world.store.log_beside_runs(&origin, 100).await.expect("reads").expect("of this log");
    let apart = all.iter().filter(|entry| entry.event.run_id.is_none()).cloned();
    assert_eq!(beside.entries, apart.collect::<Vec<_>>());
    assert!(!beside.entries.is_empty() && read_all(&world.store, beside.cursor, 100).await.is_empty());
}

async fn the_audit_is_the_log_backwards(world: World) {
    let review = world.launched_review("hello").await;
    decided(world.store.commit(decide(&review, "ana", "yes")).await).expect("decides");
    let origin = world.store.origin();
    let mut all = read_all(&world.store, origin.clone(), 1000).await;
    all.reverse();
    let mut query = AuditQuery { limit: Some(2), ..AuditQuery::default() };
    let mut found = Vec::new();
    loop {
        let page = world.store.audit(&query, Form::Whole).await.expect("reads");
        found.extend(page.items);
        match page.next_cursor {
            Some(cursor) => query.cursor = Some(cursor),
            None => break,
        }
    }
    assert_eq!(found, all);
    let by_ana = AuditQuery { actor: Some("ana".to_owned()), ..AuditQuery::default() };
    let by_ana = world.store.audit(&by_ana, Form::Whole).await.expect("reads").items;
    assert!(by_ana.iter().any(|entry| entry.event.kind == EntryKind::ReviewResolved));
    let of_review = AuditQuery { review: Some(review.id.to_string()), ..AuditQuery::default() };
    assert_eq!(world.store.audit(&of_review, Form::Whole).await.expect("reads").items.len(), 2);
}

async fn a_snapshot_and_its_place_are_of_one_moment(world: World) {
    let store = world.store.clone();
    let writing = tokio::spawn(async move {
        for _ in 0..30 {
            store.commit(launch("hello")).await.expect("launches");
        }
    });
    let viewer = shared::access::Principal { roles: ["reviewer".to_owned()].into(), ..person("ana") };
    while !writing.is_finished() {
        let pending = world.store.pending(&viewer, 200, usize::MAX).await.expect("reads");
        assert_eq!(pending.tally.numbers(&viewer).0, pending.reviews.len() as u64);
        let later =
            world.store.log(&pending.tally.cursor, None, 1000).await.expect("reads").expect("of this log").entries;
        let requested = later.iter().filter(|entry| entry.event.kind == EntryKind::ReviewRequested);
        let mut ids: Vec<_> = requested.filter_map(|entry| entry.event.review_id).collect();
        ids.extend(pending.reviews.iter().map(|review| review.id));
        ids.sort();
        ids.dedup();
        let now = world.store.pending(&viewer, 200, usize::MAX).await.expect("reads");
        assert!(ids.len() as u64 <= now.tally.numbers(&viewer).0 && ids.len() >= pending.reviews.len());
        assert!(pending.reviews.iter().all(|review| ids.contains(&review.id)));
    }
    writing.await.expect("all are launched");
}

async fn another_process_is_woken(world: World) {
    let other = world.another().await;
    let mut commits = other.commits();
    commits.mark_unchanged();
    // Until it listens and has polled once, it does not notice commits of others.
    let woken = async {
        while !commits.has_changed().expect("it lives") {
            world.launch("hello").await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), woken).await.expect("it is woken");
    other.close().await;
}

/// Followers of the log get the rows that the writer has in memory.
async fn what_is_read_at_once_is_what_is_stored(world: World) {
    let start = world.store.head().await.expect("reads");
    let (mut place, mut told) = (start.clone(), Vec::new());
    let mut follow = async || {
        let after = LogPlace::of(&place.0, &world.store.inner.log).expect("a place");
        let in_memory = world.store.inner.recent.after(after, true).is_some_and(|(_, rows)| !rows.is_empty());
        let page = world.store.log(&place, None, 1000).await.expect("reads").expect("of this log");
        told.extend(page.entries);
        place = page.cursor;
        in_memory
    };
    // The poll for other processes empties the memory now and then.
    let (mut of_runs, mut of_users, mut rounds) = (false, false, 0);
    while !(of_runs && of_users) || rounds < 3 {
        let review = world.launched_review("hello").await;
        of_runs |= follow().await;
        decided(world.store.commit(decide(&review, "ana", "yes")).await).expect("decides");
        world.add_user(&format!("eva{rounds}"), &["reviewer"]).await;
        of_users |= follow().await;
        rounds += 1;
    }
    let stored = read_all(&world.another().await, start, 1000).await;
    assert_eq!(told, stored);
}

async fn how_far_readers_are_behind_is_known(world: World) {
    let start = world.store.head().await.expect("reads");
    world.store.has_read("live", &start);
    assert_eq!(world.store.lag().await.expect("reads")["live"], Duration::ZERO);
    world.launch("hello").await;
    world.clock.advance(Duration::from_secs(40));
    world.launch("hello").await;
    let lag = world.store.lag().await.expect("reads");
    assert_eq!(lag["live"], Duration::from_secs(40), "of the oldest that was not read");
    assert!(lag["seals"] >= lag["live"], "nothing is sealed, and that is what is said");
    world.store.has_read("live", &world.store.head().await.expect("reads"));
    assert_eq!(world.store.lag().await.expect("reads")["live"], Duration::ZERO);
}

/// A transaction that has written to the log keeps others from writing to it until it ends, and their numbers come
/// after its own.
#[tokio::test]
async fn postgres_gives_numbers_in_the_order_of_commits() {
    let Some(world) = World::postgres().await else { return };
    let db = &world.store.inner.db;
    let row = || {
        Sql::new("INSERT INTO log (commit_id, at, body) VALUES (gen_random_uuid(), 0, '{\"events\":[]}') RETURNING seq")
    };
    let start = world.store.head().await.expect("reads");
    let mut first = db.write_on_this_thread().await.expect("begins");
    let number = first.fetch_one(row()).await.expect("inserts").expect("a row").int(0).expect("a number");
    let store = world.store.clone();
    let second = tokio::spawn(async move { store.commit(launch("hello")).await });
    let waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted \
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    while db.read().await.expect("reads").fetch_one(Sql::new(waiting)).await.expect("reads").is_none() {
        assert!(!second.is_finished(), "it does not wait");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(read_all(&world.store, start.clone(), 100).await.is_empty());
    first.commit().await.expect("commits");
    second.await.expect("ends").expect("launches");
    let rows = Sql::new("SELECT MIN(seq) FROM log WHERE seq > ").bind(number);
    let next = db.read().await.expect("reads").fetch_one(rows).await.expect("reads").expect("a row");
    assert_eq!(next.int(0).expect("a number"), number + 1, "it drew its number when its turn had come");
}

/// Servers that write at the same time together use as many writers as one server.
#[tokio::test]
async fn postgres_servers_share_the_writers() {
    let Some(world) = World::postgres().await else { return };
    let other = world.another().await;
    let working = |store: &Store| store.inner.queue.share().working();
    assert_eq!((working(&world.store), working(&other)), (open::WRITERS, open::WRITERS));
    for _ in 0..20 {
        world.store.commit(launch("hello")).await.expect("launches");
        other.commit(launch("hello")).await.expect("launches");
        other.commit(launch("hello")).await.expect("launches");
    }
    assert_eq!((working(&world.store), working(&other)), (1, 2));
    for _ in 0..60 {
        other.commit(launch("hello")).await.expect("launches");
    }
    assert_eq!(working(&other), open::WRITERS, "nobody else writes any more");
    other.close().await;
}

/// A follower that reports how far it has read.
struct Reader {
    store: Store,
    read: watch::Sender<Cursor>,
}

impl CommitFollower for Reader {
    type Error = Error;
    const TROUBLE: &'static str = "the log could not be read";

    async fn advance(&mut self) -> Result<Resume, Error> {
        let place = self.read.borrow().clone();
        let page = self.store.log(&place, None, 1000).await?.expect("of this log");
        self.read.send_replace(page.cursor);
        Ok(Resume::if_more(page.more))
    }
}

/// Notices are sent and followed at a limited rate, and the last commit of a burst is read, too.
#[tokio::test]
async fn postgres_commits_in_a_burst_reach_another_server() {
    let Some(world) = World::postgres().await else { return };
    let other = world.another().await;
    let read = watch::Sender::new(other.head().await.expect("reads"));
    let mut reached = read.subscribe();
    let reader = Reader { store: other.clone(), read };
    let following = tokio::spawn(follow(reader, other.commits(), CancellationToken::new()));
    for _ in 0..100 {
        world.store.commit(launch("hello")).await.expect("launches");
    }
    let head = world.store.head().await.expect("reads");
    let all_read = reached.wait_for(|read| *read == head);
    tokio::time::timeout(Duration::from_secs(20), all_read).await.expect("in time").expect("it reads");
    following.abort();
    other.close().await;
}

/// Otherwise a server that is frozen in the middle of a commit would block all writes.
#[tokio::test]
async fn postgres_ends_whoever_goes_silent_while_holding_the_log() {
    let Some(world) = World::postgres().await else { return };
    let start = world.store.head().await.expect("reads");
    let mut silent = world.store.inner.db.write_on_this_thread().await.expect("begins");
    let row = Sql::new("INSERT INTO log (commit_id, at, body) VALUES (gen_random_uuid(), 0, '{\"events\":[]}')");
    silent.execute(row).await.expect("inserts");
    let run = tokio::time::timeout(Duration::from_secs(10), world.launch("hello")).await.expect("it is let in");
    let entries = read_all(&world.store, start, 100).await;
    assert!(!entries.is_empty() && entries.iter().all(|entry| entry.event.run_id == Some(run.summary.id)));
    silent.commit().await.expect_err("it was ended");
}

/// A transaction in another database delays nothing.
#[tokio::test]
async fn postgres_shows_at_once_what_is_committed() {
    let Some(world) = World::postgres().await else { return };
    // The query after the `?` may have the path of a socket.
    let (url, query) = world.database.url.split_once('?').unwrap_or((&world.database.url, ""));
    let (server, _) = url.rsplit_once('/').expect("a database");
    let mut open = PgConnection::connect(&format!("{server}/postgres?{query}")).await.expect("connects");
    open.execute("BEGIN; SELECT pg_current_xact_id()").await.expect("begins");
    let start = world.store.head().await.expect("reads");
    let run = world.launch("hello").await.summary.id;
    assert!(read_all(&world.another().await, start, 100).await.iter().any(|entry| entry.event.run_id == Some(run)));
}

/// Otherwise each page of a long log would sort all rows after it.
#[tokio::test]
async fn postgres_reads_a_page_in_the_order_of_an_index() {
    let Some(world) = World::postgres().await else { return };
    let inner = &world.store.inner;
    let place = LogPlace { seq: 7, seen: 0 };
    let run = RowsOf::OfRun(RunId(uuid::Uuid::nil()));
    let mut pages: Vec<Sql> =
        [RowsOf::All, run, RowsOf::OfNoRun].into_iter().map(|of| page_of(place, of, 100)).collect();
    pages.push(between(place, LogPlace { seq: 9, ..place }));
    pages.push(newest(rows(None, None), 7, 9));
    let mut conn = inner.db.snapshot().await.expect("begins");
    for setting in ["enable_seqscan", "enable_bitmapscan", "enable_sort"] {
        conn.execute(Sql::new("SET LOCAL ").push(setting).push(" = off")).await.expect("is set");
    }
    for page in pages {
        let plan = conn.fetch(page.around("EXPLAIN ")).await.expect("explains");
        let plan: Vec<String> = plan.iter().map(|row| row.text(0).expect("a line")).collect();
        let plan = plan.join("\n");
        assert!(plan.contains("Index Scan") && !plan.contains("Sort"), "{plan}");
    }
}
