//! An attacker who can write the database, but does not have the key: entries that are inserted, changed, copied or
//! moved before they are sealed are never sealed, and are named.

use shared::log::EntryKind;
use shared::seal::Tampering;

use super::support::{World, on_both};

on_both! {
    an_entry_that_was_put_in_is_never_sealed,
    a_copied_entry_is_never_sealed,
    an_entry_that_is_changed_before_it_is_sealed_is_never_sealed,
    two_entries_that_change_places_before_they_are_sealed_are_never_sealed,
    a_large_value_that_is_changed_before_it_is_sealed_is_never_sealed,
    a_commit_that_is_changed_after_it_was_sealed_is_found,
    rows_from_before_the_first_key_are_sealed_and_none_behind_them,
}

/// Builds a statement that appends a row with this body and HMAC, and otherwise the columns of the row about `of`.
fn insert(body: &str, mac: &str, of: &str) -> String {
    format!(
        "INSERT INTO log (commit_id, at, run_id, body, mac) \
         SELECT commit_id, at, run_id, {body}, {mac} FROM log WHERE body LIKE '%{of}%'"
    )
}

async fn an_entry_that_was_put_in_is_never_sealed(mut world: World) {
    world.three_seals().await;
    world.people(&["gus"]).await;
    world.behind_its_back(&insert("replace(body, 'cem', 'mal')", "NULL", "cem")).await;
    let (what, bad) = world.first_bad(None).await;
    assert_eq!((what, bad.entry, bad.kind), (Tampering::Added, Some(8), Some(EntryKind::UserCreated)));
    assert!(bad.message.contains("was not written with the key"), "{}", bad.message);
    // The entry before it is sealed. Once the forged row is deleted, so are the entries after it.
    world.sealer.seal().await.expect("the entry before it is as it was written");
    assert_eq!(world.head().await.number, 4);
    world.nothing_is_sealed_on_top("was not written with the key").await;
    world.behind_its_back("DELETE FROM log WHERE body LIKE '%mal%'").await;
    world.seal(8).await;
    assert!(world.check(None).await.valid);
}

async fn a_copied_entry_is_never_sealed(mut world: World) {
    world.three_seals().await;
    world.behind_its_back(&insert("body", "mac", "cem")).await;
    let (what, bad) = world.first_bad(None).await;
    assert_eq!((what, bad.entry), (Tampering::Added, Some(7)));
    world.nothing_is_sealed_on_top("was changed, copied or moved after it was written").await;
}

async fn an_entry_that_is_changed_before_it_is_sealed_is_never_sealed(mut world: World) {
    world.three_seals().await;
    world.people(&["gus"]).await;
    world.behind_its_back("UPDATE log SET body = replace(body, 'gus', 'mal') WHERE body LIKE '%gus%'").await;
    assert_eq!(world.first_bad(None).await.1.entry, Some(7));
    world.nothing_is_sealed_on_top("was changed, copied or moved after it was written").await;
}

async fn two_entries_that_change_places_before_they_are_sealed_are_never_sealed(mut world: World) {
    world.three_seals().await;
    world.people(&["gus", "hal"]).await;
    let swap = "UPDATE log SET body = replace(body, 'gus', '<1>') WHERE body LIKE '%gus%'; \
                UPDATE log SET body = replace(body, 'hal', 'gus') WHERE body LIKE '%hal%'; \
                UPDATE log SET body = replace(body, '<1>', 'hal') WHERE body LIKE '%<1>%'";
    world.behind_its_back(swap).await;
    assert_eq!(world.first_bad(None).await.1.entry, Some(7));
    world.nothing_is_sealed_on_top("was changed, copied or moved after it was written").await;
}

async fn a_large_value_that_is_changed_before_it_is_sealed_is_never_sealed(mut world: World) {
    world.three_seals().await;
    let run = world.run(&"a large text, ".repeat(500)).await;
    world.behind_its_back("UPDATE blobs SET body = '\"a small text\"'").await;
    let (_, bad) = world.first_bad(None).await;
    assert!(bad.message.contains("missing, invalid, or changed"), "{}", bad.message);
    assert_eq!(bad.run_id, Some(run));
    world.sealer.seal().await.expect("what comes before it is sealed");
    world.nothing_is_sealed_on_top("missing, invalid, or changed").await;
}

async fn a_commit_that_is_changed_after_it_was_sealed_is_found(mut world: World) {
    world.three_seals().await;
    let one = if world.is_postgres() { "'00000000-0000-0000-0000-000000000001'" } else { "zeroblob(16)" };
    for change in [format!("commit_id = {one}"), "at = at + 1".to_owned(), "mac = NULL".to_owned()] {
        // Entries store a time only if it differs from that of their row.
        world.behind_its_back(&format!("UPDATE log SET {change} WHERE body LIKE '%dot%'")).await;
        let (what, bad) = world.first_bad(None).await;
        assert_eq!((what, bad.entry, bad.seal), (Tampering::Changed, Some(4), Some(2)));
    }
}

async fn rows_from_before_the_first_key_are_sealed_and_none_behind_them(mut world: World) {
    // A database as a version without row keys has left it.
    world.people(&["ada", "bob"]).await;
    world
        .behind_its_back("UPDATE log SET mac = NULL; UPDATE meta SET unauthenticated_to = (SELECT MAX(seq) FROM log)")
        .await;
    world.people(&["cem"]).await;
    world.seal(3).await;
    // Authenticated rows and others are in separate seals.
    assert_eq!(world.head().await.number, 2);
    assert!(world.check(None).await.valid);
    // From then on, the note in the database no longer counts.
    world.behind_its_back(&insert("replace(body, 'ada', 'mal')", "NULL", "ada")).await;
    world.behind_its_back("UPDATE meta SET unauthenticated_to = (SELECT MAX(seq) FROM log)").await;
    world.nothing_is_sealed_on_top("was not written with the key").await;
}
