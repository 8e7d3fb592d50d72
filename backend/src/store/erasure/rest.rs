//! The other data that name a person, which do not belong to a run.

use super::super::db::{Conn, Sql};
use super::super::{Error, Store};
use super::{Erasing, place};

/// How many rows one transaction removes at most.
const AT_ONCE: u32 = 500;
/// The full-text indexes of SQLite: they keep words that were taken out until they are merged.
const WORDS: [&str; 3] = ["log_terms", "pending_words", "past_words"];

impl Store {
    /// Removes some of what else names the person; true: there is more.
    pub async fn erase_rest(&self, erasing: &Erasing) -> Result<bool, Error> {
        let erasing = erasing.clone();
        let erase = async move |conn| erase_rest(conn, &erasing).await;
        self.inner.db.write(erase).await
    }

    /// Lets a full-text index forget some of the words that were taken out of it; `first`: all of it is to be looked at.
    /// True: there is more. None: there are not so many indexes.
    pub async fn forget_words(&self, index: usize, first: bool) -> Result<Option<bool>, Error> {
        let Some(table) = WORDS.get(index) else { return Ok(None) };
        let merge = async move |mut conn: Conn| {
            let more = conn.merge_words(table, first).await?;
            conn.commit().await?;
            Ok(Some(more))
        };
        self.inner.db.write(merge).await
    }

    /// Forgets what the person was called: nothing has it any more.
    pub async fn end_erasure(&self, erasing: &Erasing) -> Result<(), Error> {
        let sql = Sql::new("UPDATE erased_users SET username = NULL WHERE pseudonym = ");
        self.inner.db.execute(sql.bind(erasing.pseudonym.as_str())).await?;
        Ok(())
    }
}

/// Removes some of what names the person and belongs to no run's record; true: there is more.
async fn erase_rest(mut conn: Conn, erasing: &Erasing) -> Result<bool, Error> {
    let more = conn.forget_classes().await?;
    let (name, pseudonym) = (erasing.username.as_str(), erasing.pseudonym.as_str());
    let sql = Sql::new("DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE target = ").bind(name);
    let sql = sql.push(" AND channel IN ('slack', 'email') LIMIT ").bind(AT_ONCE).push(")");
    let removed = conn.execute(sql).await?;
    for (table, column) in [("archived_runs", "requested_by"), ("flows", "saved_by")] {
        let sql = Sql::new("UPDATE ").push(table).push(" SET ").push(column).push(" = ").bind(pseudonym);
        conn.execute(sql.push(" WHERE ").push(column).push(" = ").bind(name)).await?;
    }
    conn.execute(answers(&conn, erasing)).await?;
    conn.commit().await?;
    Ok(more || removed >= u64::from(AT_ONCE))
}

/// What was answered under idempotency keys: to the person, of the person, or showing the person, but for what belongs to
/// runs. Whoever asks again is told that there is no such person.
fn answers(conn: &Conn, erasing: &Erasing) -> Sql {
    let name = &erasing.username;
    // A key that belongs to a run's answer and is theirs goes, and one of somebody else's stays with what it answers.
    let sql = place(conn, Sql::new("DELETE FROM idempotency WHERE "), "scope", &format!("{name} ")).push(" = 1 OR ");
    let sql = place(conn, sql, "scope || '/'", &format!("/users/{name}/")).push(" > 0 OR (run_id IS NULL AND ");
    place(conn, sql, "answer", &erasing.quoted()).push(" > 0)")
}
