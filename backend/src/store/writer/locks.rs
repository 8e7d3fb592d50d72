//! PostgreSQL: the locks of a group, taken in ascending order before anything is written. Two groups that share a run
//! follow each other, and never deadlock. The lock of the log comes after them all, with its first row.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::super::db::{Arg, Conn, Sql};
use super::super::driver_error::DriverError;
use super::super::{Change, Error, Operation, ProviderAccount, SignIn};
use crate::engine::Input;
use shared::id::{ReviewId, RunId};

/// The key of an advisory lock, and whether it is taken alone.
pub(super) type Lock = (i64, bool);

/// Takes the locks of a group. `run_of`: the runs of the reviews that are named.
pub(super) async fn take(
    conn: &mut Conn,
    changes: &[Change],
    run_of: &BTreeMap<ReviewId, RunId>,
) -> Result<Vec<Lock>, Error> {
    let mut keys = Keys::default();
    let mut tokens = Vec::new();
    let mut deputyships = Vec::new();
    let mut erased = Vec::new();
    for change in changes {
        keys.of(change);
        match &change.operation {
            Operation::RevokeToken { id, .. } => tokens.push(id.0),
            Operation::RemoveDeputy(id) => deputyships.push(*id),
            Operation::EraseUser(name) => erased.push(name),
            _ => {}
        }
    }
    if !tokens.is_empty() {
        let sql = Sql::new("SELECT digest FROM credentials WHERE id IN (").list(tokens).push(")");
        for row in conn.fetch(sql).await? {
            keys.credential(&row.blob(0)?, true);
        }
    }
    for deputy in conn.deputies_of(deputyships).await? {
        keys.user(&deputy.user.username, true);
    }
    // Whoever stands in for somebody who is erased is written too. Nobody is added behind this: who names a deputy takes the
    // lock of the person.
    for name in erased {
        for deputy in conn.deputies_naming(name).await? {
            keys.user(&deputy.user.username, true);
        }
    }
    for run in run_of.values() {
        keys.run(run.0);
    }
    let locks: Vec<Lock> = keys.0.into_iter().collect();
    acquire(conn, &locks).await?;
    Ok(locks)
}

/// Takes locks, in ascending order.
pub(super) async fn acquire(conn: &mut Conn, locks: &[Lock]) -> Result<(), DriverError> {
    if locks.is_empty() {
        return Ok(());
    }
    let rows = locks.iter().map(|(key, alone)| vec![Arg::from(*key), Arg::from(*alone)]);
    let sql = Sql::new(
        "SELECT CASE WHEN alone = 1 THEN pg_advisory_xact_lock(key)::text \
         ELSE pg_advisory_xact_lock_shared(key)::text END FROM (SELECT column1 AS key, column2 AS alone FROM (",
    )
    .values(rows)
    .push(") AS v ORDER BY column1 OFFSET 0) AS k");
    conn.fetch(sql).await?;
    Ok(())
}

/// Keys with whether they are taken alone.
#[derive(Default)]
struct Keys(BTreeMap<i64, bool>);

impl Keys {
    fn run(&mut self, run: Uuid) {
        self.add("run", run.as_bytes(), true);
    }

    /// People are shared by those who act, and taken alone by those who change them: rights hold until the commit.
    fn user(&mut self, name: &str, alone: bool) {
        self.add("user", name.as_bytes(), alone);
    }

    fn credential(&mut self, digest: &[u8], alone: bool) {
        self.add("credential", digest, alone);
    }

    /// An account at the provider is one person's, and two admins must not go at once.
    fn account(&mut self, account: &ProviderAccount, takes_admin: bool) {
        self.add("account", account.to_string().as_bytes(), true);
        if takes_admin {
            self.add("admins", &[], true);
        }
    }

    fn add(&mut self, kind: &str, name: &[u8], alone: bool) {
        let digest = Sha256::new().chain_update(kind).chain_update([0]).chain_update(name).finalize();
        let mut key = [0; 8];
        key.copy_from_slice(&digest[..8]);
        *self.0.entry(i64::from_be_bytes(key)).or_default() |= alone;
    }

    fn input(&mut self, input: &Input) {
        if let Some(by) = input.by() {
            self.user(&by.username, false);
        }
        if let Input::Delegate { to, .. } = input {
            self.user(to, false);
        }
    }

    fn of(&mut self, change: &Change) {
        if let Some(actor) = &change.by {
            self.user(&actor.principal.username, false);
            if let Some(digest) = &actor.credential {
                self.credential(digest, false);
            }
        }
        if let Some(key) = &change.key {
            self.add("key", format!("{}\0{}", key.scope, key.key).as_bytes(), true);
        }
        match &change.operation {
            Operation::Launch { run, .. } | Operation::GiveFeedback { run, .. } => self.run(run.0),
            Operation::Ask { run, .. } => {
                self.run(run.0);
                // What waits of somebody is counted: two of their questions must not both be the last.
                if let Some(actor) = &change.by {
                    self.add("asker", actor.principal.username.as_bytes(), true);
                }
            }
            Operation::Run { run, input } => {
                self.run(run.0);
                self.input(input);
            }
            Operation::Review { input, .. } => {
                self.input(input);
            }
            Operation::SaveFlow(flow) => self.add("flow", flow.flow.id.as_bytes(), true),
            Operation::CreateUser(record) => self.user(&record.user.username, true),
            Operation::UpdateUser(user) => {
                self.user(&user.username, true);
                // Two admins must not go at once.
                if user.takes_admin() {
                    self.add("admins", &[], true);
                }
            }
            // The deputy is written, and the person must stay who they are.
            Operation::NameDeputy(span) => {
                self.user(&span.person, false);
                self.user(&span.deputy, true);
            }
            // Whose row it stands in is found before the locks are taken.
            Operation::RemoveDeputy(_) | Operation::AcceptHead { .. } => {}
            Operation::ArchiveRuns(archive) => archive.runs.iter().for_each(|run| self.run(run.id.0)),
            Operation::EraseEntries(new) => {
                self.add("erasures", &[], true);
                new.step.run.iter().for_each(|(run, _)| self.run(run.0));
            }
            Operation::RevokeGrant(id) => self.add("grant", id.0.as_bytes(), true),
            Operation::ChooseNotifications(chosen) => {
                self.user(&chosen.username, true);
                if let Some(id) = &chosen.notifications.slack_user_id {
                    self.add("slack", id.as_bytes(), true);
                }
            }
            Operation::AddCredential(new) => {
                self.user(&new.credential.username, false);
                self.credential(&new.digest, true);
            }
            Operation::StartSession(new) => {
                // A proof of the second factor is used up in the person's row.
                self.user(&new.session.credential.username, new.proof.is_some());
                self.credential(&new.session.digest, true);
                match &new.by {
                    SignIn::Password(_) => {}
                    SignIn::Link(link) => self.credential(link, true),
                    SignIn::Provider(by) => {
                        self.user(&new.session.credential.username, true);
                        self.account(&by.account, by.takes_admin());
                        self.credential(&by.attempt.digest, true);
                    }
                }
                let others = new.replaces.iter().chain(new.browser.as_ref().map(|browser| &browser.digest));
                others.for_each(|digest| self.credential(digest, true));
            }
            Operation::RefuseSignIn(refused) => {
                refused.username.iter().for_each(|name| self.user(name, true));
                self.account(&refused.account, true);
            }
            Operation::ChangePassword(_) => {
                if let Some(actor) = &change.by {
                    self.user(&actor.principal.username, true);
                }
            }
            Operation::ChangeSecondFactor { username, .. } | Operation::EraseUser(username) => {
                self.user(username, true);
            }
            Operation::LinkAccount { username, account } => {
                self.user(username, true);
                if let Some(account) = account {
                    self.account(account, false);
                }
            }
            Operation::EndSession { digest } => self.credential(digest, true),
            Operation::RevokeToken { id, .. } => self.add("token", id.0.as_bytes(), true),
            Operation::LoginFailed { username } => self.user(username, false),
        }
    }
}
