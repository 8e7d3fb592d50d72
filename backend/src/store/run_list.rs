//! Lists of runs, newest first. Those with words are in `run_search`.
//!
//! Each list is read along one index in its order: the runs that a person started, those of a flow, those with a status
//! or an ending, or all. The other conditions, and those without an index (completed runs, runs with reviews of a person),
//! are checked for each run on the way; a page checks a limited number, and the next one continues after them.

use std::collections::BTreeSet;

use serde_json::Value;
use shared::access::{Principal, launched};
use shared::api::{DEFAULT_LIMIT, MAX_LIMIT, Page, RunQuery};
use shared::id::RunId;
use shared::run::{Ending, RunStatus, RunSummary};
use uuid::Uuid;

use super::blobs::{Blobs, Reader, hollow};
use super::cursor::ListPlace;
use super::db::{Conn, DatabaseKind, Row, Sql};
use super::log_index::padded;
use super::runs::{SHOWN, found};
use super::{Error, Store, unreadable, visibility};

/// The parts of a state that hold values of users, which lists do not need.
const BULK: [&str; 8] = ["input", "keys", "context", "decisions", "answers", "branches", "questions", "agent_calls"];
/// If a viewer is involved in at most this many runs, these are looked up. If in more, they are found quickly along the
/// list. Tests use both ways.
const FEW: usize = if cfg!(test) { 3 } else { 2000 };
/// The number of runs that are examined first. It is multiplied by four each time, up to `MAX_BATCH`.
const FIRST_BATCH: u32 = if cfg!(test) { 2 } else { 100 };
const MAX_BATCH: u32 = 1600;
/// The number of runs after which a page ends, even if it is not full.
const MOST_IN_ALL: u32 = 4000;

/// The runs that a viewer may see.
enum VisibleRuns<'a> {
    All,
    /// The runs that they started, if they may see these, and the runs with these ids.
    Few(Option<&'a str>, Vec<Uuid>),
    /// The runs that they started, if they may see these, and many others.
    Many(Option<&'a str>),
}

/// The index along which a list is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Index {
    /// The runs that the named person started.
    Person,
    Flow,
    /// The runs that are listed under this status or ending.
    Status(&'static str),
    All,
}

/// A list of the runs that match a query, apart from its words, and that its viewer may see.
pub(super) struct List<'a> {
    query: &'a RunQuery,
    viewer: &'a Principal,
    visible: VisibleRuns<'a>,
}

impl Store {
    /// Returns the summary of a run. `None` if the run does not exist, or the viewer may not see it.
    pub async fn visible_summary(&self, viewer: &Principal, id: RunId) -> Result<Option<RunSummary>, Error> {
        let viewer = viewer.clone();
        let read = move |mut conn: Conn| async move { conn.visible_summary(&viewer, id).await };
        self.inner.db.read_as_one(read).await
    }
}

/// Returns a page of the runs that the viewer may see. A page may have fewer runs than asked for, or none, and still a
/// cursor: it has examined as many runs as a page may, and the next page continues there.
pub(super) async fn page(conn: &mut Conn, viewer: &Principal, query: &RunQuery) -> Result<Page<RunSummary>, Error> {
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    let place = ListPlace::of(query.cursor.as_deref())?;
    let list = List::of(conn, viewer, query).await?;
    let (places, next) = list.first(conn, place, limit).await?;
    let ids: Vec<_> = places.into_iter().map(|place| place.id).collect();
    Ok(Page { items: conn.summaries(&ids).await?, next_cursor: next.map(ListPlace::encode) })
}

/// Determines which runs a viewer may see.
async fn visible<'a>(conn: &mut Conn, viewer: &'a Principal) -> Result<VisibleRuns<'a>, Error> {
    if visibility::sees_all(viewer) {
        return Ok(VisibleRuns::All);
    }
    let own = launched(viewer, &viewer.username).then_some(&*viewer.username);
    let involved = visibility::involved(viewer);
    let most = u32::try_from(FEW + 1).unwrap_or(u32::MAX);
    // Counted along the index alone: most reviewers are involved in many runs, and looking up the review of each row
    // would cost more than the page itself.
    let sql = Sql::new("SELECT COUNT(*) FROM (SELECT 1 FROM review_audience WHERE subject").among(&involved.keys);
    let rows = conn.first(sql.push(" LIMIT ").bind(most).push(") AS n"), Row::int).await?;
    if rows.is_some_and(|rows| rows >= i64::from(most)) {
        return Ok(VisibleRuns::Many(own));
    }
    let sql = Sql::new("SELECT v.run_id FROM review_audience a CROSS JOIN reviews v WHERE v.id = a.review_id AND ");
    let sql = involved.shows(sql, conn.kind()).push(" LIMIT ").bind(most);
    let rows = conn.fetch(sql).await?;
    // A run occurs once for each of its reviews and audience keys.
    let runs: BTreeSet<_> = rows.iter().map(|row| row.uuid(0)).collect::<Result<_, _>>()?;
    Ok(if rows.len() > FEW { VisibleRuns::Many(own) } else { VisibleRuns::Few(own, runs.into_iter().collect()) })
}

impl<'a> List<'a> {
    pub async fn of(conn: &mut Conn, viewer: &'a Principal, query: &'a RunQuery) -> Result<Self, Error> {
        Ok(Self { query, viewer, visible: visible(conn, viewer).await? })
    }

    /// The word under which the requested runs are listed by status: their ending, since it implies the status, or the
    /// status.
    fn word(&self) -> Option<&'static str> {
        self.query.ending.map(Ending::as_str).or(self.query.status.map(RunStatus::as_str))
    }

    /// The index of the condition that usually leaves the fewest runs.
    fn index(&self) -> Index {
        if self.query.requested_by.is_some() {
            Index::Person
        } else if self.query.flow.is_some() {
            Index::Flow
        } else {
            let listed = self.word().filter(|word| *word != RunStatus::Completed.as_str());
            listed.map_or(Index::All, Index::Status)
        }
    }

    /// Whether the index has all conditions of the query. Every index is ordered by time.
    fn has_one_condition(&self) -> bool {
        match self.index() {
            Index::Person => self.query.flow.is_none() && self.word().is_none(),
            Index::Flow | Index::All => self.word().is_none(),
            Index::Status(_) => true,
        }
    }

    /// Whether the list has so few runs that each can be read: those of a viewer who sees few, or those that are listed
    /// under a status or an ending.
    pub fn is_short(&self) -> bool {
        let is_listed = self.word().is_some_and(|word| word != RunStatus::Completed.as_str());
        is_listed || matches!(self.visible, VisibleRuns::Few(..))
    }

    /// Finds the first matching runs after a place, and the place at which to continue, if there may be more.
    pub async fn first(
        &self,
        conn: &mut Conn,
        place: Option<ListPlace>,
        limit: u32,
    ) -> Result<(Vec<ListPlace>, Option<ListPlace>), Error> {
        match &self.visible {
            VisibleRuns::All if self.has_one_condition() => conn.first_places(self.all(place, limit + 1), limit).await,
            VisibleRuns::Few(own, ids) => conn.first_places(self.few(*own, ids, place, limit + 1), limit).await,
            VisibleRuns::All | VisibleRuns::Many(_) => self.along(conn, place, limit).await,
        }
    }

    /// Selects runs after a place, if no condition needs to be checked run by run.
    fn all(&self, place: Option<ListPlace>, limit: u32) -> Sql {
        let index = self.index();
        if let Index::Status(word) = index {
            let sql = Sql::new("SELECT id, created_at FROM runs_by_status WHERE status = ").bind(word);
            return self.behind(sql, place, limit, "created_at", "id");
        }
        let sql = Sql::new("SELECT id, created_at FROM runs WHERE carries_question = 0");
        self.behind(self.of_index(sql, index), place, limit, "runs.created_at", "runs.id")
    }

    /// Selects the runs that the viewer started, and the runs with these ids, after a place.
    fn few(&self, own: Option<&str>, ids: &[Uuid], place: Option<ListPlace>, limit: u32) -> Sql {
        let runs = "SELECT * FROM (SELECT id, created_at FROM runs WHERE ";
        let sql = Sql::new(runs).push("carries_question = 0 AND requested_by = ").bind(own.map(str::to_owned));
        let of_query = |sql| self.behind(self.of_query(sql, Index::All), place, limit, "runs.created_at", "runs.id");
        let mut sql = of_query(sql).push(") AS o");
        if !ids.is_empty() {
            sql = sql.push(" UNION ").push(runs).push(SHOWN).push(" AND id").among(padded(ids));
            sql = of_query(sql).push(") AS i");
        }
        sql.push(" ORDER BY 2 DESC, 1 DESC LIMIT ").bind(limit)
    }

    /// Adds the condition on the status or the ending.
    fn of_status(&self, sql: Sql) -> Sql {
        match (self.query.ending, self.query.status) {
            // OFFSET keeps PostgreSQL from finding all runs with this ending at once.
            (Some(ending), _) => sql
                .push(" AND EXISTS (SELECT 1 FROM runs_by_status e WHERE e.status = ")
                .bind(ending.as_str())
                .push(" AND e.created_at = runs.created_at AND e.id = runs.id LIMIT 1 OFFSET 0)"),
            (None, Some(status)) => sql.push(" AND runs.status = ").bind(status.as_str()),
            (None, None) => sql,
        }
    }

    /// Finds matching runs by examining one after the other.
    async fn along(
        &self,
        conn: &mut Conn,
        mut place: Option<ListPlace>,
        limit: u32,
    ) -> Result<(Vec<ListPlace>, Option<ListPlace>), Error> {
        let (mut found, mut asked, mut batch) = (Vec::new(), 0, FIRST_BATCH);
        loop {
            let rows = conn.fetch(self.candidates(place, batch, conn.kind())).await?;
            let ended = rows.len() < batch as usize;
            for row in &rows {
                let here = ListPlace { id: row.uuid(0)?, at: row.int(1)? };
                if row.int(2)? == 1 {
                    if found.len() >= limit as usize {
                        return Ok((found, place));
                    }
                    found.push(here);
                }
                place = Some(here);
            }
            asked += batch;
            if ended {
                return Ok((found, None));
            }
            if asked >= MOST_IN_ALL {
                return Ok((found, place));
            }
            batch = (batch * 4).min(MAX_BATCH);
        }
    }

    /// Selects runs after a place along one index, each with whether it matches.
    fn candidates(&self, place: Option<ListPlace>, limit: u32, database: DatabaseKind) -> Sql {
        let index = self.index();
        let sql = Sql::new("SELECT runs.id, runs.created_at, CAST(CASE WHEN true");
        let sql = self.of_visible(self.of_query(sql, index), database).push(" THEN 1 ELSE 0 END AS BIGINT) FROM ");
        let Index::Status(word) = index else {
            let sql = self.of_index(sql.push("runs WHERE runs.carries_question = 0"), index);
            return self.behind(sql, place, limit, "runs.created_at", "runs.id");
        };
        // With CROSS JOIN, SQLite keeps this order.
        let sql = sql.push("runs_by_status s CROSS JOIN runs WHERE runs.id = s.id AND s.status = ").bind(word);
        self.behind(sql, place, limit, "s.created_at", "s.id")
    }

    /// Selects those of these runs that match.
    fn among(&self, ids: &[Uuid], database: DatabaseKind) -> Sql {
        let sql = Sql::new("SELECT runs.id FROM runs WHERE ").push(SHOWN).push(" AND runs.id").among(padded(ids));
        self.of_visible(self.of_query(sql, Index::All), database)
    }

    /// Adds the condition of an index, except for that of a status.
    fn of_index(&self, sql: Sql, index: Index) -> Sql {
        match (index, &self.query.requested_by, &self.query.flow) {
            (Index::Person, Some(by), _) => {
                sql.push(" AND runs.requested_by = ").bind(by.username(&self.viewer.username).as_str())
            }
            (Index::Flow, _, Some(flow)) => sql.push(" AND runs.flow = ").bind(flow.as_str()),
            _ => sql,
        }
    }

    /// Adds the conditions of the query that an index does not have.
    fn of_query(&self, mut sql: Sql, index: Index) -> Sql {
        if !matches!(index, Index::Status(_)) {
            sql = self.of_status(sql);
        }
        let others = [Index::Person, Index::Flow].into_iter().filter(|other| *other != index);
        others.fold(sql, |sql, other| self.of_index(sql, other))
    }

    /// Adds the condition that the viewer may see a run, unless they see all.
    fn of_visible(&self, sql: Sql, database: DatabaseKind) -> Sql {
        let VisibleRuns::Many(own) = self.visible else { return sql };
        let sql = sql
            .push(" AND (runs.requested_by = ")
            .bind(own.map(str::to_owned))
            .push(" OR EXISTS (SELECT 1 FROM reviews v CROSS JOIN review_audience a")
            .push(" WHERE a.created_at = v.created_at AND a.review_id = v.id AND v.run_id = runs.id AND ");
        // OFFSET keeps PostgreSQL from finding the reviews of all runs at once.
        visibility::involved(self.viewer).shows(sql, database).push(" LIMIT 1 OFFSET 0))")
    }

    /// Adds the conditions that a run started within the requested time and comes after a place, and the order of the
    /// list.
    fn behind(&self, mut sql: Sql, place: Option<ListPlace>, limit: u32, at: &str, id: &str) -> Sql {
        if let Some(after) = self.query.started_after {
            sql = sql.push(" AND ").push(at).push(" >= ").bind(after.0);
        }
        // One upper bound, so that the index is entered at the place of the page.
        let before = self.query.started_before.map(|before| before.0);
        sql = match (place, before) {
            (Some(place), before) if before.is_none_or(|before| place.at < before) => place.condition(sql, at, id),
            (_, Some(before)) => sql.push(" AND ").push(at).push(" < ").bind(before),
            _ => sql,
        };
        sql.push(" ORDER BY ").push(at).push(" DESC, ").push(id).push(" DESC LIMIT ").bind(limit)
    }
}

/// Returns those of these runs that match a query, apart from its words and times, and that its viewer may see.
pub(super) async fn among(
    conn: &mut Conn,
    viewer: &Principal,
    query: &RunQuery,
    ids: &[Uuid],
) -> Result<BTreeSet<Uuid>, Error> {
    let own = launched(viewer, &viewer.username).then_some(&*viewer.username);
    let visible = if visibility::sees_all(viewer) { VisibleRuns::All } else { VisibleRuns::Many(own) };
    let sql = List { query, viewer, visible }.among(ids, conn.kind());
    Ok(conn.all(sql, Row::uuid).await?.into_iter().collect())
}

impl Conn {
    /// Reads places with a query of ids and times, for one row more than `limit`. Also returns the place of the next page,
    /// if there is one.
    pub(super) async fn first_places(
        &mut self,
        sql: Sql,
        limit: u32,
    ) -> Result<(Vec<ListPlace>, Option<ListPlace>), Error> {
        let rows = self.fetch(sql).await?;
        let places = rows.iter().map(|row| Ok(ListPlace { id: row.uuid(0)?, at: row.int(1)? }));
        let mut places = places.collect::<Result<Vec<_>, Error>>()?;
        let next = super::cut(&mut places, limit, |place| *place);
        Ok((places, next))
    }

    /// Like [`Store::visible_summary`].
    pub(super) async fn visible_summary(&mut self, viewer: &Principal, id: RunId) -> Result<Option<RunSummary>, Error> {
        let sql = select().push(" FROM runs WHERE ").push(SHOWN).push(" AND id = ").bind(id.0);
        let Some(run) = self.summaries_in(sql).await?.pop() else { return Ok(None) };
        Ok(self.seen_through(viewer, &run).await?.map(|_| run))
    }

    /// Reads the summaries of runs, in the order of `ids`.
    pub(super) async fn summaries(&mut self, ids: &[Uuid]) -> Result<Vec<RunSummary>, Error> {
        let mut runs = self.summaries_in(select().push(" FROM runs WHERE id").among(padded(ids))).await?;
        runs.sort_by_key(|run| ids.iter().position(|id| *id == run.id.0));
        Ok(runs)
    }

    /// Reads the summaries of runs of a query that begins with [`select`]. A state that cannot be read without its large
    /// values, as some that earlier versions wrote, is read as a whole.
    async fn summaries_in(&mut self, sql: Sql) -> Result<Vec<RunSummary>, Error> {
        let rows = self.fetch(sql).await?;
        let mut reader = Reader::default();
        for row in &rows {
            reader.add_state_without(row.uuid(1)?, row.text(0), hollow_parts);
        }
        let mut states = reader.finish_each("the state", self, &mut Blobs::default()).await?;
        for (state, row) in states.iter_mut().zip(&rows).filter(|(state, _)| state.is_err()) {
            let mut whole = Reader::default();
            whole.add_state(row.uuid(1)?, row.text(0));
            let read = whole.finish_each("the state", self, &mut Blobs::default()).await?.pop();
            *state = read.unwrap_or_else(|| Err(Error::Stored("a state that was not read".to_owned())));
        }
        states.into_iter().zip(&rows).map(|(state, row)| Ok(found(state, row, 1)?.summary())).collect()
    }
}

/// Begins a query for [`Conn::summaries_in`] on runs.
fn select() -> Sql {
    Sql::new("SELECT state, ").push(unreadable::RUN)
}

/// Empties the references in the large parts of a state.
fn hollow_parts(state: &mut Value) {
    for part in BULK {
        if let Some(part) = state.get_mut(part) {
            hollow(part);
        }
    }
}
