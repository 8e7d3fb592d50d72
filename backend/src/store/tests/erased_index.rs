//! What was erased does not get into the index of the log, although it was read or gathered before.

use std::time::Duration;

use shared::api::UserPatch;
use shared::decision::Via;
use shared::entry_numbers::EntryNumbers;
use shared::id::{RunId, Username};
use shared::log::EntriesErased;

use super::log_index::blocks;
use super::support::{World, decide, decided, on_both, on_review, person};
use crate::engine::Input;
use crate::store::db::Sql;
use crate::store::log_index::{BLOCK, IndexProgress, Indexed};
use crate::store::{Change, NewErasure, Operation, Prepared, UserChange};

on_both! {
    what_is_erased_while_it_is_in_memory_does_not_get_into_the_index,
}

/// Lets Tom say something about a review and decide it. Returns its run, which is then over.
async fn said(world: &World) -> RunId {
    let review = world.launched_review("hello").await;
    let text = "Quixotically put".to_owned();
    let comment = Input::Comment { review: review.id, by: person("tom"), via: Via::Human, text };
    world.store.commit(on_review(review.id, "tom", comment)).await.expect("said");
    decided(world.store.commit(decide(&review, "tom", "yes")).await).expect("decided");
    review.run_id.expect("of a run")
}

/// Erases Tom's account. Returns the step that erases what he said in this run.
async fn erasure(world: &World, run: RunId) -> Operation {
    let username: Username = "tom".parse().expect("a name");
    let patch = UserPatch { active: Some(false), ..UserPatch::default() };
    let change = UserChange { username: username.clone(), patch, password_hash: None };
    for operation in [Operation::UpdateUser(Box::new(change)), Operation::EraseUser(username)] {
        world.store.commit(Change::by_server(operation)).await.expect("the account is erased");
    }
    let erasing = world.store.being_erased().await.expect("reads").remove(0);
    let Prepared::Step(step) = world.store.erase_of_run(&erasing, run).await.expect("reads") else { panic!("no step") };
    let (username, entries) = (erasing.pseudonym, EntryNumbers::default());
    let told = EntriesErased { erasure: 1, username, entries, hashes: String::new() };
    Operation::EraseEntries(Box::new(NewErasure { erased_entries: vec![told], step: *step }))
}

async fn fill_a_block(world: &World) {
    for _ in 0..BLOCK {
        world.launch("to fill the block").await;
    }
}

async fn what_is_erased_while_it_is_in_memory_does_not_get_into_the_index(world: World) {
    let mut progress = IndexProgress::default();
    fill_a_block(&world).await;
    world.store.index_log(&mut progress, 16 * BLOCK).await.expect("indexes");
    let run = said(&world).await;
    progress.gather(&world.store.inner.recent);
    let erase = erasure(&world, run).await;
    world.store.commit(Change::by_server(erase)).await.expect("erases");
    fill_a_block(&world).await;
    let before = blocks(&world).await;
    while world.store.index_log(&mut progress, 16 * BLOCK).await.expect("indexes") != Indexed::All {}
    assert!(blocks(&world).await > before);
    assert_eq!(world.database.holding("uixotically").await.expect("reads"), [""; 0]);
}

/// Whether a statement with this text waits for a lock.
async fn waits_for_a_lock(world: &World, statement: &str) -> bool {
    let sql =
        Sql::new("SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' ");
    let sql = sql.push("AND strpos(query, ").bind(statement).push(") > 0");
    let mut conn = world.store.inner.db.read().await.expect("reads");
    conn.fetch_one(sql).await.expect("reads").is_some()
}

/// In SQLite, an erasure and the indexer cannot write at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_erased_while_it_is_indexed_does_not_stay_in_the_index() {
    let Some(world) = World::postgres().await else { return };
    let run = said(&world).await;
    fill_a_block(&world).await;
    let erase = erasure(&world, run).await;

    // The erasure has begun, and cannot write yet.
    let mut held = world.store.inner.db.write_on_this_thread().await.expect("writes");
    let hold = Sql::new("SELECT 1 FROM runs WHERE id = ").bind(run.0).push(" FOR NO KEY UPDATE");
    held.fetch(hold).await.expect("locks");
    let store = world.store.clone();
    let erasing = tokio::spawn(async move { store.commit(Change::by_server(erase)).await });
    let until = async |done: &dyn Fn() -> bool, statement: &str| {
        let waiting = async {
            while !done() && !waits_for_a_lock(&world, statement).await {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("in time");
    };
    until(&|| false, "UPDATE runs").await;
    let other = world.another().await;
    let store = other.clone();
    let indexing = tokio::spawn(async move { store.index_log(&mut IndexProgress::default(), 16 * BLOCK).await });
    until(&|| indexing.is_finished(), "log_index").await;
    held.rollback().await.expect("unlocks");
    erasing.await.expect("ends").expect("erases");
    indexing.await.expect("ends").expect("indexes");
    while world.store.index_log(&mut IndexProgress::default(), 16 * BLOCK).await.expect("indexes") != Indexed::All {}
    assert!(blocks(&world).await > 0);
    assert_eq!(world.database.holding("uixotically").await.expect("reads"), [""; 0]);
    other.close().await;
}
