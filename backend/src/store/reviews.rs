//! Reviews: one, those of a run, and lists of those that somebody may see.

use std::collections::{BTreeSet, HashMap};

use shared::access::Principal;
use shared::api::{DEFAULT_LIMIT, MAX_LIMIT, Page, ReviewQuery};
use shared::id::{ReviewId, RunId, Username};
use shared::inbox::{Assigned, Filter, ReviewOrder};
use shared::review::{Review, ReviewStatus};
use shared::time::Timestamp;
use uuid::Uuid;

use super::blobs::{Blobs, Reader};
use super::cursor::ListPlace;
use super::db::{Arg, Conn, Row, Sql};
use super::log_index::{ReviewSearch, padded};
use super::visibility::{self, Sight, Tagged};
use super::{Error, Pending, Store, queue, search, unreadable};

/// Of so many reviews, at most, that have the words of a search, each is looked up and put in order. Where there are
/// more, they are found soon along the list. Tests see both ways.
pub(super) const FEW: usize = if cfg!(test) { 9 } else { 2000 };

impl Store {
    /// A review.
    pub async fn review(&self, id: ReviewId) -> Result<Option<Review>, Error> {
        let mut conn = self.inner.db.read().await?;
        let reviews = conn
            .found_reviews(select().push(" FROM reviews r WHERE r.id = ").bind(id.0), &mut Blobs::default())
            .await?;
        Ok(self.without_lapsed_claims(reviews).pop())
    }

    /// Those of these reviews that do not wait any more.
    pub async fn over_among(&self, reviews: &[ReviewId]) -> Result<Vec<ReviewId>, Error> {
        /// How many one statement asks for.
        const AT_ONCE: usize = 500;
        let mut conn = self.inner.db.read().await?;
        let mut over = Vec::new();
        for some in reviews.chunks(AT_ONCE) {
            let sql = Sql::new("SELECT id FROM reviews WHERE id IN (").list(some.iter().map(|id| id.0));
            for row in conn.fetch(sql.push(") AND status || '' <> 'pending'")).await? {
                over.push(ReviewId(row.uuid(0)?));
            }
        }
        Ok(over)
    }

    /// A run's reviews, in the order in which they were asked.
    pub async fn run_reviews(&self, run: RunId) -> Result<Vec<Review>, Error> {
        let sql = select().push(" FROM reviews r WHERE r.run_id = ").bind(run.0).push(" ORDER BY r.created_at, r.id");
        let mut conn = self.inner.db.read().await?;
        let reviews = conn.found_reviews(sql, &mut Blobs::default()).await?;
        Ok(self.without_lapsed_claims(reviews))
    }

    /// The reviews that somebody may see. In the order of urgency only those that are pending.
    pub async fn reviews(&self, viewer: &Principal, query: &ReviewQuery) -> Result<Page<Review>, Error> {
        let Page { items, next_cursor } = match query.order.unwrap_or_default() {
            ReviewOrder::Urgency => self.urgent(viewer, query).await?,
            ReviewOrder::Newest => {
                let mut conn = self.inner.db.read().await?;
                page(&mut conn, viewer, query, self.inner.clock.now()).await?
            }
        };
        Ok(Page { items: self.without_lapsed_claims(items), next_cursor })
    }

    /// How many pending reviews somebody may see, the first page of them, and the place in the log of the same moment.
    pub async fn pending(&self, viewer: &Principal, limit: u32) -> Result<Pending, Error> {
        let query = ReviewQuery { limit: Some(limit), ..ReviewQuery::default() };
        let mut conn = self.inner.db.snapshot().await?;
        let tally = self.tally_in(&mut conn).await?;
        let reviews = self.without_lapsed_claims(self.urgent_in(&mut conn, viewer, &query).await?.items);
        conn.rollback().await?;
        Ok(Pending { tally, reviews })
    }

    /// Reviews as they are now: a claim whose lease has run out is none.
    fn without_lapsed_claims(&self, mut reviews: Vec<Review>) -> Vec<Review> {
        let now = self.inner.clock.now();
        for review in &mut reviews {
            review.drop_lapsed_claim(now);
        }
        reviews
    }
}

impl Conn {
    /// The reviews of a query that begins with [`select`]; those that cannot be read are marked so.
    pub async fn found_reviews(&mut self, sql: Sql, blobs: &mut Blobs) -> Result<Vec<Review>, Error> {
        let found = self.reviews_with_runs(sql, blobs).await?;
        Ok(found.into_iter().map(|(_, review)| review).collect())
    }

    /// Reviews by their ids, in this order.
    pub async fn reviews_in_order(&mut self, ids: &[Uuid]) -> Result<Vec<Review>, Error> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let sql = select().push(" FROM reviews r WHERE r.id IN (").list(padded(ids)).push(")");
        let mut found = self.found_reviews(sql, &mut Blobs::default()).await?;
        let place: HashMap<_, _> = ids.iter().zip(0..).collect();
        found.sort_by_key(|review| place.get(&review.id.0).copied().unwrap_or(usize::MAX));
        Ok(found)
    }

    /// The reviews of a query that begins with [`select`], each with the run that waits for it, also where nobody sees
    /// that run.
    pub async fn reviews_with_runs(&mut self, sql: Sql, blobs: &mut Blobs) -> Result<Vec<(RunId, Review)>, Error> {
        let rows = self.fetch(sql).await?;
        let mut reader = Reader::default();
        for row in &rows {
            reader.add_column(row.uuid(0)?, row.text(1));
        }
        let reviews = reader.finish_each("a review", self, blobs).await?.into_iter().zip(&rows);
        let reviews = reviews.map(|(review, row)| {
            let run = row.uuid(0)?;
            let review = review.or_else(|error| {
                tracing::error!(%error, "a review cannot be read");
                unreadable::review(row, run, 2, &error)
            });
            Ok((RunId(run), review?))
        });
        reviews.collect()
    }
}

/// A page, newest first.
async fn page(conn: &mut Conn, viewer: &Principal, query: &ReviewQuery, now: Timestamp) -> Result<Page<Review>, Error> {
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    let asked = visibility::asked(viewer);
    let parts = if query.requested_by.is_some() && asked.is_empty() {
        Vec::new()
    } else if query.assigned == Some(Assigned::Me) {
        mine_by_subject(viewer, query)
    } else if query.requested_by.is_some() {
        by_subject(query, &asked, &[], false)
    } else if visibility::sees_all(viewer) {
        by_status(query)
    } else {
        in_sight(query, &visibility::seen(viewer))
    };
    if parts.is_empty() {
        // A token without roles has a right to nothing.
        return Ok(Page { items: Vec::new(), next_cursor: None });
    }
    let place = ListPlace::of(query.cursor.as_deref())?;
    let pending = query.status.map(|status| status == ReviewStatus::Pending);
    let list = NewestList { parts, query, viewer, now };
    let (items, next_cursor) = match search::of(conn, query.q.as_deref(), pending).await? {
        Some(ReviewSearch::Each(words)) => {
            let page = |place, limit| list.page("s.id, r.search, s.at", None, place, limit);
            let place_of = |row: &Row| Ok(ListPlace { id: row.uuid(0)?, at: row.int(2)? });
            let (ids, next) = search::each(conn, &words, limit, place, page, place_of).await?;
            (conn.reviews_in_order(&ids).await?, next.map(ListPlace::encode))
        }
        Some(ReviewSearch::Among(ids)) if ids.is_empty() => (Vec::new(), None),
        search => {
            let among = match &search {
                Some(ReviewSearch::Among(ids)) => Some(&ids[..]),
                _ => None,
            };
            let columns = format!("r.run_id, r.body, {}", unreadable::REVIEW);
            let sql = list.page(&columns, among, place, limit + 1);
            let mut items = conn.found_reviews(sql, &mut Blobs::default()).await?;
            let place = |review: &Review| ListPlace { at: review.created_at.0, id: review.id.0 }.encode();
            let next = super::cut(&mut items, limit, place);
            (items, next)
        }
    };
    Ok(Page { items: shown_to(items, viewer), next_cursor })
}

/// Reviews as somebody may see them.
pub(super) fn shown_to(items: Vec<Review>, viewer: &Principal) -> Vec<Review> {
    items.into_iter().map(|review| review.seen_by(Some(&viewer.username))).collect()
}

/// The index along which a part of a list is read, newest first.
enum Index {
    /// All reviews that stand so.
    Status(ReviewStatus),
    /// Those that somebody sees as this subject, pending or not.
    Audience { subject: String, pending: bool },
}

impl Index {
    /// The columns of the index that a list is ordered by: when a review was made, and its id.
    fn order(&self) -> (&'static str, &'static str) {
        match self {
            Self::Status(_) => ("v.created_at", "v.id"),
            Self::Audience { .. } => ("a.created_at", "a.review_id"),
        }
    }

    /// The same of the reviews `found` alone, one after the other.
    fn found_in(&self, sql: Sql) -> Sql {
        let sql = sql.push("found f CROSS JOIN reviews v");
        match self {
            Self::Status(status) => sql.push(" WHERE v.id = f.id AND v.status || '' = ").bind(status.as_str()),
            Self::Audience { subject, pending } => sql
                .push(" CROSS JOIN review_audience a WHERE v.id = f.id AND a.review_id = f.id AND a.subject = ")
                .bind(subject)
                .push(" AND a.pending + 0 = ")
                .bind(*pending),
        }
    }

    /// Adds the tables, with `reviews v` among them, and where in the index the part is.
    fn from(&self, sql: Sql) -> Sql {
        match self {
            Self::Status(status) => sql.push("reviews v WHERE v.status = ").bind(status.as_str()),
            // CROSS: SQLite joins in this order, along the index of the subject.
            Self::Audience { subject, pending } => sql
                .push("review_audience a CROSS JOIN reviews v WHERE v.id = a.review_id AND (a.subject, a.pending) = (")
                .list([Arg::from(subject), (*pending).into()])
                .push(")"),
        }
    }
}

/// A part of a list that an index gives in order.
struct IndexRange {
    index: Index,
    /// Who must not have started the run where the review bars that.
    not_of: Vec<Username>,
    /// Whose own vote must count, and not be with somebody else.
    not_given: Option<Username>,
    /// What must suffice for the tags that are needed.
    tagged: Option<Tagged>,
}

fn by_status(query: &ReviewQuery) -> Vec<IndexRange> {
    let all = [ReviewStatus::Pending, ReviewStatus::Resolved, ReviewStatus::Expired, ReviewStatus::Withdrawn];
    all.into_iter()
        .filter(|status| query.status.is_none_or(|wanted| wanted == *status))
        .map(|status| IndexRange { index: Index::Status(status), not_of: Vec::new(), not_given: None, tagged: None })
        .collect()
}

/// What somebody may decide, in whosever name.
fn mine_by_subject(viewer: &Principal, query: &ReviewQuery) -> Vec<IndexRange> {
    let mut parts = Vec::new();
    for name in visibility::names(viewer) {
        let both = [viewer.username.clone(), name.username];
        parts.extend(by_subject(query, &name.own, &both, true));
        parts.extend(by_tags(query, &name.tagged, &both, true));
        parts.extend(by_subject(query, &name.handed.into_iter().collect(), &both, false));
    }
    parts
}

/// What somebody may see.
fn in_sight(query: &ReviewQuery, sight: &Sight) -> Vec<IndexRange> {
    let mut parts = by_subject(query, &sight.subjects, &[], false);
    parts.extend(sight.tagged.iter().flat_map(|tagged| by_tags(query, tagged, &[], false)));
    parts
}

/// The same as [`by_subject`], where tags are needed.
fn by_tags(query: &ReviewQuery, tagged: &Tagged, names: &[Username], own: bool) -> Vec<IndexRange> {
    let parts = by_subject(query, &tagged.subjects, names, own);
    parts.into_iter().map(|part| IndexRange { tagged: Some(tagged.clone()), ..part }).collect()
}

/// `names`: the viewer, and the one in whose name they look; `own`: whether as one of those whom the review is for.
fn by_subject(query: &ReviewQuery, subjects: &BTreeSet<String>, names: &[Username], own: bool) -> Vec<IndexRange> {
    let pending: &[bool] = match query.status {
        None => &[true, false],
        Some(ReviewStatus::Pending) => &[true],
        Some(_) => &[false],
    };
    let parts = subjects.iter().flat_map(|subject| pending.iter().map(move |pending| (subject, *pending)));
    parts
        .map(|(subject, pending)| IndexRange {
            index: Index::Audience { subject: subject.clone(), pending },
            not_of: names.to_vec(),
            not_given: names.last().filter(|_| own).cloned(),
            tagged: None,
        })
        .collect()
}

/// What [`Conn::found_reviews`] reads, of `reviews r`.
pub(super) fn select() -> Sql {
    Sql::new("SELECT r.run_id, r.body, ").push(unreadable::REVIEW)
}

/// A list of reviews, newest first.
struct NewestList<'a> {
    parts: Vec<IndexRange>,
    query: &'a ReviewQuery,
    viewer: &'a Principal,
    now: Timestamp,
}

impl NewestList<'_> {
    /// The newest of each part, then the newest of all of these, behind a place: never a scan of what does not belong to
    /// the list. `columns` are of the reviews `r`, with their places `s`. `among`: of these alone.
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
        sql.push(") AS s JOIN reviews r ON r.id = s.id ORDER BY s.at DESC, s.id DESC LIMIT ").bind(limit)
    }

    fn part(&self, sql: Sql, part: &IndexRange, among: bool, place: Option<ListPlace>, limit: u32) -> Sql {
        let IndexRange { index, not_of, not_given, tagged } = part;
        let (at, id) = index.order();
        let sql = sql.push("SELECT * FROM (SELECT ").push(at).push(" AS at, ").push(id).push(" AS id FROM ");
        let mut sql = if among { index.found_in(sql) } else { index.from(sql) };
        if let Some(status) = self.query.status.filter(|status| *status != ReviewStatus::Pending) {
            sql = sql.push(" AND v.status = ").bind(status.as_str());
        }
        if let Some(tagged) = tagged {
            sql = tagged.suffices(sql.push(" AND "));
        }
        if !not_of.is_empty() {
            sql = sql.push(" AND NOT (v.not_requester = 1 AND v.requested_by IN (");
            sql = sql.list(not_of.iter().map(Username::as_str)).push("))");
            sql = found_under(sql.push(" AND NOT "), not_of.iter().map(visibility::barred_subject));
        }
        if let Some(name) = not_given {
            sql = found_under(sql.push(" AND NOT "), [visibility::gave_subject(name)]);
            sql = found_under(sql.push(" AND (NOT "), [visibility::VOTES.to_owned()]);
            sql = found_under(sql.push(" OR "), [visibility::voter_subject(name)]).push(")");
        }
        sql = filter(sql, self.query, self.viewer, self.now);
        if let Some(place) = place {
            sql = place.condition(sql, at, id);
        }
        sql.push(" ORDER BY ").push(at).push(" DESC, ").push(id).push(" DESC LIMIT ").bind(limit).push(")")
    }
}

/// Whether `reviews v` is found under one of these subjects.
fn found_under(sql: Sql, subjects: impl IntoIterator<Item = String>) -> Sql {
    sql.push("EXISTS (SELECT 1 FROM review_audience g WHERE g.review_id = v.id AND g.subject IN (")
        .list(subjects)
        .push("))")
}

/// The conditions of a query other than its status, on `reviews v`.
fn filter(mut sql: Sql, query: &ReviewQuery, viewer: &Principal, now: Timestamp) -> Sql {
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
        let subjects = [visibility::role_subject(role), visibility::tagged_subject(role)];
        sql = found_under(sql.push(" AND "), subjects);
    }
    if let Some(tag) = &query.tag {
        sql = found_under(sql.push(" AND "), [visibility::needs_subject(tag)]);
    }
    if let Some(irreversible) = query.irreversible {
        sql = sql.push(" AND v.irreversible = ").bind(irreversible);
    }
    queue::columns_fit(sql, &Filter::from(query), now)
}
