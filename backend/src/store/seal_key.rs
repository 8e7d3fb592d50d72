//! The public key of this database's seals. The first server registers it, so that a server with another key notices
//! before it writes or seals anything.

use super::db::{Conn, Row, Sql};
use super::{Error, Store};

impl Store {
    /// Returns the registered key, if there is one.
    pub async fn seal_key(&self) -> Result<Option<String>, Error> {
        Ok(self.inner.db.read().await?.first(Sql::new("SELECT seal_key FROM meta"), Row::text_opt).await?.flatten())
    }

    /// Returns the number of the last log row when the first key was registered: rows up to it may lack an HMAC.
    pub async fn unauthenticated_to(&self) -> Result<i64, Error> {
        let sql = Sql::new("SELECT unauthenticated_to FROM meta");
        Ok(self.inner.db.read().await?.first(sql, Row::int_opt).await?.flatten().unwrap_or(0))
    }

    /// Registers a key if none is registered, or in place of one of `in_place_of`. Returns the key that is registered
    /// then.
    pub async fn register_seal_key(&self, key: &str, in_place_of: &[String]) -> Result<String, Error> {
        let replaced = in_place_of.iter().map(String::as_str).chain([key]);
        let sql = Sql::new("UPDATE meta SET seal_key = ").bind(key).push(
            ", unauthenticated_to = COALESCE(unauthenticated_to, (SELECT COALESCE(MAX(seq), 0) FROM log)) \
             WHERE seal_key IS NULL OR seal_key IN (",
        );
        let sql = sql.list(replaced).push(")");
        let register = async move |mut conn: Conn| {
            conn.execute(sql).await?;
            let key = conn.first(Sql::new("SELECT seal_key FROM meta"), Row::text).await?;
            conn.commit().await?;
            key.ok_or_else(|| Error::Stored("the table meta is empty".to_owned()))
        };
        self.inner.db.write(register).await
    }
}
