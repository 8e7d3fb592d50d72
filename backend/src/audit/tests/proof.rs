//! How seals are made, and how exports are verified without the server.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use shared::api::AuditQuery;
use shared::seal::Tampering;

use super::support::{World, add_user, on_both};
use crate::audit::file::{FileCheck, verify_file};
use crate::audit::key::{SealKey, Trusted};
use crate::audit::sealer::{Sealed, Sealer};
use crate::audit::{Head, register, verify};
use crate::clock::{Clock as _, SystemClock};
use crate::store::testing::ManualClock;
use crate::store::{Form, OpenMode, Store, StoreOptions};

on_both! {
    nothing_is_lost_while_many_write_and_two_seal,
    a_killed_sealer_goes_on_where_it_stood,
    a_clock_that_was_ahead_does_not_stop_the_seals,
    a_server_with_another_key_is_refused_before_it_writes_or_seals,
    an_old_key_stays_trusted_when_a_new_one_takes_its_place,
    an_export_is_verified_by_itself,
    each_changed_line_of_an_export_is_named,
    an_entry_says_which_seal_holds_it,
}

async fn nothing_is_lost_while_many_write_and_two_seal(mut world: World) {
    const WRITERS: usize = 8;
    const PEOPLE: usize = 25;
    let other = world.another_store().await;
    let mut writing = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let store = if writer % 2 == 0 { world.store.clone() } else { other.clone() };
        let now = world.clock.now();
        writing.spawn(async move {
            for n in 0..PEOPLE {
                add_user(&store, &format!("p{writer}.{n}"), now).await;
            }
        });
    }
    let done = Arc::new(AtomicBool::new(false));
    let mut second = world.another_sealer();
    let (stop, clock) = (Arc::clone(&done), Arc::clone(&world.clock));
    let sealing = tokio::spawn(async move {
        while !stop.load(Ordering::Acquire) {
            // Both servers consider the other one silent, so both try for every number.
            clock.advance(Duration::from_secs(10));
            second.seal().await.expect("seals");
            tokio::task::yield_now().await;
        }
    });
    while !writing.is_empty() {
        world.clock.advance(Duration::from_secs(10));
        world.sealer.seal().await.expect("seals");
        if let Ok(Some(written)) = tokio::time::timeout(Duration::from_millis(1), writing.join_next()).await {
            written.expect("writes");
        }
    }
    done.store(true, Ordering::Release);
    sealing.await.expect("the other sealer ends");
    world.clock.advance(Duration::from_secs(10));
    world.seal((WRITERS * PEOPLE) as u64).await;
    let check = world.check(None).await;
    assert!(check.valid, "{check:?}");
    assert_eq!(check.sealed, (WRITERS * PEOPLE) as u64);
    assert!(world.head().await.number > 1);
    other.close().await;
}

async fn a_killed_sealer_goes_on_where_it_stood(mut world: World) {
    let head = world.three_seals().await;
    world.people(&["gus"]).await;
    world.sealer = world.another_sealer();
    assert_eq!(world.sealer.seal().await.expect("looks"), Sealed::Elsewhere, "the other may still be alive");
    world.clock.advance(Duration::from_secs(10));
    world.seal(7).await;
    let check = world.check(Some(&head)).await;
    assert!(check.valid, "{check:?}");
    assert_eq!(world.head().await.number, 4);
}

async fn a_clock_that_was_ahead_does_not_stop_the_seals(mut world: World) {
    let head = world.three_seals().await;
    world.clock.set_back(Duration::from_hours(2));
    world.people(&["gus"]).await;
    world.sealer = world.another_sealer();
    assert_eq!(world.sealer.seal().await.expect("looks"), Sealed::Elsewhere, "the other may still be alive");
    world.clock.advance(Duration::from_secs(10));
    world.seal(7).await;
    assert!(world.check(Some(&head)).await.valid);
}

async fn a_server_with_another_key_is_refused_before_it_writes_or_seals(mut world: World) {
    let (mine, trusted) = SealKey::open(&world.key_path(), &SystemClock).expect("the key is read");
    let (other, others) = SealKey::open(&world.folder.path().join("other.key"), &SystemClock).expect("a key is made");
    // Even if nothing is sealed yet, the first key is registered.
    register(&world.store, &mine, &trusted).await.expect("the first key is taken");
    let refused = register(&world.store, &other, &others).await.expect_err("there is another").to_string();
    for word in [&mine.public().to_string(), &other.public().to_string(), "COUNTERSIGN_SEAL_KEY"] {
        assert!(refused.contains(word), "{refused}");
    }
    let mut stranger = Sealer::new(world.store.clone(), other, world.seals(others), world.clock.clone());
    let error = stranger.seal().await.expect_err("another key is registered").to_string();
    assert!(error.contains("give it the same seal.key"), "{error}");
    // If seals are older than registered keys, the newest seal identifies the key.
    world.three_seals().await;
    world.behind_its_back("UPDATE meta SET seal_key = NULL").await;
    let (other, others) = SealKey::open(&world.folder.path().join("other.key"), &SystemClock).expect("the key is read");
    assert!(register(&world.store, &other, &others).await.is_err());
    register(&world.store, &mine, &trusted).await.expect("it is the key of the newest seal");
    // A renewed key is registered in place of the old one, which is no longer accepted.
    let (new, both) = SealKey::renew(&world.key_path(), &SystemClock).expect("a new key");
    register(&world.store, &new, &both).await.expect("it replaces the old one");
    assert!(register(&world.store, &mine, &trusted).await.is_err());
    let error = world.sealer.seal().await.expect_err("its key was replaced").to_string();
    assert!(error.contains("start it again"), "{error}");
}

async fn an_old_key_stays_trusted_when_a_new_one_takes_its_place(mut world: World) {
    world.three_seals().await;
    let old = world.trusted.clone();
    let (new, trusted) = SealKey::renew(&world.key_path(), &SystemClock).expect("a new key");
    // Rows that were written before the restart still count.
    world.people(&["gus"]).await;
    register(&world.store, &new, &trusted).await.expect("it replaces the old one");
    world.store = world.another_store().await;
    world.sealer = Sealer::new(world.store.clone(), new, world.seals(trusted.clone()), world.clock.clone());
    world.trusted = trusted;
    world.people(&["hal"]).await;
    world.clock.advance(Duration::from_secs(10));
    world.seal(8).await;
    assert!(world.check(None).await.valid);
    world.trusted = old;
    let (what, bad) = world.first_bad(None).await;
    assert_eq!((what, bad.seal), (Tampering::Seal, Some(4)));
}

fn checked(world: &World, text: &str, expected: Option<&Head>) -> FileCheck {
    verify_file(text.as_bytes(), &world.trusted, expected).expect("reads")
}

async fn an_export_is_verified_by_itself(mut world: World) {
    let early = world.three_seals().await;
    let run = world.run(&"a large text, ".repeat(500)).await;
    world.seal(10).await;
    let head = world.head().await;
    world.people(&["gus"]).await;
    let text = world.export(AuditQuery::default()).await;
    for expected in [None, Some(&early), Some(&head)] {
        let FileCheck { check, part } = checked(&world, &text, expected);
        assert!(check.valid && !part, "{check:?}");
        assert_eq!(check.sealed, world.check(None).await.sealed);
        assert_eq!(check.head, Some(head.to_string()));
    }
    // The file alone and another key do not deceive the verification.
    let (_, stranger) = SealKey::open(&world.folder.path().join("other.key"), &SystemClock).expect("a key is made");
    assert!(!verify_file(text.as_bytes(), &stranger, None).expect("reads").check.valid);
    assert!(!verify_file(text.as_bytes(), &Trusted::default(), None).expect("reads").check.valid);
    // A filtered export is valid too, and says that it is filtered.
    let query = AuditQuery { run: Some(run.to_string()), ..AuditQuery::default() };
    let FileCheck { check, part } = checked(&world, &world.export(query).await, None);
    assert!(check.valid && part && check.sealed > 1, "{check:?}");
    // The file contains an older head, but not a later one, so its end was cut off.
    let later: Head = format!("{}:{}", head.number + 1, "0".repeat(64)).parse().expect("a head");
    assert_eq!(checked(&world, &text, Some(&later)).check.first_bad.map(|bad| bad.what), Some(Tampering::Cut));
}

async fn each_changed_line_of_an_export_is_named(mut world: World) {
    world.three_seals().await;
    let text = world.export(AuditQuery::default()).await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 6);
    let bad = |lines: &[&str]| checked(&world, &(lines.join("\n") + "\n"), None).check.first_bad;
    assert_eq!(bad(&lines), None);
    let names = ["fay", "eli", "dot", "cem", "bob", "ada"];
    for (at, name) in names.iter().enumerate() {
        let changed = lines[at].replace(&format!("\"{name}\""), "\"mal\"");
        let mut with = lines.clone();
        with[at] = &changed;
        let found = bad(&with).expect("a changed line is found");
        assert_eq!((found.what, found.entry), (Tampering::Changed, Some(6 - at as u64)), "{found:?}");
        assert!(found.message.contains(&format!("(line {})", at + 1)), "{}", found.message);

        let mut without = lines.clone();
        without.remove(at);
        // If the line contained a seal, the chain has a gap, or the next line reports it.
        let found = bad(&without).expect("a missing line is found");
        assert!(matches!(found.what, Tampering::Removed | Tampering::Seal), "{found:?}");

        let mut twice = lines.clone();
        twice.insert(at, lines[at]);
        assert!(bad(&twice).is_some(), "a line that is there twice is found");

        // A member that readers might take for one of the entry.
        let forged = lines[at].replacen("\"kind\"", "\"actor\":\"mal\",\"kind\"", 1);
        with[at] = &forged;
        assert!(bad(&with).is_some(), "what stands before an entry is the place and the seal, and nothing else");
    }
    let mut swapped = lines.clone();
    swapped.swap(3, 5);
    assert!(bad(&swapped).is_some());
    assert_eq!(bad(&lines[..4]).map(|bad| bad.what), Some(Tampering::Seal), "the beginning is gone");
}

async fn an_entry_says_which_seal_holds_it(mut world: World) {
    world.three_seals().await;
    world.people(&["gus"]).await;
    let told = async {
        loop {
            let page = world.store.audit(&AuditQuery::default(), Form::Whole).await.expect("reads");
            let seals: Vec<_> = page.items.iter().map(|entry| entry.sealed).collect();
            if seals.len() == 7 {
                return seals;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let seals = tokio::time::timeout(Duration::from_secs(20), told).await.expect("all are told");
    assert_eq!(seals, [None, Some(3), Some(3), Some(2), Some(2), Some(1), Some(1)]);
}

#[tokio::test]
async fn a_backup_is_verified_where_nothing_can_be_written() {
    let mut world = World::sqlite().await;
    let head = world.three_seals().await;
    world.people(&["gus"]).await;
    world.store.close().await;
    let backup = world.folder.path().join("backup #1 %41?.db");
    let original = world.database.url.trim_start_matches("sqlite:");
    std::fs::copy(original, &backup).expect("copied");
    std::fs::set_permissions(&backup, std::os::unix::fs::PermissionsExt::from_mode(0o444)).expect("read-only");
    let url = format!("sqlite:{}", percent_encode(backup.as_os_str().as_encoded_bytes(), NON_ALPHANUMERIC));
    let options = StoreOptions { access: OpenMode::Read, ..StoreOptions::new(url, ManualClock::now()) };
    let store = Store::open(options.clone()).await.expect("it is read as it is");
    let check = verify(&store, &world.trusted, &[head]).await.expect("reads");
    assert!(check.valid, "{check:?}");
    assert_eq!((check.sealed, check.entries), (6, 7));
    store.close().await;
    // Data that are outside of the file are not left out silently.
    let log = world.folder.path().join("backup #1 %41?.db-wal");
    std::fs::write(&log, "entries").expect("written");
    let error = Store::open(options).await.map(drop).expect_err("a part is missing").to_string();
    assert!(error.contains("-wal"), "{error}");
}

#[test]
fn the_key_is_for_its_owner_only_and_stays_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seal.key");
    let (made, _) = SealKey::open(&path, &SystemClock).unwrap();
    let (read, trusted) = SealKey::open(&path, &SystemClock).unwrap();
    assert_eq!(made.public(), read.public());
    let public = made.public().to_string();
    assert_eq!(Trusted::named(&[public]).unwrap(), trusted);
    assert_eq!(Trusted::named(&[folder.path().join("seal.pub").display().to_string()]).unwrap(), trusted);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let none = folder.path().join("none.key");
    assert!(SealKey::existing(&none).unwrap().is_none() && !none.exists(), "reading creates nothing");
    std::fs::write(&path, "something else").unwrap();
    let error = SealKey::open(&path, &SystemClock).map(drop).unwrap_err().to_string();
    assert!(error.contains("seal.key") && error.contains("audit key --new"), "{error}");
}

#[test]
fn a_new_key_replaces_the_file_of_public_keys_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (path, public) = (folder.path().join("seal.key"), folder.path().join("seal.pub"));
    let (first, _) = SealKey::renew(&path, &SystemClock).unwrap();
    let before = std::fs::read_to_string(&public).unwrap();
    assert_eq!(before, format!("{}\n", first.public()));
    // Whoever has opened the file reads it as it was: it is replaced, and never empty or half written.
    let mut opened = std::fs::File::open(&public).unwrap();
    let (second, trusted) = SealKey::renew(&path, &SystemClock).unwrap();
    let mut read = String::new();
    opened.read_to_string(&mut read).unwrap();
    assert_eq!(read, before);
    assert_eq!(std::fs::read_to_string(&public).unwrap(), format!("{}\n{before}", second.public()));
    assert_eq!(Trusted::beside(&path).unwrap(), trusted);
    assert!(folder.path().join(format!("seal.key.{}", first.public().id())).exists(), "the old key is kept");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&public).unwrap().permissions().mode() & 0o777, 0o644);
    }
}
