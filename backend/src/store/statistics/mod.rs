//! Statistics of reviews, from a column of their rows ([`facts`]), along the index by the time of the request.

mod count;
mod facts;

use std::collections::{BTreeMap, BTreeSet};

use shared::access::{ADMIN, Act, DEVELOPER, Principal, access};
use shared::id::{FlowId, Username};
use shared::review::ReviewKind;
use shared::statistics::{GroupBy, Statistics, StatisticsQuery};
use shared::time::Timestamp;
use tokio::sync::Semaphore;
use uuid::Uuid;

use self::count::{Count, CountedReview, TooManyGroups};
use self::facts::Facts;
use super::db::{Arg, Conn, Sql};
use super::{Error, Store, db};

pub(super) use facts::{UNREADABLE, column_of, response_seconds};

/// The largest number of reviews that are counted in one request: about a second of work.
const MAX_COUNTED: usize = 500_000;
/// The number of rows that one statement reads.
const BATCH: u32 = 5_000;
/// The number of requests that count at the same time. Others wait, so that counting does not delay decisions.
static TURNS: Semaphore = Semaphore::const_new(2);

/// The reason why statistics were not computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooMuch {
    /// The range has more reviews than this limit.
    Reviews(usize),
    /// There are more groups than the limit.
    Groups,
}

/// The reviews to count, and for whom.
struct Wanted<'a> {
    viewer: &'a Principal,
    query: &'a StatisticsQuery,
    saved_by: BTreeMap<FlowId, BTreeSet<Username>>,
}

impl Store {
    /// Computes statistics of the reviews that were requested from `from` until before `to`, and that the viewer may
    /// have counted.
    pub async fn statistics(
        &self,
        viewer: &Principal,
        query: &StatisticsQuery,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Result<Statistics, TooMuch>, Error> {
        self.statistics_of(viewer, query, from, to, MAX_COUNTED).await
    }

    /// Like [`Self::statistics`], of at most `most` reviews.
    pub(super) async fn statistics_of(
        &self,
        viewer: &Principal,
        query: &StatisticsQuery,
        from: Timestamp,
        to: Timestamp,
        most: usize,
    ) -> Result<Result<Statistics, TooMuch>, Error> {
        // The semaphore is never closed.
        let _turn = TURNS.acquire().await.ok();
        let mut conn = self.inner.db.read().await?;
        let wanted = Wanted { viewer, query, saved_by: conn.saved_by(viewer).await? };
        let mut count = Count::new(query.by);
        let (mut read, mut place) = (0, None);
        loop {
            let rows = conn.fetch(page(query, from, to, place)).await?;
            read += rows.len();
            if read > most {
                return Ok(Err(TooMuch::Reviews(most)));
            }
            for row in &rows {
                if let Some(row) = wanted.row(row)?
                    && let Err(TooManyGroups) = count.add(&row)
                {
                    return Ok(Err(TooMuch::Groups));
                }
            }
            match rows.last() {
                Some(last) if rows.len() == BATCH as usize => place = Some((last.int(0)?, last.uuid(1)?)),
                _ => break,
            }
        }
        let (figures, mut groups, groups_left_out) = count.finish();
        let sees_others = viewer.has(ADMIN) || viewer.has(DEVELOPER);
        if query.by == Some(GroupBy::Reviewer) && !sees_others {
            // Reviewers do not get figures of other reviewers.
            groups.retain(|group| group.key == viewer.username.as_str());
        }
        Ok(Ok(Statistics { from, to, figures, groups, groups_left_out }))
    }

    /// Counts the pending reviews by kind and severity.
    pub async fn pending_by_kind(&self) -> Result<BTreeMap<(&'static str, &'static str), u64>, Error> {
        let mut counts = BTreeMap::new();
        for (outline, count) in self.tally().await?.classes() {
            *counts.entry((outline.kind.as_str(), outline.stakes.severity.as_str())).or_default() += count;
        }
        Ok(counts)
    }
}

/// Selects the next rows after a place: time of the request, id, flow, kind and facts.
fn page(query: &StatisticsQuery, from: Timestamp, to: Timestamp, place: Option<(i64, Uuid)>) -> Sql {
    let sql = Sql::new("SELECT created_at, id, flow, kind, facts FROM reviews WHERE created_at >= ").bind(from.0);
    let mut sql = sql.push(" AND created_at < ").bind(to.0);
    if let Some(flow) = &query.flow {
        sql = sql.push(" AND flow = ").bind(flow.as_str());
    }
    if let Some(kind) = query.kind {
        sql = sql.push(" AND kind = ").bind(kind.as_str());
    }
    if let Some((at, id)) = place {
        sql = sql.push(" AND (created_at, id) > (").list([Arg::from(at), id.into()]).push(")");
    }
    sql.push(" ORDER BY created_at, id LIMIT ").bind(BATCH)
}

impl Wanted<'_> {
    /// Reads a review. `None` if it does not match the query, or the viewer may not have it counted.
    fn row(&self, row: &db::Row) -> Result<Option<CountedReview>, Error> {
        let text = row.text_opt(4)?;
        let facts: Option<Facts> = text.and_then(|text| serde_json::from_str(&text).ok());
        let flow: Option<FlowId> = row.text_opt(2)?.and_then(|flow| flow.parse().ok());
        let kind = row.text(3)?;
        let kind = ReviewKind::of_word(&kind);
        let (Some(facts), Some(kind)) = (facts, kind) else { return Ok(None) };
        let StatisticsQuery { tool, agent, role, reviewer, .. } = self.query;
        let is_wanted = [(tool, &facts.tools), (agent, &facts.agents), (role, &facts.roles)]
            .into_iter()
            .all(|(name, names)| name.as_ref().is_none_or(|name| names.contains(name)))
            && reviewer.as_ref().is_none_or(|name| facts.by.iter().any(|by| by.as_str() == name));
        if !is_wanted {
            return Ok(None);
        }
        let nobody = BTreeSet::new();
        let saved_by = flow.as_ref().and_then(|flow| self.saved_by.get(flow)).unwrap_or(&nobody);
        let counted = access(self.viewer, Act::CountReview { saved_by, decided_by: &facts.by });
        Ok(counted.is_allowed().then(|| CountedReview {
            asked: Timestamp(row.int(0).unwrap_or_default()),
            flow,
            kind,
            facts,
        }))
    }
}

impl Conn {
    /// Returns the flows of which the viewer has saved a version.
    async fn saved_by(&mut self, viewer: &Principal) -> Result<BTreeMap<FlowId, BTreeSet<Username>>, Error> {
        let sql = Sql::new("SELECT DISTINCT id FROM flows WHERE saved_by = ").bind(viewer.username.as_str());
        let mut saved = BTreeMap::new();
        for row in self.fetch(sql).await? {
            if let Ok(flow) = row.text(0)?.parse() {
                saved.insert(flow, BTreeSet::from([viewer.username.clone()]));
            }
        }
        Ok(saved)
    }
}
