//! The saved views of people. Each view is read by itself: one that a later version has saved may be unreadable, and must
//! not keep the others from being shown or replaced. It is kept for that version.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::view::{MAX_VIEWS, View, Views};

use super::batch::Table;
use super::db::{Conn, Row, Sql};
use super::unreadable::reason;
use super::{Error, Store};

/// The table of people's views.
pub(super) const VIEWS: Table = Table { name: "views", key: "username", others: "body" };

/// The stored form of [`Views`].
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct StoredViews {
    pub revision: u64,
    views: Vec<Value>,
}

impl StoredViews {
    /// Returns the next revision, with these views in place of those that can be read. The others follow, as far as there
    /// is room.
    pub fn replaced_by(self, views: &[View]) -> serde_json::Result<Self> {
        let mut replaced = views.iter().map(serde_json::to_value).collect::<serde_json::Result<Vec<_>>>()?;
        let unreadable = self.views.into_iter().filter(|view| View::deserialize(view).is_err());
        replaced.extend(unreadable.take(MAX_VIEWS.saturating_sub(views.len())));
        Ok(Self { revision: self.revision + 1, views: replaced })
    }
}

impl Store {
    /// Returns a person's views, without those that cannot be read.
    pub async fn views(&self, username: &str) -> Result<Views, Error> {
        let sql = Sql::new("SELECT body FROM views WHERE username = ").bind(username);
        let Some(row) = self.inner.db.read().await?.fetch_one(sql).await? else { return Ok(Views::default()) };
        let StoredViews { revision, views } = stored(&row, 0)?;
        let views = views.into_iter().filter_map(|view| serde_json::from_value(view).inspect_err(report).ok());
        Ok(Views { revision, views: views.collect() })
    }
}

impl Conn {
    /// Returns the stored views of these people.
    pub async fn views_of<'a>(
        &mut self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<(String, StoredViews)>, Error> {
        let sql = Sql::new("SELECT username, body FROM views WHERE username IN (");
        let rows = self.fetch(sql.list(names).push(")")).await?;
        rows.iter().map(|row| Ok((row.text(0)?, stored(row, 1)?))).collect()
    }
}

/// Reads stored views. What cannot be read at all is as if there were none.
fn stored(row: &Row, at: usize) -> Result<StoredViews, Error> {
    Ok(serde_json::from_str(&row.text(at)?).inspect_err(report).unwrap_or_default())
}

fn report(error: &serde_json::Error) {
    tracing::error!(error = %reason(error), "a saved view cannot be read");
}
