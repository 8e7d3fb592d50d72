//! The queue: pending reviews in the order of urgency, and how many there are.
//!
//! Each pending review has a class: a digest of what filters and rights look at of it ([`inbox::outline`]). There are few
//! classes, whatever the number of reviews, so [`shared::access`] itself is asked once for each of them, and an index
//! gives the rest. What a class stands for is read from a review of it. A change of what an outline holds needs a
//! migration that empties `facts`, so that every review is classed anew.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use sha2::{Digest as _, Sha256};
use shared::access::{Act, Principal, access};
use shared::api::{DEFAULT_LIMIT, MAX_LIMIT, Page, ReviewQuery};
use shared::id::ReviewId;
use shared::inbox::{self, Assigned, Due, Filter, Urgency};
use shared::log::Cursor;
use shared::review::Review;
use shared::time::Timestamp;
use uuid::Uuid;

use super::blobs::{Blobs, Reader};
use super::db::{Arg, Conn, Row, Sql};
use super::log_index::{ReviewSearch, padded};
use super::{Error, Store, reviews, search, unreadable};

/// How many classes are remembered; beyond, all are forgotten and read anew.
const MAX_KNOWN: usize = 20_000;
/// How many classes one statement looks up.
const CHUNK: usize = 32;
/// How many reviews of a class are looked at, where the first cannot be read.
const TRIES: u32 = 3;

/// What the columns of the queue say of a review.
pub(super) const COLUMNS: &str = "due, severity_rank, irreversible, claimed_until, class";

/// [`COLUMNS`] of a review.
pub(super) fn columns_of(review: &Review) -> Result<[Arg; 5], Error> {
    let Urgency { due, severity, .. } = Urgency::of(review);
    let claimed = review.claimed_by.as_ref().map_or(0, |claim| claim.until.0);
    let class = review.is_pending().then(|| class_of(review)).transpose()?;
    let rank = Arg::from(i64::from(severity));
    Ok([due.0.into(), rank, inbox::is_irreversible(review).into(), claimed.into(), class.into()])
}

fn class_of(review: &Review) -> Result<Uuid, Error> {
    let outline = serde_json::to_vec(&inbox::outline(review)).map_err(|error| Error::Stored(error.to_string()))?;
    let mut class = [0; 16];
    class.copy_from_slice(&Sha256::digest(outline)[..16]);
    Ok(Uuid::from_bytes(class))
}

/// What classes stand for, as far as it was read.
#[derive(Default)]
pub(super) struct Known(Mutex<HashMap<Uuid, Arc<Review>>>);

/// How many pending reviews there are of each class, and the place in the log of the same moment.
#[derive(Debug, Clone)]
pub struct Tally {
    /// That place.
    pub cursor: Cursor,
    classes: Vec<(Arc<Review>, u64)>,
}

impl Tally {
    /// The classes: what is alike in each, and how many reviews it has.
    pub(super) fn classes(&self) -> impl Iterator<Item = (&Review, u64)> {
        self.classes.iter().map(|(outline, count)| (outline.as_ref(), *count))
    }

    /// How many reviews somebody may see, how many of them they may decide, and how many no run waits for.
    pub fn numbers(&self, viewer: &Principal) -> (u64, u64, u64) {
        let seen = self.classes.iter().filter(|(outline, _)| access(viewer, Act::SeeReview(outline)).is_allowed());
        seen.fold((0, 0, 0), |(pending, mine, handed_over), (outline, count)| {
            let own = access(viewer, Act::Decide(outline)).is_allowed();
            let only = |counts: bool| if counts { *count } else { 0 };
            (pending + count, mine + only(own), handed_over + only(!outline.kind.blocks()))
        })
    }
}

impl Store {
    /// How many pending reviews there are of each class.
    pub async fn tally(&self) -> Result<Tally, Error> {
        let mut conn = self.inner.db.snapshot().await?;
        let tally = self.tally_in(&mut conn).await?;
        conn.rollback().await?;
        Ok(tally)
    }

    pub(super) async fn tally_in(&self, conn: &mut Conn) -> Result<Tally, Error> {
        let cursor = conn.head().await?.cursor(&self.inner.log);
        let from = from(conn, "reviews_class");
        let sql =
            Sql::new("SELECT v.class, COUNT(*) FROM ").push(&from).push(" AND v.class IS NOT NULL GROUP BY v.class");
        let mut counts = HashMap::new();
        for row in conn.fetch(sql).await? {
            counts.insert(row.uuid(0)?, u64::try_from(row.int(1)?).unwrap_or(0));
        }
        let outlines = self.outlines(conn, counts.keys().copied().collect()).await?;
        let classes = outlines.into_iter().map(|(class, outline)| (outline, counts.get(&class).copied().unwrap_or(0)));
        Ok(Tally { cursor, classes: classes.collect() })
    }

    /// The classes of what is pending.
    pub(super) async fn classes(&self, conn: &mut Conn) -> Result<Vec<(Uuid, Arc<Review>)>, Error> {
        // From one class to the next along the index, without reading the reviews of each.
        let from = from(conn, "reviews_class");
        let next = |after: &str| format!("SELECT v.class FROM {from} AND v.class {after} ORDER BY v.class LIMIT 1");
        let (first, next) = (next("IS NOT NULL"), next("> c.class"));
        let sql = format!(
            "WITH RECURSIVE c(class) AS (SELECT * FROM ({first}) AS f UNION ALL SELECT ({next}) FROM c \
             WHERE c.class IS NOT NULL) SELECT class FROM c WHERE class IS NOT NULL"
        );
        let rows = conn.fetch(Sql::new(&sql)).await?;
        let classes = rows.iter().map(|row| row.uuid(0)).collect::<Result<_, _>>()?;
        self.outlines(conn, classes).await
    }

    /// What classes stand for.
    async fn outlines(&self, conn: &mut Conn, classes: Vec<Uuid>) -> Result<Vec<(Uuid, Arc<Review>)>, Error> {
        let known = |class: &Uuid| self.inner.classes.get().get(class).map(Arc::clone);
        let (mut found, mut unknown) = (Vec::with_capacity(classes.len()), Vec::new());
        for class in classes {
            match known(&class) {
                Some(outline) => found.push((class, outline)),
                None => unknown.push(class),
            }
        }
        for chunk in unknown.chunks(CHUNK) {
            let read = read_outlines(conn, chunk).await?;
            let mut known = self.inner.classes.get();
            if known.len() + read.len() > MAX_KNOWN {
                known.clear();
            }
            // One that could not be read may be readable in another review of its class later.
            let readable = read.iter().filter(|(_, outline)| !outline.unreadable);
            known.extend(readable.map(|(class, outline)| (*class, Arc::clone(outline))));
            found.extend(read);
        }
        Ok(found)
    }

    /// A page of the queue, the most urgent first.
    pub(super) async fn urgent(&self, viewer: &Principal, query: &ReviewQuery) -> Result<Page<Review>, Error> {
        let mut conn = self.inner.db.snapshot().await?;
        let page = self.urgent_in(&mut conn, viewer, query).await?;
        conn.rollback().await?;
        Ok(page)
    }

    pub(super) async fn urgent_in(
        &self,
        conn: &mut Conn,
        viewer: &Principal,
        query: &ReviewQuery,
    ) -> Result<Page<Review>, Error> {
        let now = self.inner.clock.now();
        let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        let place = QueuePosition::of(query.cursor.as_deref())?;
        let filter = Filter::from(query);
        let all = self.classes(conn).await?;
        let fit = all.iter().filter(|(_, outline)| fits_as_class(&filter, outline, viewer, now));
        let fit: Vec<_> = fit.map(|(class, _)| *class).collect();
        let search = search::of(conn, query.q.as_deref(), Some(true)).await?;
        if fit.is_empty() {
            return Ok(Page { items: Vec::new(), next_cursor: None });
        }
        let queue = from(conn, "reviews_urgency");
        let page = |columns: &str, among: Option<&[Uuid]>, place: Option<QueuePosition>, limit: u32| {
            let sql = Sql::new("SELECT ").push(columns).push(" FROM ");
            let sql = match among {
                Some(among) => from_among(sql, among),
                None => sql.push(&queue),
            };
            let mut sql = columns_fit(of_classes(sql, all.len(), &fit), &filter, now);
            if let Some(QueuePosition([due, rank, at], id)) = place {
                sql = sql.push(" AND (v.due, v.severity_rank, v.created_at, v.id) > (");
                sql = sql.list([Arg::from(due), rank.into(), at.into(), id.into()]).push(")");
            }
            sql.push(" ORDER BY v.due, v.severity_rank, v.created_at, v.id LIMIT ").bind(limit)
        };
        let (mut items, next_cursor) = match &search {
            Some(ReviewSearch::Each(words)) => {
                let page =
                    |place, limit| page("v.id, v.search, v.due, v.severity_rank, v.created_at", None, place, limit);
                let place_of = |row: &Row| Ok(QueuePosition([row.int(2)?, row.int(3)?, row.int(4)?], row.uuid(0)?));
                let (ids, next) = search::each(conn, words, limit, place, page, place_of).await?;
                (conn.reviews_in_order(&ids).await?, next.map(QueuePosition::encode))
            }
            search => {
                let among = search.as_ref().map(|search| match search {
                    ReviewSearch::Among(ids) => &ids[..],
                    ReviewSearch::Each(_) => &[],
                });
                let sql = page("v.id, v.due, v.severity_rank, v.created_at", among, place, limit + 1);
                let sql = sql
                    .around(&format!("SELECT r.run_id, r.body, {} FROM (", unreadable::REVIEW))
                    .push(") AS s JOIN reviews r ON r.id = s.id ORDER BY s.due, s.severity_rank, s.created_at, s.id");
                let mut items = conn.found_reviews(sql, &mut Blobs::default()).await?;
                let next = super::cut(&mut items, limit, |review: &Review| QueuePosition::after(review).encode());
                (items, next)
            }
        };
        // Asked once more of the reviews themselves.
        items.retain(|review| review.unreadable || access(viewer, Act::SeeReview(review)).is_allowed());
        Ok(Page { items: reviews::shown_to(items, viewer), next_cursor })
    }
}

impl Known {
    fn get(&self) -> std::sync::MutexGuard<'_, HashMap<Uuid, Arc<Review>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is pending, along this index. SQLite would take the one of the status, and sort.
pub(super) fn from(conn: &Conn, index: &str) -> String {
    let along = if conn.is_postgres() { String::new() } else { format!(" INDEXED BY {index}") };
    format!("reviews v{along} WHERE v.status = 'pending'")
}

/// Whether the reviews of a class can fit a filter, and be seen by somebody. What differs within a class is asked of the
/// columns ([`columns_fit`]).
pub(super) fn fits_as_class(filter: &Filter, outline: &Review, viewer: &Principal, now: Timestamp) -> bool {
    let assigned = filter.assigned.filter(|assigned| *assigned == Assigned::Me);
    let filter = Filter { assigned, due: None, age: None, ..filter.clone() };
    access(viewer, Act::SeeReview(outline)).is_allowed() && filter.matches(outline, viewer, now)
}

/// Adds the same of some reviews alone, one after the other. An expression, so that no index of what is pending is read.
pub(super) fn from_among(sql: Sql, among: &[Uuid]) -> Sql {
    let none = [Uuid::nil()];
    let among = if among.is_empty() { &none } else { among };
    sql.push("reviews v WHERE v.status || '' = 'pending' AND v.id IN (").list(padded(among)).push(")")
}

/// Adds that a review is of one of these classes, of so many that there are. There must be one.
pub(super) fn of_classes(sql: Sql, all: usize, fit: &[Uuid]) -> Sql {
    if fit.len() == all {
        sql.push(" AND v.class IS NOT NULL")
    } else {
        sql.push(" AND v.class IN (").list(fit.iter().copied()).push(")")
    }
}

/// Adds the parts of a filter that columns of `reviews v` tell whether or not a review is pending: deadline, age, claim.
pub(super) fn columns_fit(mut sql: Sql, filter: &Filter, now: Timestamp) -> Sql {
    match filter.due {
        None => {}
        Some(Due::Never) => sql = sql.push(" AND v.due = ").bind(Timestamp::MAX.0),
        Some(due) => {
            // `MAX` stands for none.
            let latest = due.latest(now).unwrap_or(now).0.min(Timestamp::MAX.0 - 1);
            sql = sql.push(" AND v.due <= ").bind(latest);
        }
    }
    if let Some(oldest) = filter.oldest(now) {
        sql = sql.push(" AND v.created_at <= ").bind(oldest.0);
    }
    match filter.assigned {
        Some(Assigned::Claimed) => sql.push(" AND v.claimed_until > ").bind(now.0),
        Some(Assigned::Unclaimed) => sql.push(" AND v.claimed_until <= ").bind(now.0),
        Some(Assigned::Me) | None => sql,
    }
}

async fn read_outlines(conn: &mut Conn, classes: &[Uuid]) -> Result<Vec<(Uuid, Arc<Review>)>, Error> {
    let from = from(conn, "reviews_class");
    let mut sql = Sql::new("SELECT r.class, r.run_id, r.body, ").push(unreadable::REVIEW).push(" FROM (");
    for (index, class) in classes.iter().enumerate() {
        sql = sql.push(if index > 0 { " UNION ALL " } else { "" }).push("SELECT * FROM (SELECT v.id FROM ").push(&from);
        sql = sql.push(" AND v.class = ").bind(*class).push(" LIMIT ").bind(TRIES).push(") AS o");
    }
    let rows = conn.fetch(sql.push(") AS s JOIN reviews r ON r.id = s.id")).await?;
    let mut reader = Reader::default();
    for row in &rows {
        reader.add_column(row.uuid(1)?, row.text(2));
    }
    let mut found: HashMap<Uuid, Arc<Review>> = HashMap::new();
    let read = reader.finish_each::<Review>("a review", conn, &mut Blobs::default()).await?;
    for (review, row) in read.into_iter().zip(&rows) {
        let class = row.uuid(0)?;
        if found.get(&class).is_some_and(|found| !found.unreadable) {
            continue;
        }
        let review = match review {
            Ok(review) => review,
            Err(error) => unreadable::review(row, row.uuid(1)?, 3, &error)?,
        };
        found.insert(class, Arc::new(inbox::outline(&review)));
    }
    Ok(found.into_iter().collect())
}

/// A place in the queue: deadline, rank of the severity, when it was asked; and the id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct QueuePosition([i64; 3], Uuid);

impl QueuePosition {
    fn after(review: &Review) -> Self {
        let Urgency { due, severity, asked, id: ReviewId(id) } = Urgency::of(review);
        Self([due.0, severity.into(), asked.0], id)
    }

    fn encode(self) -> String {
        let mut bytes: Vec<u8> = self.0.iter().flat_map(|number| number.to_be_bytes()).collect();
        bytes.extend(self.1.as_bytes());
        BASE64.encode(bytes)
    }

    fn of(cursor: Option<&str>) -> Result<Option<Self>, Error> {
        cursor.map(|text| Self::decode(text).ok_or(Error::Cursor)).transpose()
    }

    fn decode(text: &str) -> Option<Self> {
        let bytes = BASE64.decode(text).ok()?;
        let (numbers, id) = bytes.split_at_checked(24)?;
        let mut place = [0; 3];
        for (number, bytes) in place.iter_mut().zip(numbers.chunks_exact(8)) {
            *number = i64::from_be_bytes(bytes.try_into().ok()?);
        }
        Some(Self(place, Uuid::from_slice(id).ok()?))
    }
}
