//! Writes credentials: removes ended ones, and the oldest sessions and known browsers to make room.

use std::collections::BTreeSet;

use shared::id::Username;
use shared::log::{EventData, SessionEnded};

use super::super::db::{Arg, Conn, Sql};
use super::super::users::{CREDENTIALS, credential_kind, credential_row};
use super::super::{Credential, CredentialKind, Error};
use super::group::{EndedAccess, Group};
use crate::clock::Moment;

/// The largest number of sessions of a person, and of known browsers.
const MAX_SESSIONS: u32 = 100;
const MAX_BROWSERS: u32 = 100;

impl Group {
    /// Writes new credentials and deletes ended ones.
    pub async fn write_credentials(&mut self, conn: &mut Conn, moment: Moment) -> Result<(), Error> {
        let out = &self.out;
        for (name, ended) in &out.ended_access {
            let sql = Sql::new("DELETE FROM credentials WHERE username = ").bind(name.as_str());
            conn.execute(match ended {
                EndedAccess::All => sql,
                EndedAccess::AllButTokensAnd(kept) => sql.push(" AND kind <> 'token' AND digest <> ").bind(kept),
            })
            .await?;
        }
        let digests = out.ended_credentials.iter().map(|digest| vec![Arg::from(digest)]).collect();
        conn.delete_rows(&CREDENTIALS, digests).await?;
        let new = out.new_credentials.iter().map(|(digest, credential)| credential_row(digest, credential)).collect();
        conn.insert(&CREDENTIALS, new, "").await?;
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
                let kind = credential_kind(kind);
                sql.push("FROM credentials WHERE username = ").bind(username.as_str()).push(" AND kind = ").bind(kind)
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
