//! Erasing a person. The account loses its personal data in one commit ([`super::Operation::EraseUser`]). The rest
//! follows run by run ([`super::Operation::EraseEntries`]), each step with its entries in the audit log. Each step
//! looks for what still names the person, so a killed server continues where it was.

mod document;
mod find;
mod redact;
mod rest;
mod step;
mod user_data_paths;

use serde_json::json;
use shared::api::Erasure;
use shared::id::Username;

use super::archives::{signed, unsigned};
use super::db::{Conn, Row, Sql};
use super::{Error, ProviderAccount, Store};

pub use find::RunPlace;
pub use step::{ErasedRow, ErasureStep, Prepared};

/// A person whose account was erased, and whose name may still be elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasing {
    /// Their previous name, or the new one if only the account is still looked for.
    pub username: Username,
    /// Their new name.
    pub pseudonym: Username,
    /// The account at the identity provider that they had last.
    pub account: Option<ProviderAccount>,
}

impl Erasing {
    /// Their name as JSON has it: every value that names them contains this.
    fn quoted(&self) -> String {
        format!("\"{}\"", self.username)
    }

    /// The texts of which every log row about them contains one: their name, and their id at the identity provider, with
    /// which they may have tried to sign in under another name.
    fn marks(&self) -> Vec<String> {
        let subject = self.account.as_ref().map(|account| format!("\"subject\":{}", json!(account.subject)));
        [self.quoted()].into_iter().chain(subject).collect()
    }
}

impl Store {
    /// Returns the people whose names or accounts are still being removed. A server of an earlier version looks only for
    /// the name, and leaves the account to one that knows it.
    pub async fn being_erased(&self) -> Result<Vec<Erasing>, Error> {
        let sql = Sql::new("SELECT COALESCE(username, pseudonym), pseudonym, provider_account FROM erased_users ");
        let sql = sql.push("WHERE username IS NOT NULL OR provider_account IS NOT NULL ORDER BY at");
        let rows = self.inner.db.read().await?.fetch(sql).await?;
        let stored = |error: &dyn std::fmt::Display| Error::Stored(format!("an erased person: {error}"));
        let name = |text: String| text.parse::<Username>().map_err(|error| stored(&error));
        let erasing = rows.iter().map(|row| {
            let account = row.text_opt(2)?;
            Ok(Erasing {
                username: name(row.text(0)?)?,
                pseudonym: name(row.text(1)?)?,
                account: account.map(|text| text.parse()).transpose().map_err(|error: &str| stored(&error))?,
            })
        });
        erasing.collect()
    }

    /// Returns the progress of an erasure, by the person's new name, or by their previous name until it is done. `None`
    /// if nobody of that name was erased.
    pub async fn erasure(&self, name: &str) -> Result<Option<Erasure>, Error> {
        let sql = Sql::new("SELECT pseudonym, username, provider_account FROM erased_users WHERE pseudonym = ");
        let sql = sql.bind(name);
        let mut conn = self.inner.db.read().await?;
        let Some(row) = conn.fetch_one(sql.push(" OR username = ").bind(name)).await? else { return Ok(None) };
        let (pseudonym, name) = (row.text(0)?, row.text_opt(1)?);
        let done = name.is_none() && row.text_opt(2)?.is_none();
        let names = [Some(&pseudonym), name.as_ref()].into_iter().flatten();
        let sql = Sql::new("SELECT COUNT(*) FROM archived_runs WHERE requested_by").among(names);
        let archived = conn.first(sql, Row::int).await?.unwrap_or(0);
        let username = pseudonym.parse().map_err(|error| Error::Stored(format!("an erased person: {error}")))?;
        Ok(Some(Erasure { username, done, archived_runs: unsigned(archived) }))
    }

    /// Returns the numbers of `entries.erased` entries above `after`, in order, each with the number of its log row.
    pub async fn erasures(&self, after: u64, limit: u32) -> Result<Vec<(u64, i64)>, Error> {
        let sql = Sql::new("SELECT number, seq FROM erasures WHERE number > ").bind(signed(after));
        let sql = sql.push(" ORDER BY number LIMIT ").bind(limit);
        let rows = self.inner.db.read().await?.fetch(sql).await?;
        rows.iter().map(|row| Ok((unsigned(row.int(0)?), row.int(1)?))).collect()
    }
}

impl Conn {
    /// Returns the number of the newest `entries.erased` entry, or 0 if there is none.
    pub async fn last_erasure(&mut self) -> Result<u64, Error> {
        let last = self.first(Sql::new("SELECT COALESCE(MAX(number), 0) FROM erasures"), Row::int).await?;
        Ok(last.map_or(0, unsigned))
    }
}

/// Adds the position of a text in a column, from 1, or 0 if the column does not contain it.
fn place(conn: &Conn, sql: Sql, column: &str, text: &str) -> Sql {
    let function = if conn.is_postgres() { "strpos(" } else { "instr(" };
    sql.push(function).push(column).push(", ").bind(text).push(")")
}
