//! Credentials: how many a person may have. Writes them, removes ended ones, and removes the oldest sessions and known
//! browsers to make room.

use std::collections::BTreeSet;

use shared::id::Username;
use shared::log::{EventData, SessionEnded};
use shared::time::Timestamp;

use super::super::db::{Arg, Conn, Sql};
use super::super::users::{CREDENTIALS, credential_row};
use super::super::{Change, CommitError, Credential, CredentialKind, Error, Operation};
use super::group::{EndedAccess, Group};
use crate::clock::Moment;

/// The largest number of sessions of a person, and of known browsers.
const MAX_SESSIONS: u32 = 100;
const MAX_BROWSERS: u32 = 100;
/// The largest number of tokens of a person that have not expired.
const MAX_TOKENS: u64 = 200;

impl Group {
    /// Reads how many tokens those people have who create another one.
    pub async fn load_live_tokens(&mut self, conn: &mut Conn, changes: &[Change], now: Timestamp) -> Result<(), Error> {
        let owners = changes.iter().filter_map(|change| match &change.operation {
            Operation::AddCredential(new) if new.credential.kind == CredentialKind::Token => {
                Some(new.credential.username.as_str())
            }
            _ => None,
        });
        let owners: BTreeSet<&str> = owners.collect();
        let sql = Sql::new("SELECT username, COUNT(*) FROM credentials WHERE kind = 'token' AND username")
            .among(owners)
            .push(" AND (expires_at IS NULL OR expires_at > ")
            .bind(now.0)
            .push(") GROUP BY username");
        for row in conn.fetch(sql).await? {
            let owner =
                row.text(0)?.parse().map_err(|error| Error::Stored(format!("the owner of a token: {error}")))?;
            self.live_tokens.insert(owner, u64::try_from(row.int(1)?).unwrap_or(0));
        }
        Ok(())
    }

    /// Counts another token of a person. Fails if they have as many as they may have.
    pub fn count_token(&mut self, owner: &Username) -> Result<(), CommitError> {
        let live = self.live_tokens.entry(owner.clone()).or_default();
        if *live >= MAX_TOKENS {
            return Err(CommitError::Conflict(format!(
                "you have {MAX_TOKENS} tokens, and nobody may have more: revoke those that are not used"
            )));
        }
        *live += 1;
        Ok(())
    }

    /// Writes new and confirmed credentials and deletes ended ones.
    pub async fn write_credentials(&mut self, conn: &mut Conn, moment: Moment) -> Result<(), Error> {
        let out = &self.out;
        for (name, ended) in &out.ended_access {
            let sql = Sql::new("DELETE FROM credentials WHERE username = ").bind(name.as_str());
            conn.execute(match ended {
                EndedAccess::All => sql,
                EndedAccess::AllBut(kept) => sql.push(" AND digest <> ").bind(kept),
                EndedAccess::AllButTokensAnd(kept) => sql.push(" AND kind <> 'token' AND digest <> ").bind(kept),
            })
            .await?;
        }
        let digests = out.ended_credentials.iter().map(|digest| vec![Arg::from(digest)]).collect();
        conn.delete_rows(&CREDENTIALS, digests).await?;
        let new = out.new_credentials.iter().map(|(digest, credential)| credential_row(digest, credential)).collect();
        conn.insert(&CREDENTIALS, new, "").await?;
        for (digest, at) in &out.confirmed_sessions {
            let sql = Sql::new("UPDATE credentials SET confirmed_at = ").bind(at.0);
            conn.execute(sql.push(" WHERE digest = ").bind(digest)).await?;
        }
        self.end_the_oldest(conn, moment).await
    }

    /// Deletes the oldest sessions and known browsers of people who have more than the limit. Emits the end of each
    /// session, so that its sockets end too.
    async fn end_the_oldest(&mut self, conn: &mut Conn, moment: Moment) -> Result<(), Error> {
        let of = |credential: &Credential| (credential.kind, credential.username.clone());
        let grown: BTreeSet<(CredentialKind, Username)> = self.out.new_credentials.values().map(of).collect();
        for (kind, username) in grown {
            let most = match kind {
                CredentialKind::Session => MAX_SESSIONS,
                CredentialKind::Browser => MAX_BROWSERS,
                // These were created on purpose, or are used up soon.
                CredentialKind::Token | CredentialKind::Link | CredentialKind::SignIn => continue,
            };
            let theirs = |sql: Sql| {
                let sql = sql.push("FROM credentials WHERE username = ").bind(username.as_str());
                sql.push(" AND kind = ").bind(<&str>::from(kind))
            };
            let sql = theirs(theirs(Sql::new("DELETE ")).push(" AND digest NOT IN (SELECT digest "));
            let sql = sql.push(" ORDER BY created_at DESC, digest LIMIT ").bind(most).push(") RETURNING kind");
            let ended = conn.fetch(sql).await?;
            if kind == CredentialKind::Session {
                for _ in ended {
                    let ended = EventData::SessionEnded(SessionEnded { username: username.clone() });
                    self.emit_by(Some(&username), &ended, moment);
                }
            }
        }
        Ok(())
    }
}
