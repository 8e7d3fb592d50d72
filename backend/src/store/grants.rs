//! Stored grants, by scope.

use shared::grant::{Grant, GrantScope};
use shared::id::{FlowId, GrantId, RunId, Username};
use shared::time::Timestamp;

use super::batch::Table;
use super::db::{Arg, Conn, Row, Sql};
use super::{Error, Store};

pub(super) const GRANTS: Table = Table { name: "grants", key: "id", others: "place, given_by, expires_at, body" };

/// The largest number of grants that are read at once; no more can be given.
const MAX_READ: u32 = 2000;

impl Store {
    /// Returns the grants that are valid now, newest first: those of one person, or all.
    pub async fn grants(&self, giver: Option<&Username>) -> Result<Vec<Grant>, Error> {
        let sql = Sql::new("SELECT body FROM grants WHERE expires_at > ").bind(self.inner.clock.now().0);
        let sql = match giver {
            Some(giver) => sql.push(" AND given_by = ").bind(giver.as_str()),
            None => sql,
        };
        let sql = sql.push(" ORDER BY id DESC LIMIT ").bind(MAX_READ);
        self.inner.db.read().await?.fetch(sql).await?.iter().map(grant).collect()
    }
}

impl Conn {
    /// Returns the valid grants with these scopes. In PostgreSQL their rows are locked until the transaction ends: a
    /// grant is revoked either before it is used, or after.
    pub async fn grants_at(&mut self, places: Vec<String>, now: Timestamp) -> Result<Vec<Grant>, Error> {
        let sql = Sql::new("SELECT body FROM grants WHERE place").among(places);
        let sql = sql.push(" AND expires_at > ").bind(now.0).push(" ORDER BY id");
        let sql = sql.push(if self.locks_rows() { " FOR SHARE" } else { "" });
        self.fetch(sql).await?.iter().map(grant).collect()
    }

    /// Returns all grants that these people have given. In PostgreSQL nobody can use them until the transaction ends.
    pub async fn grants_of<'a>(&mut self, givers: impl IntoIterator<Item = &'a str>) -> Result<Vec<Grant>, Error> {
        let sql = Sql::new("SELECT body FROM grants WHERE given_by").among(givers).push(" ORDER BY id");
        let sql = sql.push(if self.locks_rows() { " FOR UPDATE" } else { "" });
        self.fetch(sql).await?.iter().map(grant).collect()
    }

    pub async fn grants(&mut self, ids: impl IntoIterator<Item = GrantId>) -> Result<Vec<Grant>, Error> {
        let sql = Sql::new("SELECT body FROM grants WHERE id").among(ids.into_iter().map(|id| id.0));
        self.fetch(sql).await?.iter().map(grant).collect()
    }
}

/// The stored scope of a grant for one run.
pub(super) fn of_run(run: RunId) -> String {
    format!("run:{run}")
}

/// The stored scope of a grant for a version of a flow.
pub(super) fn of_flow(flow: &FlowId, version: u32) -> String {
    format!("flow:{version}:{flow}")
}

/// The stored scope of a grant.
pub(super) fn place(grant: &Grant) -> String {
    match grant.scope {
        GrantScope::Run => of_run(grant.run_id),
        GrantScope::Flow => of_flow(&grant.flow, grant.version),
    }
}

pub(super) fn grant_row(grant: &Grant) -> Vec<Arg> {
    vec![
        grant.id.0.into(),
        place(grant).into(),
        grant.given_by.as_str().into(),
        grant.expires_at.0.into(),
        serde_json::json!(grant).to_string().into(),
    ]
}

fn grant(row: &Row) -> Result<Grant, Error> {
    serde_json::from_str(&row.text(0)?).map_err(|error| Error::Stored(format!("a grant: {error}")))
}
