//! The saved views of people.

use shared::view::Views;

use super::batch::Table;
use super::db::{Conn, Row, Sql};
use super::{Error, Store};

/// The table of people's views.
pub(super) const VIEWS: Table = Table { name: "views", key: "username", others: "body" };

impl Store {
    /// Returns a person's views.
    pub async fn views(&self, username: &str) -> Result<Views, Error> {
        let sql = Sql::new("SELECT body FROM views WHERE username = ").bind(username);
        let row = self.inner.db.read().await?.fetch_one(sql).await?;
        row.map(|row| views(&row, 0)).transpose().map(Option::unwrap_or_default)
    }
}

impl Conn {
    /// Returns the views of these people.
    pub async fn views_of<'a>(
        &mut self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<(String, Views)>, Error> {
        let sql = Sql::new("SELECT username, body FROM views WHERE username IN (");
        let rows = self.fetch(sql.list(names).push(")")).await?;
        rows.iter().map(|row| Ok((row.text(0)?, views(row, 1)?))).collect()
    }
}

fn views(row: &Row, at: usize) -> Result<Views, Error> {
    serde_json::from_str(&row.text(at)?).map_err(|error| Error::Stored(format!("saved views: {error}")))
}
