//! Saved flows, and the cache of compiled flows.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use shared::api::{FlowVersion, MAX_LIMIT, Page};
use shared::definition::Flow;
use shared::error::{FlowCode, Mistake};
use shared::id::FlowId;
use shared::time::Timestamp;

use super::db::{Arg, Conn, Row, Sql};
use super::driver_error::DriverError;
use super::unreadable::reason;
use super::{Error, Store};
use crate::engine::{Carrier, RunState};
use crate::flow::{Compiled, Library, calls};

/// The largest number of versions that are cached.
const MAX_CACHED: usize = 256;

const COLUMNS: &str = "SELECT id, version, digest, source, definition, saved_by, saved_at FROM flows";

/// A cache of compiled versions; versions never change. If it is full, the version that was used least recently goes.
#[derive(Default)]
pub(super) struct FlowCache {
    kept: Mutex<KeptFlows>,
    /// Held by whoever compiles a version for this cache outside of a transaction, so that each is compiled once.
    pub(super) turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct KeptFlows {
    /// The versions, each with the number of its last use.
    versions: HashMap<(FlowId, u32), (Arc<Compiled>, u64)>,
    uses: u64,
}

impl FlowCache {
    fn get(&self, id: &str, version: u32) -> Option<Arc<Compiled>> {
        let key = (id.parse().ok()?, version);
        let mut kept = self.kept.lock();
        kept.uses += 1;
        let now = kept.uses;
        let (compiled, used) = kept.versions.get_mut(&key)?;
        *used = now;
        Some(Arc::clone(compiled))
    }

    /// Whether a version is in the cache. It counts as used.
    pub fn has(&self, id: &str, version: u32) -> bool {
        self.get(id, version).is_some()
    }

    fn put(&self, compiled: &Arc<Compiled>) {
        let key = (compiled.flow.id.clone(), compiled.version);
        let mut kept = self.kept.lock();
        if kept.versions.len() >= MAX_CACHED && !kept.versions.contains_key(&key) {
            // Evictions are rare, and compiling takes far longer than this search.
            let oldest = kept.versions.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| kept.versions.remove(&oldest));
        }
        kept.uses += 1;
        let now = kept.uses;
        kept.versions.insert(key, (Arc::clone(compiled), now));
    }
}

impl Store {
    /// Returns a version of a flow in full, but without its graph; the newest if `version` is `None`.
    pub async fn flow(&self, id: &str, version: Option<u32>) -> Result<Option<FlowVersion>, Error> {
        self.inner.db.read().await?.flow(id, version).await
    }

    /// Lists the newest version of each flow without its large parts, the most recently saved first.
    pub async fn flows(&self, limit: u32, cursor: Option<&str>) -> Result<Page<FlowVersion>, Error> {
        let limit = limit.clamp(1, MAX_LIMIT);
        let (at, id) = cursor.map_or(Some((i64::MAX, "")), list_place).ok_or(Error::Cursor)?;
        let sql = Sql::new(COLUMNS)
            .push(
                " AS f WHERE version = (SELECT MAX(version) FROM flows AS n WHERE n.id = f.id) AND (saved_at, id) < (",
            )
            .list([Arg::from(at), Arg::from(id)])
            .push(") ORDER BY saved_at DESC, id DESC LIMIT ")
            .bind(limit + 1);
        let mut items = Vec::new();
        for row in self.inner.db.read().await?.fetch(sql).await? {
            let mut flow = flow_version(&row)?;
            flow.definition = None;
            flow.source = None;
            items.push(flow);
        }
        let next_cursor = super::cut(&mut items, limit, |flow| format!("{}.{}", flow.saved_at.0, flow.id));
        Ok(Page { items, next_cursor })
    }

    /// Returns the compiled flow of a run, or the reason why this server cannot read it.
    pub async fn flow_of(&self, run: &RunState) -> Result<Result<Arc<Compiled>, String>, Error> {
        if run.shown_id().is_none() {
            return Ok(self.inner.carrier_flow(run));
        }
        self.readable(&run.flow, run.version).await
    }

    /// Returns a compiled version, or the reason why this server cannot read it.
    pub async fn readable(&self, id: &str, version: u32) -> Result<Result<Arc<Compiled>, String>, Error> {
        match self.compiled(id, version).await {
            Ok(Some(compiled)) => Ok(Ok(compiled)),
            Ok(None) => Ok(Err(format!("version {version} of the flow `{id}` does not exist"))),
            Err(Error::Stored(why)) => Ok(Err(why)),
            Err(error) => Err(error),
        }
    }

    /// Returns a compiled version, from the cache if possible. `None` if it does not exist.
    pub async fn compiled(&self, id: &str, version: u32) -> Result<Option<Arc<Compiled>>, Error> {
        self.inner.compiled(id, version).await
    }

    /// Whether an older version has this source and the newest has not: people have saved other versions since, and do
    /// not want the old one back.
    pub async fn is_superseded(&self, id: &FlowId, digest: &str) -> Result<bool, Error> {
        let sql = Sql::new("SELECT digest FROM flows WHERE id = ").bind(id.as_str()).push(" ORDER BY version DESC");
        let stored = self.inner.db.read().await?.all(sql, Row::text).await?;
        Ok(stored.first().is_some_and(|newest| newest != digest) && stored.iter().any(|older| older == digest))
    }

    /// Returns the flows that a flow would call if it were saved now. If one of them does not exist, also the names of
    /// all flows.
    pub async fn library(&self, flow: &Flow) -> Result<Library, Error> {
        let mut library = Library::default();
        let mut conn = self.inner.db.read().await?;
        for (_, call) in calls(flow) {
            let newest = conn.newest_version(&call.id).await?;
            if newest.is_none() {
                let sql = Sql::new("SELECT DISTINCT id FROM flows");
                for row in conn.fetch(sql).await? {
                    library.name(row.text(0)?);
                }
            }
            for version in call.version.into_iter().chain(newest) {
                match self.inner.compiled_in(&mut conn, &call.id, version).await {
                    Ok(called) => called.into_iter().for_each(|called| library.add(called)),
                    Err(Error::Stored(why)) => library.unreadable(call.id.clone(), why),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(library)
    }
}

impl super::Inner {
    /// Returns the flow of a run that only carries a question. It follows from the run's input; the error says why it
    /// does not.
    pub fn carrier_flow(&self, run: &RunState) -> Result<Arc<Compiled>, String> {
        if let Some(compiled) = self.carriers.get(&run.flow, run.version) {
            return Ok(compiled);
        }
        let compiled = Arc::new(Carrier::resume(&run.input)?);
        self.carriers.put(&compiled);
        Ok(compiled)
    }

    /// Returns a compiled version, from the cache if possible. `None` if it does not exist.
    pub async fn compiled(&self, id: &str, version: u32) -> Result<Option<Arc<Compiled>>, Error> {
        if let Some(compiled) = self.flows.get(id, version) {
            return Ok(Some(compiled));
        }
        let _turn = self.flows.turn.lock().await;
        let mut conn = self.db.read().await?;
        self.compiled_in(&mut conn, id, version).await
    }

    /// Like [`Self::compiled`], over a connection that may be in a transaction.
    pub async fn compiled_in(&self, conn: &mut Conn, id: &str, version: u32) -> Result<Option<Arc<Compiled>>, Error> {
        if let Some(compiled) = self.flows.get(id, version) {
            return Ok(Some(compiled));
        }
        let Some(saved) = conn.flow(id, Some(version)).await? else { return Ok(None) };
        let Some(definition) = saved.definition else {
            return Err(Error::Stored(format!("flow {id} version {version} cannot be read")));
        };
        let mut library = Library::default();
        for (called, version) in calls(&definition).filter_map(|(_, call)| Some((&call.id, call.version?))) {
            // The recursion ends: a flow that calls itself through others is refused when it is saved.
            if let Some(called) = Box::pin(self.compiled_in(conn, called, version)).await? {
                library.add(called);
            }
        }
        // Compiling a large flow takes long, and would hold up everything else on this thread.
        let compiled = tokio::task::spawn_blocking(move || Compiled::calling(*definition, version, &library)).await;
        let compiled = compiled.map_err(|ended| {
            if ended.is_panic() {
                Error::Stored(format!("flow {id} version {version} cannot be compiled; see the server's log"))
            } else {
                DriverError::Interrupted.into()
            }
        })?;
        let compiled = compiled.map_err(|mistakes| {
            let first = mistakes.first().map(ToString::to_string).unwrap_or_default();
            Error::Stored(format!("flow {id} version {version} is not valid for this server: {first}"))
        })?;
        let compiled = Arc::new(compiled.with_environment(Arc::clone(&self.environment)));
        self.flows.put(&compiled);
        Ok(Some(compiled))
    }
}

/// Parses a cursor of the list of flows.
fn list_place(cursor: &str) -> Option<(i64, &str)> {
    let (at, id) = cursor.split_once('.')?;
    Some((at.parse().ok()?, id))
}

impl Conn {
    pub async fn newest_version(&mut self, id: &str) -> Result<Option<u32>, Error> {
        let sql = Sql::new("SELECT version FROM flows WHERE id = ").bind(id).push(" ORDER BY version DESC LIMIT 1");
        let newest = self.first(sql, Row::int).await?.map(u32::try_from).transpose();
        newest.map_err(|error| Error::Stored(format!("flow {id}: {error}")))
    }

    /// Returns a version of a flow; the newest if `version` is `None`.
    pub async fn flow(&mut self, id: &str, version: Option<u32>) -> Result<Option<FlowVersion>, Error> {
        let sql = Sql::new(COLUMNS).push(" WHERE id = ").bind(id);
        let sql = match version {
            Some(version) => sql.push(" AND version = ").bind(version),
            None => sql.push(" ORDER BY version DESC LIMIT 1"),
        };
        self.fetch_one(sql).await?.map(|row| flow_version(&row)).transpose()
    }
}

/// Reads a version. If its definition cannot be read, a warning takes its place.
fn flow_version(row: &Row) -> Result<FlowVersion, Error> {
    let id = row.text(0)?;
    let stored = |error: &dyn std::fmt::Display| Error::Stored(format!("flow {id}: {error}"));
    let mut warnings = Vec::new();
    let definition = match serde_json::from_str::<Flow>(&row.text(4)?) {
        Ok(definition) => Some(Box::new(definition)),
        Err(error) => {
            let message = format!("the stored data of this version cannot be read: {}", reason(&error));
            tracing::error!(flow = id, %message, "a flow cannot be read");
            warnings.push(Mistake::new("", FlowCode::RecordUnreadable.as_str(), message));
            None
        }
    };
    Ok(FlowVersion {
        id: id.parse().map_err(|error| stored(&error))?,
        version: u32::try_from(row.int(1)?).map_err(|error| stored(&error))?,
        title: definition.as_ref().map_or(id.as_str(), |definition| definition.title()).to_owned(),
        description: definition.as_ref().and_then(|definition| definition.description.clone()),
        input: definition.as_ref().and_then(|definition| definition.input.clone()),
        definition,
        source: Some(row.text(3)?),
        digest: row.text(2)?,
        graph: None,
        saved_by: row.text_opt(5)?.map(|name| name.parse()).transpose().map_err(|error| stored(&error))?,
        saved_at: Timestamp(row.int(6)?),
        warnings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_that_was_used_least_recently_leaves_the_cache() {
        let cache = FlowCache::default();
        let id: FlowId = "often".parse().expect("an id");
        let version = |number| Arc::new(Compiled::without_nodes(id.clone(), number));
        for number in 0..u32::try_from(MAX_CACHED).expect("a small number") {
            cache.put(&version(number));
        }
        assert!(cache.get(&id, 0).is_some(), "the oldest is used again");
        for number in 1_000..1_100 {
            cache.put(&version(number));
            assert!(cache.get(&id, 0).is_some());
        }
        assert!(cache.get(&id, 1).is_none());
        assert_eq!(cache.kept.lock().versions.len(), MAX_CACHED);
        cache.put(&version(0));
        assert_eq!(cache.kept.lock().versions.len(), MAX_CACHED, "a version that is there needs no room");
    }
}
