//! Idempotency keys.

use std::time::Duration;

use super::support::{World, actor, decide, decided, launch, on_both};
use crate::store::Error;
use crate::store::db::{Arg, Conn};
use crate::store::{
    Change, CommitError, Committed, Credential, CredentialKind, IdempotencyKey, NewCredential, Operation,
};
use shared::id::TokenId;

on_both! {
    the_same_key_and_body_answers_the_same,
    another_body_under_the_same_key_is_refused,
    a_token_is_never_shown_again,
    keys_are_removed_after_a_day_however_many_there_are,
}

fn keyed(change: Change, key: &str, body: u8) -> Change {
    let key = IdempotencyKey { scope: "dev POST /runs".to_owned(), key: key.to_owned(), body: [body; 32] };
    Change { key: Some(key), ..change }
}

async fn keys_are_removed_after_a_day_however_many_there_are(world: World) {
    let rows = (0..2500).map(|number| {
        vec![Arg::from("ana POST /runs"), Arg::from(format!("old-{number}")), Arg::from(&[0_u8; 32]), Arg::from(0_i64)]
    });
    let (into, rows) = ("INSERT INTO idempotency (scope, key, body, created_at) ".to_owned(), rows.collect());
    let write = async move |mut conn: Conn| {
        conn.insert_by(into, rows, "").await?;
        Ok(conn.commit().await?)
    };
    world.store.inner.db.write::<(), Error>(write).await.expect("writes");
    world.clock.advance(Duration::from_hours(1));
    world.store.commit(keyed(launch("new"), "new", 1)).await.expect("launches");
    let mut left = 0;
    for _ in 0..500 {
        left = world.store.counts().await.expect("counts")["idempotency"];
        if left == 1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{left} keys are left");
}

async fn the_same_key_and_body_answers_the_same(world: World) {
    let text = "x".repeat(3000);
    let change = keyed(launch(&text), "one", 1);
    let other = world.another().await;
    let (first, second, third) = tokio::join!(
        world.store.commit(change.clone()),
        world.store.commit(change.clone()),
        other.commit(change.clone())
    );
    let first = first.expect("launches");
    assert_eq!(second.expect("answers"), first);
    assert_eq!(third.expect("answers"), first);
    assert_eq!(world.store.commit(change).await.expect("answers"), first);
    assert_eq!(world.store.counts().await.expect("counts")["runs"], 1);
    let review = world.review_of(match first {
        Committed::Run { run } => run.summary.id,
        other => panic!("{other:?}"),
    });
    let change = keyed(decide(&review.await, "ana", "yes"), "two", 1);
    let first = decided(world.store.commit(change.clone()).await).expect("decides");
    assert_eq!(decided(world.store.commit(change).await).expect("answers"), first);
    other.close().await;
}

async fn another_body_under_the_same_key_is_refused(world: World) {
    world.store.commit(keyed(launch("a"), "one", 1)).await.expect("launches");
    let other = world.store.commit(keyed(launch("b"), "one", 2)).await;
    assert!(matches!(other, Err(CommitError::KeyReused)), "{other:?}");
}

async fn a_token_is_never_shown_again(world: World) {
    let id = TokenId(super::support::new_run().0);
    let credential = Credential {
        kind: CredentialKind::Token,
        id: Some(id),
        name: Some("ci".to_owned()),
        username: "dev".parse().expect("a name"),
        roles: Some(vec!["developer".to_owned()]),
        created_at: shared::time::Timestamp(1),
        expires_at: None,
        last_used_at: None,
        client: None,
        confirmed_at: None,
    };
    let new = NewCredential { digest: [7; 32], credential };
    let change = Change { by: Some(actor("dev")), key: None, operation: Operation::AddCredential(Box::new(new)) };
    let change = keyed(change, "token", 1);
    world.store.commit(change.clone()).await.expect("a token is made");
    let again = world.store.commit(change).await;
    assert!(matches!(again, Err(CommitError::Conflict(_))), "{again:?}");
    assert_eq!(world.store.tokens("dev").await.expect("reads").len(), 1);
}
