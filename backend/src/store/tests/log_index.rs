//! The index of the log finds exactly what a reader of every entry finds, no matter how far it is behind.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use shared::api::AuditQuery;
use shared::decision::Via;
use shared::id::RunId;
use shared::log::{Cursor, Entry, Event, ReviewAct};
use shared::time::Timestamp;
use uuid::Uuid;

use super::support::{Dice, World, decide, decided, on_both, on_review, person};
use crate::engine::Input;
use crate::store::db::Sql;
use crate::store::log_index::{BLOCK, IndexProgress, Indexed, ReviewSearch, WordIndex};
use crate::store::words::Words;
use crate::store::{Form, Store};

on_both! {
    every_filter_finds_what_a_look_at_every_entry_finds,
    rows_that_were_gathered_from_memory_are_found,
    of_several_servers_one_indexes_each_block,
    a_server_that_dies_while_it_indexes_leaves_the_index_as_it_was,
    rows_that_are_gone_are_forgotten_and_the_rest_is_found,
    a_review_is_found_by_the_words_that_it_had_when_it_was_indexed,
}

const TEXTS: [&str; 6] =
    ["Wind over the ocean", "Refund order 4711 to Müller", "審査 please", "windmill", "ask 0198c2aa", "Ocean order"];

/// Makes runs, decisions, claims, comments and people, at times that sometimes go back.
async fn make_entries(world: &World, dice: &mut Dice, count: usize) {
    for _ in 0..count {
        match dice.below(8) {
            0 => world.clock.set_back(Duration::from_mins(90)),
            _ => world.clock.advance(Duration::from_secs(u64::try_from(dice.below(900)).expect("fits"))),
        }
        let text = *dice.of(&TEXTS);
        let review = world.launched_review(text).await;
        let who = *dice.of(&["ana", "tom"]);
        let via = Via::Human;
        match dice.below(5) {
            0 => {
                let claim = Input::Claim { review: review.id, by: person(who), via };
                world.store.commit(on_review(review.id, who, claim)).await.expect("claimed");
            }
            1 => {
                let text = (*dice.of(&TEXTS)).to_owned();
                let comment = Input::Comment { review: review.id, by: person(who), via, text };
                world.store.commit(on_review(review.id, who, comment)).await.expect("said");
            }
            2 | 3 => {
                let option = *dice.of(&["yes", "yes", "yes", "no"]);
                decided(world.store.commit(decide(&review, who, option)).await).expect("decided");
            }
            _ => {}
        }
    }
}

/// Returns the whole log, newest first.
async fn all(store: &Store) -> Vec<Entry> {
    let (mut entries, mut after) = (Vec::new(), store.origin());
    loop {
        let page = store.log(&after, None, 1000).await.expect("reads").expect("of this log");
        entries.extend(page.entries);
        after = page.cursor;
        if !page.more {
            entries.reverse();
            return entries;
        }
    }
}

fn query(dice: &mut Dice, entries: &[Entry]) -> AuditQuery {
    let mut query = AuditQuery::default();
    let texts = |all: &[&str], dice: &mut Dice| Some((*dice.of(all)).to_owned());
    let entry = dice.of(entries).clone();
    if dice.below(3) == 0 {
        let kinds = ["review.requested", "review.resolved", "review.updated", "run.failed", "flow.saved", "grant.made"];
        query.kind = texts(&kinds, dice);
    }
    if dice.below(3) == 0 {
        query.actor = texts(&["ana", "tom", "dev", "nobody"], dice);
    }
    if dice.below(4) == 0 {
        query.act = texts(&["decision", "claim", "comment,withdrawal", "timeout", "claim,comment,decision"], dice);
    }
    if dice.below(3) == 0 {
        let words =
            ["wind", "ocean ord", "4711", "審", "müll", "review resolved", "indmill", "nothing", "?", "refund tom"];
        query.q = texts(&words, dice);
        if dice.below(6) == 0 {
            query.q = entry.event.run_id.map(|run| run.to_string());
        }
    }
    match dice.below(8) {
        0 => query.run = entry.event.run_id.map(|run| run.to_string()),
        1 => query.review = entry.event.review_id.map(|review| review.to_string()),
        _ => {}
    }
    if dice.below(3) == 0 {
        query.from = Some(dice.of(entries).event.at);
    }
    if dice.below(3) == 0 {
        query.to = Some(Timestamp(dice.of(entries).event.at.0 + 1));
    }
    query
}

/// The rule without an index.
fn fits(query: &AuditQuery, event: &Event) -> bool {
    let acts = |acts: &str| {
        let mut acts = acts.split(',').map(|act| act.parse::<ReviewAct>().expect("an act"));
        acts.any(|act| event.acts().has(act))
    };
    query.kind.as_ref().is_none_or(|kind| event.kind.as_str() == kind)
        && query.actor.as_ref().is_none_or(|actor| event.actor.as_deref() == Some(actor))
        && query.act.as_ref().is_none_or(|wanted| acts(wanted))
        && query.run.as_ref().is_none_or(|run| event.run_id.is_some_and(|of| of.to_string() == *run))
        && query.review.as_ref().is_none_or(|review| event.review_id.is_some_and(|of| of.to_string() == *review))
        && query.from.is_none_or(|from| event.at >= from)
        && query.to.is_none_or(|to| event.at < to)
        && query.q.as_ref().is_none_or(|q| has_words(event, q))
}

fn has_words(event: &Event, q: &str) -> bool {
    fn texts(value: &Value, into: &mut String) {
        match value {
            Value::String(text) if text.parse::<Timestamp>().is_ok() => {}
            Value::String(text) => into.extend([" ", text.as_str()]),
            Value::Number(number) => into.extend([" ", &number.to_string()]),
            Value::Array(all) => all.iter().for_each(|one| texts(one, into)),
            Value::Object(all) => all.values().for_each(|one| texts(one, into)),
            _ => {}
        }
    }
    let parts = |text: &str| -> BTreeSet<String> {
        let spaced = text.to_lowercase().replace('審', " 審 ").replace('査', " 査 ");
        // An id is one word; nothing else here has hyphens.
        let spaced = spaced.replace('-', "");
        spaced.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let mut text = event.kind.as_str().to_owned();
    for id in [event.run_id.map(|id| id.to_string()), event.review_id.map(|id| id.to_string())].into_iter().flatten() {
        text.extend([" ", id.as_str()]);
    }
    text.extend([" ", event.actor.as_deref().unwrap_or_default()]);
    event.data.values().for_each(|value| texts(value, &mut text));
    let (wanted, words) = (parts(q), parts(&text));
    !wanted.is_empty() && wanted.iter().all(|wanted| words.iter().any(|word| word.starts_with(wanted)))
}

/// Reads every page, examining `most` rows for each.
async fn pages(store: &Store, query: &AuditQuery, limit: u32, most: i64) -> Vec<Cursor> {
    let mut query = AuditQuery { limit: Some(limit), ..query.clone() };
    let mut found = Vec::new();
    loop {
        let page = store.audit_among(&query, Form::Whole, most).await.expect("reads");
        assert!(page.items.len() <= limit as usize);
        found.extend(page.items.into_iter().map(|entry| entry.cursor));
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            return found;
        }
    }
}

async fn check(world: &World, dice: &mut Dice, rounds: usize) {
    let entries = all(&world.store).await;
    for _ in 0..rounds {
        let query = query(dice, &entries);
        let fit = entries.iter().filter(|entry| fits(&query, &entry.event)).map(|entry| entry.cursor.clone());
        let (limit, most) = (*dice.of(&[7, 40, 200]), *dice.of(&[40, 300, 5000]));
        let found = pages(&world.store, &query, limit, most).await;
        assert_eq!(found, fit.collect::<Vec<_>>(), "{query:?}, {limit} a page, {most} rows");
    }
}

async fn every_filter_finds_what_a_look_at_every_entry_finds(world: World) {
    let mut dice = Dice(11);
    for _ in 0..3 {
        make_entries(&world, &mut dice, 40).await;
        check(&world, &mut dice, 20).await;
        for _ in 0..=dice.below(2) {
            world.store.index_log(&mut IndexProgress::default(), BLOCK + 7).await.expect("indexes");
            check(&world, &mut dice, 20).await;
        }
    }
    while world.store.index_log(&mut IndexProgress::default(), 3 * BLOCK).await.expect("indexes") != Indexed::All {}
    check(&world, &mut dice, 60).await;
    assert_eq!(
        world.store.lag().await.expect("reads")["index"],
        Duration::ZERO,
        "a block that is not full waits for more"
    );
}

async fn rows_that_were_gathered_from_memory_are_found(world: World) {
    let mut dice = Dice(15);
    make_entries(&world, &mut dice, 40).await;
    let (recent, mut progress) = (&world.store.inner.recent, IndexProgress::default());
    world.store.index_log(&mut progress, 3 * BLOCK).await.expect("indexes");
    let mut gathered = progress.gather(recent);
    while gathered < 2 * BLOCK {
        make_entries(&world, &mut dice, 1).await;
        let before = std::mem::replace(&mut gathered, progress.gather(recent));
        if gathered == before {
            // The poll for other processes empties the memory now and then. What was in it is read.
            world.store.index_log(&mut progress, 3 * BLOCK).await.expect("indexes");
            gathered = progress.gather(recent);
        }
    }
    while world.store.index_log(&mut progress, 3 * BLOCK).await.expect("indexes") != Indexed::All {}
    let head = world.store.place(&world.store.head().await.expect("reads")).expect("of this log").seq;
    assert_eq!(blocks(&world).await, (head + 1) / BLOCK);
    check(&world, &mut dice, 60).await;
}

pub async fn blocks(world: &World) -> i64 {
    let mut conn = world.store.inner.db.read().await.expect("reads");
    let row = conn.fetch_one(Sql::new("SELECT COUNT(*) FROM log_blocks")).await.expect("reads").expect("a row");
    row.int(0).expect("a number")
}

async fn of_several_servers_one_indexes_each_block(world: World) {
    let mut dice = Dice(5);
    make_entries(&world, &mut dice, 70).await;
    let others = [world.another().await, world.another().await];
    let mut work = tokio::task::JoinSet::new();
    for store in [world.store.clone()].into_iter().chain(others.clone()) {
        work.spawn(async move {
            while store.index_log(&mut IndexProgress::default(), BLOCK).await.expect("indexes") != Indexed::All {}
        });
    }
    work.join_all().await;
    let head = world.store.place(&world.store.head().await.expect("reads")).expect("of this log").seq;
    // PostgreSQL may skip numbers, but not that many.
    assert_eq!(blocks(&world).await, (head + 1) / BLOCK);
    check(&world, &mut dice, 15).await;
    for store in others {
        store.close().await;
    }
}

async fn a_server_that_dies_while_it_indexes_leaves_the_index_as_it_was(world: World) {
    let mut dice = Dice(6);
    make_entries(&world, &mut dice, 60).await;
    world.store.index_log(&mut IndexProgress::default(), BLOCK).await.expect("indexes");
    let before = blocks(&world).await;
    let mut conn = world.store.inner.db.write_on_this_thread().await.expect("writes");
    conn.execute(Sql::new("UPDATE log_index SET next = next + 32")).await.expect("writes");
    drop(conn);
    assert_eq!(blocks(&world).await, before);
    check(&world, &mut dice, 10).await;
    while world.store.index_log(&mut IndexProgress::default(), BLOCK).await.expect("indexes") != Indexed::All {}
    assert!(blocks(&world).await > before);
    check(&world, &mut dice, 10).await;
}

async fn rows_that_are_gone_are_forgotten_and_the_rest_is_found(world: World) {
    let mut dice = Dice(9);
    make_entries(&world, &mut dice, 90).await;
    while world.store.index_log(&mut IndexProgress::default(), BLOCK).await.expect("indexes") != Indexed::All {}
    let indexed = blocks(&world).await;
    let gone = 2 * BLOCK + 5;
    let mut conn = world.store.inner.db.write_on_this_thread().await.expect("writes");
    conn.execute(Sql::new("DELETE FROM log WHERE seq < ").bind(gone)).await.expect("writes");
    conn.commit().await.expect("writes");
    check(&world, &mut dice, 20).await;
    let words = async || {
        let table = if world.store.inner.db.is_postgres() { "review_words" } else { "review_numbers" };
        let mut conn = world.store.inner.db.read().await.expect("reads");
        let row = conn.fetch_one(Sql::new("SELECT COUNT(*) FROM ").push(table)).await.expect("reads").expect("a row");
        row.int(0).expect("a number")
    };
    let (before, removed) = (words().await, world.launched_review("stays").await.id);
    let oldest = all(&world.store).await.iter().rev().find_map(|entry| entry.event.review_id).expect("is of a review");
    let mut conn = world.store.inner.db.write_on_this_thread().await.expect("writes");
    conn.forget_blocks(&(0..gone).collect::<Vec<_>>()).await.expect("writes");
    conn.forget_review_words(&[oldest.0, removed.0]).await.expect("writes");
    conn.commit().await.expect("writes");
    assert_eq!(words().await, before - 1, "one of these was indexed");
    assert_eq!(blocks(&world).await, indexed - 2, "a block goes once all its rows are gone");
    check(&world, &mut dice, 20).await;
}

/// Some reviews are new when others are indexed again, and some have moved from the pending to the past ones.
async fn a_review_is_found_by_the_words_that_it_had_when_it_was_indexed(world: World) {
    let mut dice = Dice(14);
    // No entry is newer than the index, so no review is checked directly.
    world.store.inner.db.execute(Sql::new("UPDATE log_index SET next = 1000000")).await.expect("writes");
    let (mut pending, mut runs) = (Vec::new(), Vec::new());
    let mut indexed: BTreeMap<Uuid, (bool, String)> = BTreeMap::new();
    for _ in 0..4 {
        for _ in 0..20 {
            let text = dice.of::<&str>(&TEXTS);
            let review = world.launched_review(text).await;
            runs.extend(review.run_id);
            pending.push(review);
        }
        for _ in 0..8 {
            let review = pending.swap_remove(dice.below(pending.len()));
            decided(world.store.commit(decide(&review, "ana", "yes")).await).expect("decided");
        }
        let some: BTreeSet<RunId> = runs.iter().copied().filter(|_| dice.below(4) > 0).collect();
        let gone = indexed.keys().next().copied();
        let mut conn = world.store.inner.db.write_on_this_thread().await.expect("writes");
        conn.forget_review_words(gone.as_slice()).await.expect("writes");
        conn.index_reviews(&some).await.expect("writes");
        conn.commit().await.expect("writes");

        let mut conn = world.store.inner.db.snapshot().await.expect("reads");
        gone.and_then(|gone| indexed.remove(&gone));
        for row in conn.fetch(Sql::new("SELECT id, status, search, run_id FROM reviews")).await.expect("reads") {
            if some.contains(&RunId(row.uuid(3).expect("an id"))) {
                let is_pending = row.text(1).expect("text") == "pending";
                indexed.insert(row.uuid(0).expect("an id"), (is_pending, row.text(2).expect("text")));
            }
        }
        for q in ["wind", "ocean ord", "4711", "審", "please may", "dev", "nothing"] {
            let words = Words::of(Some(q)).expect("words");
            for (index, is_pending) in [(WordIndex::Pending, true), (WordIndex::Past, false)] {
                let has = |of: &(bool, String)| of.0 == is_pending && words.are_in(&of.1);
                let expected: Vec<Uuid> = indexed.iter().filter(|(_, of)| has(of)).map(|(id, _)| *id).collect();
                let found = conn.search_reviews(words.clone(), &[index], 1000).await.expect("reads");
                let ReviewSearch::Among(found) = found else { panic!("few have the words") };
                assert_eq!(found, expected, "{q} in {index:?}");
            }
        }
        conn.rollback().await.expect("ends");
    }
}
