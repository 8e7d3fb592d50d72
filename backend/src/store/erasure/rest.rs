//! Other data that name a person, and do not belong to a run.

use uuid::Uuid;

use super::super::db::{Conn, Sql};
use super::super::queue::unused_classes;
use super::super::{Error, Store};
use super::{Erasing, place};

/// The largest number of rows that one transaction removes.
const AT_ONCE: u32 = 500;
/// The full-text indexes in SQLite. They keep removed words until they are merged.
const WORDS: [&str; 3] = ["log_terms", "pending_words", "past_words"];

impl Store {
    /// Removes some other data that name the person. Returns whether there are more.
    pub async fn erase_rest(&self, erasing: &Erasing) -> Result<bool, Error> {
        let erasing = erasing.clone();
        let unused = unused_classes(&self.inner.db).await?;
        let erase = async move |conn| erase_rest(conn, &erasing, &unused).await;
        self.inner.db.write(erase).await
    }

    /// Merges a part of a full-text index, so that it loses removed words. `first` begins a merge of the whole index.
    /// Returns whether there is more to merge. `None` if there is no index with this number.
    pub async fn forget_words(&self, index: usize, first: bool) -> Result<Option<bool>, Error> {
        let Some(table) = WORDS.get(index) else { return Ok(None) };
        let merge = async move |mut conn: Conn| {
            let more = conn.merge_words(table, first).await?;
            conn.commit().await?;
            Ok(Some(more))
        };
        self.inner.db.write(merge).await
    }

    /// Deletes the person's previous name and account, which nothing has any more.
    pub async fn end_erasure(&self, erasing: &Erasing) -> Result<(), Error> {
        let sql = Sql::new("UPDATE erased_users SET username = NULL, provider_account = NULL WHERE pseudonym = ");
        self.inner.db.execute(sql.bind(erasing.pseudonym.as_str())).await?;
        Ok(())
    }
}

/// Removes some data that name the person and belong to no run. Returns whether there are more.
async fn erase_rest(mut conn: Conn, erasing: &Erasing, unused: &[Uuid]) -> Result<bool, Error> {
    let more = conn.forget_classes(unused).await?;
    let (name, pseudonym) = (erasing.username.as_str(), erasing.pseudonym.as_str());
    let sql = Sql::new("DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE target = ").bind(name);
    let sql = sql.push(" AND channel IN ('slack', 'email', 'callback') LIMIT ").bind(AT_ONCE).push(")");
    let removed = conn.execute(sql).await?;
    // Nothing is posted for a person who may not log in. Their runs have the pseudonym by now, if they could be read.
    let sql = Sql::new("DELETE FROM run_callbacks WHERE run_id IN (SELECT c.run_id FROM runs r JOIN run_callbacks c ");
    let sql = sql.push("ON c.run_id = r.id WHERE r.carries_question = 0 AND r.requested_by IN (");
    let sql = sql.list([name, pseudonym]);
    let callbacks = conn.execute(sql.push(") LIMIT ").bind(AT_ONCE).push(")")).await?;
    for (table, column) in [("archived_runs", "requested_by"), ("flows", "saved_by")] {
        let sql = Sql::new("UPDATE ").push(table).push(" SET ").push(column).push(" = ").bind(pseudonym);
        conn.execute(sql.push(" WHERE ").push(column).push(" = ").bind(name)).await?;
    }
    conn.execute(answers(&conn, erasing)).await?;
    conn.commit().await?;
    Ok(more || removed.max(callbacks) >= u64::from(AT_ONCE))
}

/// Deletes results under idempotency keys that were returned to the person, or that are about or name them, except for
/// those that belong to runs. A repeated request then finds no such person.
fn answers(conn: &Conn, erasing: &Erasing) -> Sql {
    let name = &erasing.username;
    // Keys of the person are deleted even if their result belongs to a run; keys of others are kept with that result.
    let sql = place(conn, Sql::new("DELETE FROM idempotency WHERE "), "scope", &format!("{name} ")).push(" = 1 OR ");
    let sql = place(conn, sql, "scope || '/'", &format!("/users/{name}/")).push(" > 0 OR (run_id IS NULL AND ");
    place(conn, sql, "answer", &erasing.quoted()).push(" > 0)")
}
