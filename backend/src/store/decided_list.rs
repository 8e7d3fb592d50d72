//! The reviews that a person decided, the newest decision first.
//!
//! Each decision is in the log, whose index names those who made it, so the log gives the order. Secret votes are named
//! when the review is over. Whether a decision still counts, or was replaced or voided, is in the review. A page
//! examines a limited number of rows, since a person may have decided very many reviews of which few match. It decodes
//! only those whose run has a review that matches.

use std::collections::{BTreeSet, HashMap, HashSet};

use shared::access::{Act, Principal, access};
use shared::api::{AuditQuery, DEFAULT_LIMIT, MAX_LIMIT, Page, ReviewQuery};
use shared::id::Username;
use shared::review::{Review, ReviewStatus};
use shared::time::Timestamp;
use uuid::Uuid;

use super::audit::MOST_ROWS;
use super::audit_scan::Scan;
use super::cursor::LogPlace;
use super::db::{Conn, Row, Sql};
use super::log::read_rows;
use super::log_index::{ReviewSearch, Sought, Term, WordIndex, padded};
use super::log_row::Form;
use super::page_bytes::{MAX_PAGE_BYTES, PageBytes};
use super::stored_review::visible_to;
use super::{Error, Store, review_list, search};

/// A decision in the log.
struct FoundDecision {
    review: Uuid,
    at: Timestamp,
    place: LogPlace,
}

impl Store {
    /// Returns a page of the reviews that a person decided. A page may have fewer reviews than asked for, or none, and
    /// still a cursor. Whether the viewer may list what somebody else decided is for the caller to check.
    pub(super) async fn decided_page(
        &self,
        conn: &mut Conn,
        viewer: &Principal,
        by: &Username,
        query: &ReviewQuery,
        now: Timestamp,
    ) -> Result<Page<Review>, Error> {
        let log = &self.inner.log;
        let start = match &query.cursor {
            Some(cursor) => LogPlace::of(cursor, log).ok_or(Error::Cursor)?,
            None => conn.head().await?,
        };
        let search = search::of(conn, query.q.as_deref(), &WordIndex::ALL).await?;
        let (found, next) = match &search {
            Some(ReviewSearch::Among(ids)) if ids.is_empty() => (Vec::new(), None),
            search => {
                let list = DecidedList { viewer, by, query, search: search.as_ref(), now };
                list.places(conn, start).await?
            }
        };
        let decided_at: HashMap<Uuid, Timestamp> = found.iter().map(|found| (found.review, found.at)).collect();
        let see = |mut reviews: Vec<Review>| {
            reviews.retain(|review| {
                counts(review, by, decided_at.get(&review.id.0)) && access(viewer, Act::SeeReview(review)).is_allowed()
            });
            visible_to(reviews, viewer)
        };
        let places: Vec<_> = found.into_iter().map(|decision| (decision.review, decision.place)).collect();
        let (items, next) = conn.page_of_reviews(&places, next, PageBytes::of_page(MAX_PAGE_BYTES), see).await?;
        Ok(Page { items, next_cursor: next.map(|place| place.cursor(log).0) })
    }
}

/// Whether what a person decided on a review counts, and this is the time at which the log first names them for it: that
/// of their last decision, or for a secret vote, that of its end.
fn counts(review: &Review, by: &Username, at: Option<&Timestamp>) -> bool {
    let own = review.decisions.iter().filter(|decision| decision.by == *by && decision.grant.is_none());
    let Some(decided_at) = own.map(|decision| &decision.at).max() else {
        // A review that cannot be read does not show who decided it.
        return review.unreadable;
    };
    let end = review.resolution.as_ref().filter(|_| review.blind && review.voting.is_some());
    at == Some(end.map_or(decided_at, |end| &end.at))
}

struct DecidedList<'a> {
    viewer: &'a Principal,
    by: &'a Username,
    query: &'a ReviewQuery,
    search: Option<&'a ReviewSearch>,
    now: Timestamp,
}

impl DecidedList<'_> {
    /// Returns the decisions on the reviews of a page, and the place after which the next page begins.
    async fn places(&self, conn: &mut Conn, start: LogPlace) -> Result<(Vec<FoundDecision>, Option<LogPlace>), Error> {
        let limit = usize::try_from(self.query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT)).unwrap_or(1);
        let sought = Sought { terms: vec![Term::decided_by(self.by)], words: None };
        let mut scan = Scan::new(conn, &AuditQuery::default(), None, Some(sought)).await?;
        let (mut found, mut known, mut before, mut scanned) = (Vec::new(), HashSet::new(), start, 0);
        loop {
            let batch = scan.next(conn, before).await?;
            let rows = self.of_matching_runs(conn, batch.rows).await?;
            let decisions = self.decisions(conn, &rows, before).await?;
            let fitting = self.fitting(conn, &decisions).await?;
            for decision in decisions.into_iter().filter(|decision| fitting.contains(&decision.review)) {
                // A decision that another has replaced.
                if !known.insert(decision.review) {
                    continue;
                }
                if found.len() == limit {
                    let last = found.last().map(|last: &FoundDecision| last.place);
                    return Ok((found, last));
                }
                found.push(decision);
            }
            let Some(row) = batch.down_to else { return Ok((found, None)) };
            before = before.min(LogPlace { seq: row, seen: 0 });
            scanned += batch.scanned;
            if scanned >= MOST_ROWS {
                return Ok((found, Some(before)));
            }
        }
    }

    /// Returns the person's decisions in rows of the log that precede a place, newest first.
    async fn decisions(&self, conn: &mut Conn, rows: &[Row], before: LogPlace) -> Result<Vec<FoundDecision>, Error> {
        let (mut left, mut bytes, mut found) = (rows, PageBytes::of_log(), Vec::new());
        while let Some(rows) = bytes.next(&mut left) {
            for (row, events) in read_rows(conn, rows, Form::Sealed).await? {
                // Several entries of a row can be about one decision: a vote and the end of the review.
                let mut of_row = HashSet::new();
                for (index, event) in events.into_iter().enumerate().rev() {
                    let place = LogPlace { seen: u32::try_from(index + 1).unwrap_or(u32::MAX), ..row };
                    if let Some(review) = event.review_id
                        && event.deciders().contains(self.by)
                        && of_row.insert(review)
                        && place < before
                    {
                        found.push(FoundDecision { review: review.0, at: event.at, place });
                    }
                }
            }
        }
        Ok(found)
    }

    /// Returns the rows whose run has a review that matches the query, so that no others are decoded. The reviews of a run
    /// are read up to the first that matches. A row without a run names no review.
    async fn of_matching_runs(&self, conn: &mut Conn, rows: Vec<Row>) -> Result<Vec<Row>, Error> {
        if self.matching(Sql::default()).text.is_empty() {
            return Ok(rows);
        }
        let runs = rows.iter().map(|row| row.uuid_opt(1)).collect::<Result<Vec<_>, _>>()?;
        let named: BTreeSet<Uuid> = runs.iter().copied().flatten().collect();
        let named = padded(&Vec::from_iter(named)).into_iter().map(|run| vec![run.into()]);
        let sql = Sql::new("WITH named (run) AS (SELECT DISTINCT column1 FROM (").values(named).push(") AS k) ");
        let sql = sql.push("SELECT n.run FROM named n WHERE EXISTS (SELECT 1 FROM reviews v WHERE v.run_id = n.run");
        // OFFSET keeps PostgreSQL from finding the reviews of all runs at once.
        let sql = self.matching(sql).push(" LIMIT 1 OFFSET 0)");
        let matching: HashSet<Uuid> = conn.all(sql, Row::uuid).await?.into_iter().collect();
        let rows = rows.into_iter().zip(runs).filter(|(_, run)| run.is_some_and(|run| matching.contains(&run)));
        Ok(rows.map(|(row, _)| row).collect())
    }

    /// Returns those of the decided reviews that match the query. Others see no pending ones, whose votes may still
    /// change.
    async fn fitting(&self, conn: &mut Conn, decisions: &[FoundDecision]) -> Result<HashSet<Uuid>, Error> {
        let ids: Vec<Uuid> = decisions.iter().map(|decision| decision.review).collect();
        let words = match self.search {
            Some(ReviewSearch::Each(words)) => Some(words),
            _ => None,
        };
        let text = if words.is_some() { "v.search" } else { "v.status" };
        let sql = Sql::new("SELECT v.id, ").push(text).push(" FROM reviews v WHERE v.id").among(padded(&ids));
        let mut sql = self.matching(sql);
        if *self.by != self.viewer.username {
            sql = sql.push(" AND v.status <> ").bind(ReviewStatus::Pending.as_str());
        }
        let mut fitting = HashSet::new();
        for row in conn.fetch(sql).await? {
            if words.map_or(Ok(true), |words| row.text(1).map(|text| words.are_in(&text)))? {
                fitting.insert(row.uuid(0)?);
            }
        }
        Ok(fitting)
    }

    /// Adds the conditions of the query on review `v`, except for words that many reviews have.
    fn matching(&self, sql: Sql) -> Sql {
        let Self { viewer, query, search, now, .. } = self;
        let mut sql = review_list::filter(sql, query, viewer, *now);
        if let Some(status) = query.status {
            sql = sql.push(" AND v.status = ").bind(status.as_str());
        }
        if let Some(ReviewSearch::Among(ids)) = search {
            sql = sql.push(" AND v.id").among(padded(ids));
        }
        sql
    }
}
