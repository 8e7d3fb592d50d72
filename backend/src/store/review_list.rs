//! Lists of reviews, newest first, pending or not.
//!
//! Each part of a list is read along an index in its order: all reviews, those that ended without a decision, and those
//! that a caller sees through an audience key. The status and the words of a review are checked on the way if no index has
//! them.

use std::collections::BTreeSet;

use shared::access::Principal;
use shared::api::{DEFAULT_LIMIT, MAX_LIMIT, Page, ReviewQuery};
use shared::id::Username;
use shared::inbox::Assigned;
use shared::review::{Review, ReviewStatus};
use shared::time::Timestamp;
use uuid::Uuid;

use super::cursor::ListPlace;
use super::db::{Conn, DatabaseKind, Row, Sql};
use super::log_index::{ReviewSearch, WordIndex, padded};
use super::page_bytes::{MAX_PAGE_BYTES, PageBytes};
use super::stored_review::visible_to;
use super::visibility::{self, ReviewVisibility, Tagged};
use super::{Error, queue, search};

/// Returns a page of reviews, newest first, pending or not.
pub(super) async fn page(
    conn: &mut Conn,
    viewer: &Principal,
    query: &ReviewQuery,
    now: Timestamp,
) -> Result<Page<Review>, Error> {
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    let asked = visibility::asked_keys(viewer);
    let parts = if query.requested_by.is_some() && asked.is_empty() {
        Vec::new()
    } else if query.assigned == Some(Assigned::Me) {
        mine_by_key(viewer)
    } else if query.requested_by.is_some() {
        by_key(&asked, &[], false)
    } else if visibility::sees_all(viewer) {
        vec![all(query.status)]
    } else {
        ranges_of(&visibility::visible(viewer))
    };
    if parts.is_empty() {
        // A token without roles may not see anything.
        return Ok(Page { items: Vec::new(), next_cursor: None });
    }
    let place = ListPlace::of(query.cursor.as_deref())?;
    let list = NewestList { parts, query, viewer, now, database: conn.kind() };
    let indexes = if query.status.is_some() { &[WordIndex::Past][..] } else { &WordIndex::ALL };
    let search = search::of(conn, query.q.as_deref(), indexes).await?;
    let (places, next) = match &search {
        Some(ReviewSearch::Among(ids)) if ids.is_empty() => (Vec::new(), None),
        Some(ReviewSearch::Among(ids)) => list.first(conn, Some(ids), place, limit).await?,
        None if list.is_in_indexes() => list.first(conn, None, place, limit).await?,
        // No index has the status or the words of a review, so each review is checked.
        search => {
            let words = match search {
                Some(ReviewSearch::Each(words)) => Some(words),
                _ => None,
            };
            let status = query.status.map(ReviewStatus::as_str);
            let fits = |row: &Row| {
                let stands = status.map_or(Ok(true), |status| row.text(1).map(|found| found == status))?;
                Ok(stands && words.map_or(Ok(true), |words| row.text(2).map(|text| words.are_in(&text)))?)
            };
            let text = if words.is_some() { "v.search" } else { "v.status" };
            let columns = format!("s.id, v.status, {text}, s.at");
            let page = |place, limit| list.page(&columns, None, place, limit);
            let place_of = |row: &Row| Ok(ListPlace { id: row.uuid(0)?, at: row.int(3)? });
            search::each(conn, fits, limit, place, page, place_of).await?
        }
    };
    let see = |reviews: Vec<Review>| visible_to(reviews, viewer);
    let (items, next) = conn.page_of_reviews(&places, next, PageBytes::of_page(MAX_PAGE_BYTES), see).await?;
    Ok(Page { items, next_cursor: next.map(ListPlace::encode) })
}

/// The index along which a part of a list is read, newest first.
enum Index {
    /// All reviews, by time of creation.
    All,
    /// The reviews that ended with this status, without a decision.
    Undecided(ReviewStatus),
    /// The reviews that a caller sees through this audience key.
    Audience(String),
}

impl Index {
    /// The columns by which the index is ordered: the time of creation and the id of a review.
    fn order(&self) -> (&'static str, &'static str) {
        match self {
            Self::All => ("v.created_at", "v.id"),
            Self::Undecided(_) => ("u.created_at", "u.id"),
            Self::Audience(_) => ("a.created_at", "a.review_id"),
        }
    }

    /// Adds the tables, limited to the reviews in `found`, which are looked up one by one.
    fn found_in(&self, sql: Sql) -> Sql {
        let sql = sql.push("found f CROSS JOIN reviews v");
        match self {
            Self::All => sql.push(" WHERE v.id = f.id"),
            Self::Undecided(status) => sql
                .push(" CROSS JOIN undecided_reviews u WHERE v.id = f.id AND u.created_at = v.created_at ")
                .push("AND u.id = v.id AND u.status = ")
                .bind(status.as_str()),
            Self::Audience(key) => sql
                .push(" CROSS JOIN review_audience a WHERE v.id = f.id AND a.created_at = v.created_at ")
                .push("AND a.review_id = v.id AND a.subject = ")
                .bind(key),
        }
    }

    /// Adds the tables, with the reviews as `v`, and the condition on the index.
    fn from(&self, sql: Sql) -> Sql {
        // With CROSS JOIN, SQLite keeps this order, and uses the index of the key.
        match self {
            Self::All => sql.push("reviews v WHERE true"),
            Self::Undecided(status) => sql
                .push("undecided_reviews u CROSS JOIN reviews v WHERE v.id = u.id AND u.status = ")
                .bind(status.as_str()),
            Self::Audience(key) => {
                sql.push("review_audience a CROSS JOIN reviews v WHERE v.id = a.review_id AND a.subject = ").bind(key)
            }
        }
    }
}

/// A part of a list that one index gives in order.
struct IndexRange {
    index: Index,
    /// The people who must not have started the run if the review excludes its requester, and must not be barred.
    not_of: Vec<Username>,
    /// The person whose own vote must count, and not be delegated to someone else.
    not_given: Option<Username>,
    /// The tags of the viewer that must cover those that the review needs.
    tagged: Option<Tagged>,
}

/// All reviews with a status, for viewers who see everything.
fn all(status: Option<ReviewStatus>) -> IndexRange {
    let index = match status {
        Some(status @ (ReviewStatus::Expired | ReviewStatus::Withdrawn)) => Index::Undecided(status),
        _ => Index::All,
    };
    IndexRange { index, not_of: Vec::new(), not_given: None, tagged: None }
}

/// The reviews that the viewer may decide, in their own name or as a deputy.
fn mine_by_key(viewer: &Principal) -> Vec<IndexRange> {
    let mut parts = Vec::new();
    for name in visibility::names(viewer) {
        let both = [viewer.username.clone(), name.username];
        parts.extend(by_key(&name.own, &both, true));
        parts.extend(by_tags(&name.tagged, &both, true));
        parts.extend(by_key(&name.handed.into_iter().collect(), &both, false));
    }
    parts
}

/// The reviews that the viewer may see.
fn ranges_of(visibility: &ReviewVisibility) -> Vec<IndexRange> {
    let mut parts = by_key(&visibility.keys, &[], false);
    parts.extend(visibility.tagged.iter().flat_map(|tagged| by_tags(tagged, &[], false)));
    parts
}

/// Like [`by_key`], for reviews that need tags.
fn by_tags(tagged: &Tagged, names: &[Username], own: bool) -> Vec<IndexRange> {
    let parts = by_key(&tagged.keys, names, own);
    parts.into_iter().map(|part| IndexRange { tagged: Some(tagged.clone()), ..part }).collect()
}

/// The reviews found under these audience keys. `names`: the viewer, and the person in whose name they look. `own`: as one
/// of the people that the review is for.
fn by_key(keys: &BTreeSet<String>, names: &[Username], own: bool) -> Vec<IndexRange> {
    let part = |key: &String| IndexRange {
        index: Index::Audience(key.clone()),
        not_of: names.to_vec(),
        not_given: names.last().filter(|_| own).cloned(),
        tagged: None,
    };
    keys.iter().map(part).collect()
}

/// A list of reviews, newest first, made of parts.
struct NewestList<'a> {
    parts: Vec<IndexRange>,
    query: &'a ReviewQuery,
    viewer: &'a Principal,
    now: Timestamp,
    database: DatabaseKind,
}

impl NewestList<'_> {
    /// Whether the indexes leave only reviews that match, or leave those that do not to the statement.
    fn is_in_indexes(&self) -> bool {
        let Self { query, parts, .. } = self;
        query.status.is_none() || parts.iter().all(|part| matches!(part.index, Index::Undecided(_)))
    }

    /// Returns the first reviews after a place, and the place of the next page if there are more.
    async fn first(
        &self,
        conn: &mut Conn,
        among: Option<&[Uuid]>,
        place: Option<ListPlace>,
        limit: u32,
    ) -> Result<(Vec<(Uuid, ListPlace)>, Option<ListPlace>), Error> {
        let (places, next) = conn.first_places(self.page("s.id, s.at", among, place, limit + 1), limit).await?;
        Ok((places.into_iter().map(|place| (place.id, place)).collect(), next))
    }

    /// Selects the newest of each part, then the newest of all of these, after a place. Reviews that are not in the
    /// list are never scanned. `columns` are of the reviews `v` and their places `s`. `among` limits the list to these
    /// reviews.
    fn page(&self, columns: &str, among: Option<&[Uuid]>, place: Option<ListPlace>, limit: u32) -> Sql {
        let mut sql = Sql::new("");
        if let Some(among) = among {
            let rows = padded(among).into_iter().map(|id| vec![id.into()]);
            sql = sql.push("WITH found (id) AS (SELECT DISTINCT column1 FROM (").values(rows).push(") AS k) ");
        }
        sql = sql.push("SELECT ").push(columns).push(" FROM (");
        for (number, part) in self.parts.iter().enumerate() {
            sql = sql.push(if number > 0 { " UNION " } else { "" });
            sql = self.part(sql, part, among.is_some(), place, limit).push(" AS p");
        }
        sql.push(") AS s CROSS JOIN reviews v WHERE v.id = s.id ORDER BY s.at DESC, s.id DESC LIMIT ").bind(limit)
    }

    fn part(&self, sql: Sql, part: &IndexRange, among: bool, place: Option<ListPlace>, limit: u32) -> Sql {
        let IndexRange { index, not_of, not_given, tagged } = part;
        let (at, id) = index.order();
        let sql = sql.push("SELECT * FROM (SELECT ").push(at).push(" AS at, ").push(id).push(" AS id FROM ");
        let mut sql = if among { index.found_in(sql) } else { index.from(sql) };
        if let Some(status) = self.query.status.filter(|_| among) {
            sql = sql.push(" AND v.status = ").bind(status.as_str());
        }
        if let Some(tagged) = tagged {
            sql = tagged.suffices(sql.push(" AND "), self.database);
        }
        if !not_of.is_empty() {
            sql = sql.push(" AND NOT (v.not_requester = 1 AND v.requested_by IN (");
            sql = sql.list(not_of.iter().map(Username::as_str)).push("))");
            sql = found_under(sql.push(" AND NOT "), not_of.iter().map(visibility::barred_key));
        }
        if let Some(name) = not_given {
            sql = found_under(sql.push(" AND NOT "), [visibility::gave_key(name)]);
            sql = found_under(sql.push(" AND (NOT "), [visibility::VOTES.to_owned()]);
            sql = found_under(sql.push(" OR "), [visibility::voter_key(name)]).push(")");
        }
        sql = filter(sql, self.query, self.viewer, self.now);
        if let Some(place) = place {
            sql = place.condition(sql, at, id);
        }
        sql.push(" ORDER BY ").push(at).push(" DESC, ").push(id).push(" DESC LIMIT ").bind(limit).push(")")
    }
}

/// Adds the conditions of a query on review `v`, except for the status and the words.
pub(super) fn filter(mut sql: Sql, query: &ReviewQuery, viewer: &Principal, now: Timestamp) -> Sql {
    if let Some(kind) = query.kind {
        sql = sql.push(" AND v.kind = ").bind(kind.as_str());
    }
    if let Some(severity) = query.severity {
        sql = sql.push(" AND v.severity = ").bind(severity.as_str());
    }
    if let Some(run) = query.run {
        sql = sql.push(" AND v.run_id = ").bind(run.0);
    }
    if let Some(flow) = &query.flow {
        sql = sql.push(" AND v.flow = ").bind(flow.as_str());
    }
    if query.requested_by.is_some() {
        sql = sql.push(" AND v.requested_by = ").bind(viewer.username.as_str());
    }
    if let Some(role) = &query.role {
        let keys = [visibility::role_key(role), visibility::tagged_key(role)];
        sql = found_under(sql.push(" AND "), keys);
    }
    if let Some(tag) = &query.tag {
        sql = found_under(sql.push(" AND "), [visibility::needs_key(tag)]);
    }
    if let Some(irreversible) = query.irreversible {
        sql = sql.push(" AND v.irreversible = ").bind(irreversible);
    }
    queue::columns_fit(sql, query, now)
}

/// Adds the condition that review `v` is found under one of these audience keys.
fn found_under(sql: Sql, keys: impl IntoIterator<Item = String>) -> Sql {
    sql.push("EXISTS (SELECT 1 FROM review_audience g WHERE g.created_at = v.created_at AND g.review_id = v.id ")
        .push("AND g.subject IN (")
        .list(keys)
        .push("))")
}
