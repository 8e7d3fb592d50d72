//! An attacker who owns the database, but does not have the key: every possible change to sealed entries is detected
//! and named.

use shared::log::EntryKind;
use shared::seal::Tampering;

use super::support::{World, on_both};
use crate::audit::key::SealKey;
use crate::audit::seal::Opened;
use crate::clock::SystemClock;

on_both! {
    an_untouched_record_holds,
    a_changed_byte_is_found,
    a_changed_blob_is_found,
    an_entry_that_can_no_longer_be_read_is_found,
    a_deleted_entry_is_found,
    two_swapped_entries_are_found,
    an_entry_put_between_others_is_found,
    a_cut_end_is_found_by_who_kept_the_head,
    a_rewritten_record_is_not_sealed_again,
    a_record_that_was_deleted_as_a_whole_is_missed,
    another_record_of_the_same_key_is_not_continued,
    a_seal_of_another_key_is_found,
    a_removed_seal_is_found,
}

async fn an_untouched_record_holds(mut world: World) {
    let head = world.three_seals().await;
    world.people(&["gus"]).await;
    let check = world.check(Some(&head)).await;
    assert!(check.valid && check.first_bad.is_none(), "{check:?}");
    assert_eq!((check.sealed, check.entries, head.number), (6, 7, 3));
}

async fn a_changed_byte_is_found(mut world: World) {
    world.three_seals().await;
    world.behind_its_back("UPDATE log SET body = replace(body, 'dot', 'tod') WHERE body LIKE '%dot%'").await;
    let (what, bad) = world.first_bad(None).await;
    assert_eq!((what, bad.entry, bad.seal), (Tampering::Changed, Some(4), Some(2)));
    assert_eq!(bad.kind, Some(EntryKind::UserCreated));
    assert!(bad.message.contains("entry 4 (user.created"), "{}", bad.message);
}

async fn a_changed_blob_is_found(mut world: World) {
    let run = world.run(&"a large text, ".repeat(500)).await;
    world.seal(5).await;
    assert!(world.check(None).await.valid);
    world.behind_its_back("UPDATE blobs SET body = '\"a small text\"'").await;
    let (what, bad) = world.first_bad(None).await;
    assert_eq!((what, bad.run_id), (Tampering::Changed, Some(run)));
}

async fn an_entry_that_can_no_longer_be_read_is_found(mut world: World) {
    world.three_seals().await;
    world.behind_its_back("UPDATE log SET body = 'nothing' WHERE body LIKE '%cem%'").await;
    let (what, bad) = world.first_bad(None).await;
    assert_eq!((what, bad.entry, bad.seal), (Tampering::Changed, Some(3), Some(2)));
    assert!(bad.message.contains("can no longer be read"), "{}", bad.message);
}

async fn a_deleted_entry_is_found(mut world: World) {
    world.three_seals().await;
    world.behind_its_back("DELETE FROM log WHERE body LIKE '%bob%'").await;
    let (what, bad) = world.first_bad(None).await;
    assert_eq!((what, bad.entry, bad.seal), (Tampering::Removed, Some(2), Some(1)));
    assert!(bad.message.contains("it was after user.created"), "{}", bad.message);
}

async fn two_swapped_entries_are_found(mut world: World) {
    world.three_seals().await;
    let swap = "UPDATE log SET body = replace(body, 'cem', '<1>') WHERE body LIKE '%cem%'; \
                UPDATE log SET body = replace(body, 'dot', 'cem') WHERE body LIKE '%dot%'; \
                UPDATE log SET body = replace(body, '<1>', 'dot') WHERE body LIKE '%<1>%'";
    world.behind_its_back(swap).await;
    let (what, bad) = world.first_bad(None).await;
    assert_eq!((what, bad.entry, bad.seal), (Tampering::Reordered, Some(3), Some(2)));
}

async fn an_entry_put_between_others_is_found(mut world: World) {
    world.three_seals().await;
    let forged = "commit_id, at, run_id, replace(body, 'cem', 'mal')";
    // There is no free number between two rows, so the rows after it move up.
    let sql = if world.is_postgres() {
        format!(
            "CREATE TABLE moved AS SELECT * FROM log WHERE seq > (SELECT seq FROM log WHERE body LIKE '%cem%'); \
             DELETE FROM log WHERE seq IN (SELECT seq FROM moved); UPDATE moved SET seq = seq + 1; \
             INSERT INTO log OVERRIDING SYSTEM VALUE SELECT * FROM moved; \
             INSERT INTO log (seq, commit_id, at, run_id, body) OVERRIDING SYSTEM VALUE \
             SELECT seq + 1, {forged} FROM log WHERE body LIKE '%cem%'"
        )
    } else {
        format!(
            "UPDATE log SET seq = -seq WHERE seq > (SELECT seq FROM log WHERE body LIKE '%cem%'); \
             UPDATE log SET seq = 1 - seq WHERE seq < 0; \
             INSERT INTO log (seq, commit_id, at, run_id, body) \
             SELECT seq + 1, {forged} FROM log WHERE body LIKE '%cem%'"
        )
    };
    world.behind_its_back(&sql).await;
    let (what, bad) = world.first_bad(None).await;
    assert_eq!((bad.entry, bad.seal), (Some(4), Some(2)));
    // This is found even if the last entry of the range was pushed out of it.
    assert_eq!(what, Tampering::Added, "{}", bad.message);
}

async fn a_cut_end_is_found_by_who_kept_the_head(mut world: World) {
    let head = world.three_seals().await;
    world
        .behind_its_back(
            "DELETE FROM seals WHERE number = 3; DELETE FROM log WHERE body LIKE '%eli%' OR body LIKE '%fay%'",
        )
        .await;
    assert!(world.check(None).await.valid, "a chain that ends earlier is a chain");
    let (what, bad) = world.first_bad(Some(&head)).await;
    assert_eq!((what, bad.seal), (Tampering::Cut, Some(3)));
    world.nothing_is_sealed_on_top("the end of the audit log was cut off: seal 3:").await;
    // An operator has to accept the shorter log. Later seals continue from there.
    let shorter = world.head().await;
    world.kept().replace(Some(&shorter)).expect("the head is accepted");
    world.people(&["eva", "mal"]).await;
    world.seal(6).await;
    // A head that was kept elsewhere still shows that the log was replaced.
    let (what, bad) = world.first_bad(Some(&head)).await;
    assert_eq!((what, bad.seal), (Tampering::Seal, Some(3)));
}

async fn a_rewritten_record_is_not_sealed_again(mut world: World) {
    world.three_seals().await;
    world
        .behind_its_back("UPDATE log SET body = replace(body, 'bob', 'mal') WHERE body LIKE '%bob%'; DELETE FROM seals")
        .await;
    world.nothing_is_sealed_on_top("the end of the audit log was cut off: seal 3:").await;
    let bad = world.bad_for_the_server().await;
    assert_eq!((bad.what, bad.seal), (Tampering::Cut, Some(3)));
}

async fn a_record_that_was_deleted_as_a_whole_is_missed(mut world: World) {
    world.three_seals().await;
    world.behind_its_back("DELETE FROM seals; DELETE FROM log").await;
    world.nothing_is_sealed_on_top("the end of the audit log was cut off: seal 3:").await;
    let bad = world.bad_for_the_server().await;
    assert_eq!((bad.what, bad.seal), (Tampering::Cut, Some(3)));
}

async fn another_record_of_the_same_key_is_not_continued(mut world: World) {
    // An older state of the database, after which the log continued differently.
    world.people(&["ada", "bob"]).await;
    world.seal(2).await;
    let older = world.kept().read().expect("reads").expect("a head");
    world.people(&["cem"]).await;
    world.seal(3).await;
    let newer = world.kept().read().expect("reads").expect("a head");
    world.behind_its_back("DELETE FROM seals WHERE number = 2").await;
    world.clock.advance(std::time::Duration::from_mins(1));
    world.kept().replace(Some(&older)).expect("written");
    world.people(&["dot"]).await;
    world.seal(4).await;
    world.people(&["eli"]).await;
    world.seal(5).await;
    world.kept().replace(Some(&newer)).expect("written");
    world.nothing_is_sealed_on_top("the audit log was replaced").await;
    let bad = world.bad_for_the_server().await;
    assert_eq!((bad.what, bad.seal), (Tampering::Seal, Some(2)));
}

async fn a_seal_of_another_key_is_found(mut world: World) {
    world.three_seals().await;
    let stored = world.store.seals(1, 1).await.expect("reads").remove(0);
    let first = world.store.seals(0, 1).await.expect("reads").remove(0);
    let first = Opened::open(&first, &world.trusted).expect("opens");
    let second = Opened::open(&stored, &world.trusted).expect("opens");
    // Changing an entry would require a new seal.
    let (other, _) = SealKey::open(&world.folder.path().join("other.key"), &SystemClock).expect("a key is made");
    let mut hashes = second.hashes.clone();
    hashes[0] = [7; 32];
    let now = second.seal.sealed_at;
    let (_, forged) =
        Opened::make(Some(&first), first.seal.to.clone(), stored.to.clone(), hashes, true, &other, now).expect("made");
    let blob = |bytes: &[u8]| {
        let hex = hex::encode(bytes);
        if world.is_postgres() { format!("decode('{hex}', 'hex')") } else { format!("X'{hex}'") }
    };
    let (signature, hashes) = (blob(&forged.signature), blob(&forged.hashes));
    // First with the id of the true key, then with its own.
    let named = forged.body.replace(&other.public().id(), &second.seal.key);
    for (body, why) in [(named, "its signature is not valid"), (forged.body, "is not trusted")] {
        let set =
            format!("UPDATE seals SET body = '{body}', signature = {signature}, hashes = {hashes} WHERE number = 2");
        world.behind_its_back(&set).await;
        let (what, bad) = world.first_bad(None).await;
        assert_eq!((what, bad.seal), (Tampering::Seal, Some(2)));
        assert!(bad.message.contains(why), "{}", bad.message);
    }
    // Only the hashes are changed, under the true signature.
    let (body, signature) = (stored.body.as_str(), blob(&stored.signature));
    world.behind_its_back(&format!("UPDATE seals SET body = '{body}', signature = {signature} WHERE number = 2")).await;
    let (what, bad) = world.first_bad(None).await;
    assert_eq!(what, Tampering::Seal);
    assert!(bad.message.contains("hashes of seal 2 were changed"), "{}", bad.message);
}

async fn a_removed_seal_is_found(mut world: World) {
    world.three_seals().await;
    world
        .behind_its_back(
            "DELETE FROM seals WHERE number = 2; DELETE FROM log WHERE body LIKE '%cem%' OR body LIKE '%dot%'",
        )
        .await;
    let (what, bad) = world.first_bad(None).await;
    assert_eq!(what, Tampering::Seal);
    assert!(bad.message.contains("seal 2 and its entries were removed"), "{}", bad.message);
}
