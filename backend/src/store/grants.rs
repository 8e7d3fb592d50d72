//! Grants, as they are stored: by their scope.

use shared::grant::{Grant, GrantScope};
use shared::id::{FlowId, GrantId, RunId, Username};
use shared::time::Timestamp;

use super::batch::Table;
use super::db::{Arg, Conn, Row, Sql};
use super::{Error, Store};

/// Where [`grant_row`]s are.
pub(super) const GRANTS: Table = Table { name: "grants", key: "id", others: "place, given_by, expires_at, body" };

/// How many grants are read at once: more cannot be given.
const MAX_READ: u32 = 2000;

impl Store {
    /// The grants that hold now, the newest first: of one person, or all.
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
    /// The grants that hold at these places. Where servers write side by side, they are held until the transaction ends:
    /// a grant is revoked before it is used, or after.
    pub async fn grants_at(&mut self, places: Vec<String>, now: Timestamp) -> Result<Vec<Grant>, Error> {
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let sql = Sql::new("SELECT body FROM grants WHERE place IN (").list(places.iter().map(String::as_str));
        let sql = sql.push(") AND expires_at > ").bind(now.0).push(" ORDER BY id");
        let sql = sql.push(if self.locks_rows() { " FOR SHARE" } else { "" });
        self.fetch(sql).await?.iter().map(grant).collect()
    }

    /// All grants of these people, which are not used until the transaction ends.
    pub async fn grants_of<'a>(&mut self, givers: impl IntoIterator<Item = &'a str>) -> Result<Vec<Grant>, Error> {
        let sql = Sql::new("SELECT body FROM grants WHERE given_by IN (").list(givers).push(") ORDER BY id");
        let sql = sql.push(if self.locks_rows() { " FOR UPDATE" } else { "" });
        self.fetch(sql).await?.iter().map(grant).collect()
    }

    /// Grants by id.
    pub async fn grants(&mut self, ids: impl IntoIterator<Item = GrantId>) -> Result<Vec<Grant>, Error> {
        let ids = ids.into_iter().map(|id| id.0);
        let sql = Sql::new("SELECT body FROM grants WHERE id IN (").list(ids).push(")");
        self.fetch(sql).await?.iter().map(grant).collect()
    }
}

/// Where a grant of one run holds.
pub(super) fn of_run(run: RunId) -> String {
    format!("run:{run}")
}

/// Where a grant of a version of a flow holds.
pub(super) fn of_flow(flow: &FlowId, version: u32) -> String {
    format!("flow:{version}:{flow}")
}

/// Where a grant holds.
pub(super) fn place(grant: &Grant) -> String {
    match grant.scope {
        GrantScope::Run => of_run(grant.run_id),
        GrantScope::Flow => of_flow(&grant.flow, grant.version),
    }
}

/// A grant's row, as it is written.
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
