//! People, their rights, and their credentials.

use std::time::Duration;

use shared::access::{ADMIN, DEVELOPER, Principal};
use shared::api::UserPatch;
use shared::id::TokenId;
use shared::log::EntryKind;
use shared::single_sign_on::Trouble;
use shared::time::Timestamp;

use super::support::{World, actor, after, decide, launch, new_run, on_both, person};
use crate::engine::Refusal;
use crate::store::{
    Actor, Change, CommitError, Credential, CredentialKind, FactorChange, NewCredential, NewSession, Operation,
    ProviderAccount, RefusedSignIn, SignIn, UserChange,
};

on_both! {
    rights_that_were_lost_since_count_no_more,
    sessions_end_with_the_password_and_with_the_person,
    a_token_has_no_more_than_its_roles,
    a_link_logs_in_once,
    of_very_many_sessions_and_browsers_the_oldest_end,
    of_two_new_tokens_only_one_is_the_last_allowed,
    a_refusal_that_is_not_recorded_still_takes_the_roles,
    only_admins_change_people,
    what_only_a_session_may_do_is_refused_to_tokens_in_the_commit,
    there_is_always_an_admin,
    a_change_that_cannot_be_written_hurts_only_itself,
}

fn credential(kind: CredentialKind, name: &str, digest: u8, expires_at: Option<Timestamp>) -> NewCredential {
    let token = kind == CredentialKind::Token;
    let credential = Credential {
        kind,
        id: token.then(|| TokenId(new_run().0)),
        name: token.then(|| "ci".to_owned()),
        username: name.parse().expect("a name"),
        roles: token.then(|| vec![DEVELOPER.to_owned()]),
        created_at: Timestamp(1),
        expires_at,
        last_used_at: None,
        client: None,
        confirmed_at: None,
    };
    NewCredential { digest: [digest; 32], credential }
}

async fn add(world: &World, new: NewCredential) {
    world.store.commit(Change::by_server(Operation::AddCredential(Box::new(new)))).await.expect("it is added");
}

fn start(session: NewCredential, by: SignIn) -> NewSession {
    NewSession { session, by, proof: None, replaces: None, browser: None }
}

async fn patch(world: &World, name: &str, patch: UserPatch, password_hash: Option<&str>) {
    let username = name.parse().expect("a name");
    let change = UserChange { username, patch, password_hash: password_hash.map(str::to_owned) };
    let change = Change { by: Some(actor("boss")), key: None, operation: Operation::UpdateUser(Box::new(change)) };
    world.store.commit(change).await.expect("the person is changed");
}

fn with(change: Change, digest: u8) -> Change {
    let by = change.by.map(|actor| Actor { credential: Some([digest; 32]), ..actor });
    Change { by, ..change }
}

async fn rights_that_were_lost_since_count_no_more(world: World) {
    let review = world.launched_review("hello").await;
    patch(&world, "ana", UserPatch { roles: Some(Vec::new()), ..UserPatch::default() }, None).await;
    let mut change = decide(&review, "ana", "yes");
    // The rights that the request assumed do not matter.
    change.by = change.by.map(|mut actor| {
        actor.principal.roles.insert("reviewer".to_owned());
        actor
    });
    let refused = world.store.commit(change).await;
    assert!(matches!(refused, Err(CommitError::Refused(Refusal::NotFound | Refusal::Forbidden(_)))), "{refused:?}");
    patch(&world, "tom", UserPatch { active: Some(false), ..UserPatch::default() }, None).await;
    let refused = world.store.commit(decide(&review, "tom", "yes")).await;
    assert!(matches!(refused, Err(CommitError::Unauthenticated)), "{refused:?}");
    assert!(world.store.review(review.id).await.expect("reads").expect("is there").is_pending());
}

async fn sessions_end_with_the_password_and_with_the_person(world: World) {
    add(&world, credential(CredentialKind::Session, "dev", 1, None)).await;
    add(&world, credential(CredentialKind::Token, "dev", 2, None)).await;
    add(&world, credential(CredentialKind::Link, "dev", 3, None)).await;
    patch(&world, "dev", UserPatch::default(), Some("a new hash")).await;
    assert!(world.store.credential(&[1; 32]).await.expect("reads").is_none());
    assert!(world.store.credential(&[2; 32]).await.expect("reads").is_none());
    assert!(world.store.credential(&[3; 32]).await.expect("reads").is_none());
    let refused = world.store.commit(with(launch("a"), 1)).await;
    assert!(matches!(refused, Err(CommitError::Unauthenticated)), "{refused:?}");
    add(&world, credential(CredentialKind::Token, "dev", 2, None)).await;
    patch(&world, "dev", UserPatch { active: Some(false), ..UserPatch::default() }, None).await;
    assert!(world.store.credential(&[2; 32]).await.expect("reads").is_none());
    let text = serde_json::to_string(&world.told(EntryKind::UserUpdated).await).expect("JSON");
    assert!(!text.contains("a new hash"), "no secret is in the log");
}

async fn a_token_has_no_more_than_its_roles(world: World) {
    add(&world, credential(CredentialKind::Token, "boss", 1, Some(after(crate::clock::Clock::now(&*world.clock), 1))))
        .await;
    world.store.commit(with(Change { by: Some(actor("boss")), ..launch("a") }, 1)).await.expect("it may launch");
    let change =
        UserChange { username: "ana".parse().expect("a name"), patch: UserPatch::default(), password_hash: None };
    let change = Change { by: Some(actor("boss")), key: None, operation: Operation::UpdateUser(Box::new(change)) };
    let refused = world.store.commit(with(change, 1)).await;
    assert!(matches!(refused, Err(CommitError::Forbidden(_))), "{refused:?}");
    world.clock.advance(Duration::from_hours(1));
    let refused = world.store.commit(with(Change { by: Some(actor("boss")), ..launch("a") }, 1)).await;
    assert!(matches!(refused, Err(CommitError::Unauthenticated)), "{refused:?}");
}

async fn a_link_logs_in_once(world: World) {
    add(&world, credential(CredentialKind::Link, "ana", 1, None)).await;
    let redeem = |digest| {
        let session = credential(CredentialKind::Session, "ana", digest, None);
        Change::by_server(Operation::StartSession(Box::new(start(session, SignIn::Link([1; 32])))))
    };
    let (first, second) = tokio::join!(world.store.commit(redeem(2)), world.store.commit(redeem(3)));
    let won = [first.is_ok(), second.is_ok()];
    assert_eq!(won.iter().filter(|won| **won).count(), 1);
    let digest = if won[0] { 2 } else { 3 };
    let (session, user) = world.store.credential(&[digest; 32]).await.expect("reads").expect("a session");
    assert_eq!(session.kind, CredentialKind::Session);
    assert_eq!(user.user.username.as_str(), "ana");
    world.store.commit(Change::by_server(Operation::EndSession { digest: [digest; 32] })).await.expect("ends");
    assert!(world.store.credential(&[digest; 32]).await.expect("reads").is_none());
    let told = world.told(EntryKind::SessionStarted).await;
    let of = |kind: EntryKind| told.iter().filter(move |entry| entry.event.kind == kind).map(|entry| &entry.event.data);
    assert_eq!(of(EntryKind::LinkCreated).map(|data| &data["username"]).collect::<Vec<_>>(), ["ana"]);
    assert_eq!(of(EntryKind::SessionStarted).map(|data| &data["link"]).collect::<Vec<_>>(), [true]);
}

async fn of_very_many_sessions_and_browsers_the_oldest_end(world: World) {
    let at = |n: u8, new: NewCredential| NewCredential {
        digest: [[n; 16], [new.digest[0]; 16]].concat().try_into().expect("32 bytes"),
        credential: Credential { created_at: Timestamp(i64::from(n)), ..new.credential },
    };
    for name in ["ana", "tom"] {
        patch(&world, name, UserPatch::default(), Some("phc")).await;
    }
    let begin = async |name: &str, n: u8, other: u8| {
        let session = at(n, credential(CredentialKind::Session, name, other, None));
        let browser = at(n, credential(CredentialKind::Browser, name, other + 1, None));
        let new = NewSession { browser: Some(browser), ..start(session, SignIn::Password("phc".to_owned())) };
        let change = Change::by_server(Operation::StartSession(Box::new(new)));
        world.store.commit(change).await.expect("it begins");
    };
    begin("tom", 0, 5).await;
    for n in 0..=100 {
        begin("ana", n, 1).await;
    }
    let there = async |n: u8, of: u8| {
        let digest = [[n; 16], [of; 16]].concat().try_into().expect("32 bytes");
        world.store.credential(&digest).await.expect("reads").is_some()
    };
    for of in [1, 2] {
        assert_eq!([there(0, of).await, there(1, of).await, there(100, of).await], [false, true, true]);
        assert!(there(0, of + 4).await, "others keep theirs");
    }
    let told = world.told(EntryKind::SessionEnded).await;
    let ended = told.iter().filter(|entry| entry.event.kind == EntryKind::SessionEnded);
    assert_eq!(ended.map(|entry| &entry.event.data["username"]).collect::<Vec<_>>(), ["ana"]);
}

async fn of_two_new_tokens_only_one_is_the_last_allowed(world: World) {
    let other = world.another().await;
    let token = |n: u8| {
        let new = credential(CredentialKind::Token, "dev", n, None);
        Change::by_server(Operation::AddCredential(Box::new(new)))
    };
    for n in 0..199 {
        world.store.commit(token(n)).await.expect("it is added");
    }
    let (first, second) = tokio::join!(world.store.commit(token(199)), other.commit(token(200)));
    let refused = |answer: &Result<_, _>| matches!(answer, Err(CommitError::Conflict(_)));
    assert!(first.is_ok() && refused(&second) || second.is_ok() && refused(&first), "{first:?} {second:?}");
    assert_eq!(world.store.tokens("dev").await.expect("reads").len(), 200);
    other.close().await;
}

async fn a_refusal_that_is_not_recorded_still_takes_the_roles(world: World) {
    let account = ProviderAccount { issuer: "https://id.example".to_owned(), subject: "7".to_owned() };
    let username = "ana".parse().expect("a name");
    let link = Operation::LinkAccount { username, account: Some(account.clone()) };
    world.store.commit(Change::by_server(link)).await.expect("it is linked");
    let refuse = async |is_recorded| {
        let refused = RefusedSignIn { account: account.clone(), username: None, trouble: Trouble::Groups, is_recorded };
        world.store.commit(Change::by_server(Operation::RefuseSignIn(Box::new(refused)))).await.expect("is refused");
    };
    refuse(false).await;
    let ana = world.store.user("ana").await.expect("reads").expect("is there");
    assert!(ana.user.roles.is_empty(), "{:?}", ana.user.roles);
    refuse(false).await;
    refuse(true).await;
    let told = world.told(EntryKind::LoginFailed).await;
    assert_eq!(told.iter().filter(|entry| entry.event.kind == EntryKind::LoginFailed).count(), 1);
}

async fn only_admins_change_people(world: World) {
    let change =
        UserChange { username: "ana".parse().expect("a name"), patch: UserPatch::default(), password_hash: None };
    let change = Change { by: Some(actor("dev")), key: None, operation: Operation::UpdateUser(Box::new(change)) };
    let refused = world.store.commit(change).await;
    assert!(matches!(refused, Err(CommitError::Forbidden(_))), "{refused:?}");
}

async fn there_is_always_an_admin(world: World) {
    world.add_user("root", &["admin"]).await;
    let other = world.another().await;
    let update = |by: &str, name: &str, patch: UserPatch| {
        let change = UserChange { username: name.parse().expect("a name"), patch, password_hash: None };
        Change { by: Some(actor(by)), key: None, operation: Operation::UpdateUser(Box::new(change)) }
    };
    let leave = || UserPatch { roles: Some(Vec::new()), ..UserPatch::default() };
    let end = || UserPatch { active: Some(false), ..UserPatch::default() };
    // One admin takes the role from both at the same moment, on two servers; and both leave at the same time.
    for (first, second) in [
        (update("boss", "boss", leave()), update("boss", "root", end())),
        (update("boss", "boss", end()), update("root", "root", leave())),
        (update("boss", "root", leave()), update("root", "boss", leave())),
    ] {
        for _ in 0..5 {
            let (first, second) = tokio::join!(world.store.commit(first.clone()), other.commit(second.clone()));
            let admins = world.store.people().await.expect("reads");
            let admins: Vec<_> = admins.iter().filter(|person| person.has(ADMIN)).collect();
            assert_eq!(admins.len(), 1, "{first:?} {second:?}");
            for name in ["boss", "root"] {
                let back =
                    UserPatch { roles: Some(vec!["admin".to_owned()]), active: Some(true), ..UserPatch::default() };
                world.store.commit(Change { by: None, ..update("boss", name, back) }).await.expect("comes back");
            }
        }
    }
    let last = world.store.commit(update("boss", "root", leave())).await.map(drop);
    last.expect("there is another");
    let last = world.store.commit(update("boss", "boss", end())).await;
    assert!(matches!(last, Err(CommitError::Conflict(_))), "{last:?}");
    other.close().await;
}

async fn a_change_that_cannot_be_written_hurts_only_itself(world: World) {
    add(&world, credential(CredentialKind::Session, "ana", 1, None)).await;
    let mut waiting = tokio::task::JoinSet::new();
    for n in 0..20 {
        let store = world.store.clone();
        // The digest is taken, which only the database knows.
        let twice = credential(CredentialKind::Session, "ana", 1, None);
        let bad = Change::by_server(Operation::AddCredential(Box::new(twice)));
        let change = if n == 10 { bad } else { launch("hello") };
        waiting.spawn(async move { (n == 10, store.commit(change).await) });
    }
    for (bad, answer) in waiting.join_all().await {
        assert_eq!(matches!(answer, Err(CommitError::Failed(_))), bad, "{answer:?}");
    }
    assert_eq!(world.store.counts().await.expect("counts")["runs"], 19);
}

async fn what_only_a_session_may_do_is_refused_to_tokens_in_the_commit(world: World) {
    let boss = person("boss");
    let token = Principal { token: true, roles: [ADMIN.to_owned()].into(), ..boss.clone() };
    let change = |patch: UserPatch, password: Option<&str>| {
        let username = "tom".parse().expect("a name");
        Operation::UpdateUser(Box::new(UserChange { username, patch, password_hash: password.map(str::to_owned) }))
    };
    let roles = |role: &str| UserPatch { roles: Some(vec![role.to_owned()]), ..UserPatch::default() };
    let remove = FactorChange::Remove(None);
    let operations = [
        change(roles(ADMIN), None),
        change(UserPatch::default(), Some("a hash")),
        Operation::ChangeSecondFactor { username: "tom".parse().expect("a name"), change: remove },
        Operation::AddCredential(Box::new(credential(CredentialKind::Token, "boss", 9, None))),
    ];
    for operation in operations {
        let by = |principal: &Principal| Change {
            by: Some(Actor::of(principal.clone())),
            key: None,
            operation: operation.clone(),
        };
        let refused = world.store.commit(by(&token)).await;
        assert!(matches!(&refused, Err(CommitError::Forbidden(_))), "{refused:?}");
        world.store.commit(by(&boss)).await.expect("a session may");
    }
    let ordinary = Change { by: Some(Actor::of(token)), key: None, operation: change(roles("reviewer"), None) };
    world.store.commit(ordinary).await.expect("a token of an admin may change other roles");
}
