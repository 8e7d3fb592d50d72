//! PostgreSQL: the locks of a group, taken in ascending order before anything is written. Two groups that share a run
//! follow each other, and never deadlock. The lock of the log comes after all of them, with the first log row.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};
use shared::id::{ReviewId, RunId};

use super::super::db::{Conn, Sql};
use super::super::{Change, Error, Operation, SignIn};
use super::named::Named;

/// The key of an advisory lock, and whether the lock is exclusive.
pub(super) type Lock = (i64, bool);

/// The number of locks per statement. PostgreSQL limits the columns of a query to 1664.
const AT_ONCE: usize = 1000;

/// Begins the transaction of a group with its locks. `named` has the objects that its changes name, `run_of` the runs
/// of their reviews.
pub(super) async fn take(
    conn: &mut Conn,
    changes: &[Change],
    named: &Named<'_>,
    run_of: &BTreeMap<ReviewId, RunId>,
) -> Result<Vec<Lock>, Error> {
    let mut keys = Keys::of(named, changes);
    for run in run_of.values() {
        keys.run(*run);
    }
    if !named.tokens.is_empty() {
        let tokens = named.tokens.iter().copied();
        let sql = Sql::new("SELECT digest FROM credentials WHERE id").among(tokens);
        for row in conn.fetch(sql).await? {
            keys.credential(&row.blob(0)?, true);
        }
    }
    for deputy in conn.deputies_of(named.deputyships.iter().copied()).await? {
        keys.user(&deputy.user.username, true);
    }
    for change in changes {
        // The deputies of an erased person are written, too. No deputy can be added after this: naming one takes the
        // lock of the person.
        if let Operation::EraseUser(name) = &change.operation {
            for deputy in conn.deputies_naming(name).await? {
                keys.user(&deputy.user.username, true);
            }
        }
    }
    let locks: Vec<Lock> = keys.0.into_iter().collect();
    conn.begin_with(&statements(&locks)).await?;
    Ok(locks)
}

/// The statements that take locks in their order, which is ascending.
pub(super) fn statements(locks: &[Lock]) -> String {
    let call = |(key, alone): &Lock| format!("pg_advisory_xact_lock{}({key})", if *alone { "" } else { "_shared" });
    let selects = locks.chunks(AT_ONCE).map(|locks| {
        let calls: Vec<String> = locks.iter().map(call).collect();
        format!("SELECT {}; ", calls.join(", "))
    });
    selects.collect()
}

/// The keys of locks, each with whether the lock is exclusive.
#[derive(Default)]
struct Keys(BTreeMap<i64, bool>);

impl Keys {
    fn of(named: &Named<'_>, changes: &[Change]) -> Self {
        let mut keys = Self::default();
        named.users.iter().for_each(|(name, alone)| keys.user(name, *alone));
        named.credentials.iter().for_each(|(digest, alone)| keys.credential(*digest, *alone));
        named.runs.iter().for_each(|run| keys.run(*run));
        for (scope, key) in &named.keys {
            keys.add("key", format!("{scope}\0{key}").as_bytes(), true);
        }
        // An account at the provider may belong to one person only.
        named.accounts.iter().for_each(|account| keys.add("account", account.to_string().as_bytes(), true));
        named.saved.iter().for_each(|flow| keys.add("flow", flow.as_bytes(), true));
        named.grants.iter().for_each(|grant| keys.add("grant", grant.0.as_bytes(), true));
        named.slack_users.iter().for_each(|id| keys.add("slack", id.as_bytes(), true));
        named.tokens.iter().for_each(|token| keys.add("token", token.as_bytes(), true));
        for change in changes {
            keys.beside(change);
        }
        keys
    }

    /// Adds locks on what a change does not name: objects that it creates, and objects that it reads as a whole.
    fn beside(&mut self, change: &Change) {
        match &change.operation {
            Operation::Ask { .. } => {
                // The pending questions of a person are counted: of two new ones, only one may be the last allowed.
                if let Some(actor) = &change.by {
                    self.add("asker", actor.principal.username.as_bytes(), true);
                }
            }
            Operation::UpdateUser(user) if user.takes_admin() => self.admins(),
            Operation::RefuseSignIn(_) => self.admins(),
            Operation::AddCredential(new) => {
                self.credential(&new.digest, true);
                // The tokens of a person are counted: of two new ones, only one may be the last allowed.
                self.add("tokens", new.credential.username.as_bytes(), true);
            }
            Operation::StartSession(new) => {
                self.credential(&new.session.digest, true);
                new.browser.iter().for_each(|browser| self.credential(&browser.digest, true));
                if matches!(&new.by, SignIn::Provider(by) if by.takes_admin()) {
                    self.admins();
                }
            }
            Operation::ArchiveRuns(archive) => archive.runs.iter().for_each(|run| self.run(run.id)),
            Operation::EraseEntries(new) => {
                self.add("erasures", &[], true);
                new.step.run.iter().for_each(|(run, _)| self.run(*run));
            }
            _ => {}
        }
    }

    fn run(&mut self, run: RunId) {
        self.add("run", run.0.as_bytes(), true);
    }

    /// People are locked shared by changes that act in their name, and exclusively by changes of the person, so that
    /// rights hold until the commit.
    fn user(&mut self, name: &str, alone: bool) {
        self.add("user", name.as_bytes(), alone);
    }

    fn credential(&mut self, digest: &[u8], alone: bool) {
        self.add("credential", digest, alone);
    }

    /// Keeps two changes from removing the last two admins at the same time.
    fn admins(&mut self) {
        self.add("admins", &[], true);
    }

    fn add(&mut self, kind: &str, name: &[u8], alone: bool) {
        let digest = Sha256::new().chain_update(kind).chain_update([0]).chain_update(name).finalize();
        let mut key = [0; 8];
        key.copy_from_slice(&digest[..8]);
        *self.0.entry(i64::from_be_bytes(key)).or_default() |= alone;
    }
}
