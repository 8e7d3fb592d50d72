//! The queue: pending reviews in the order of urgency, and their counts.
//!
//! Each pending review has a row in `queue` with its class: a digest of the data that filters and rights depend on
//! ([`inbox::outline`]). There are few classes, no matter how many reviews, so [`shared::access`] is asked once per
//! class, and the ordered rows give the rest. The table `classes` has the outline of each class. A change of the
//! outline needs a migration that empties the queue and sets `severity_rank` of pending reviews to NULL, so that every
//! review is classified again.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use shared::access::{Act, Principal, access, asked};
use shared::api::{DEFAULT_LIMIT, MAX_LIMIT, Page, ReviewQuery};
use shared::id::{RunId, Username};
use shared::inbox::{self, Assigned, Due, Facet, ReviewOrder, Urgency};
use shared::log::Cursor;
use shared::review::{Review, ReviewKind};
use shared::time::Timestamp;
use uuid::Uuid;

use super::batch::Table;
use super::cursor::ListPlace;
use super::db::{Arg, Conn, Db, Row, Sql};
use super::driver_error::DriverError;
use super::log_index::{ReviewSearch, WordIndex, padded};
use super::page_bytes::{MAX_PAGE_BYTES, PageBytes};
use super::queue_place::{QueuePlace, QueuePosition, queue_key};
use super::stored_review::visible_to;
use super::{Error, Store, search, unreadable};

/// The largest number of classes in the cache; beyond that, the cache is emptied.
const MAX_KNOWN: usize = 20_000;
/// The number of classes that one statement looks up.
const CHUNK: usize = 32;
/// The number of unused classes that are removed at once.
const FORGOTTEN_AT_ONCE: u32 = 500;

/// The columns of a review's own row that filters of lists read, whether or not the review is pending.
pub(super) const COLUMNS: &str = "due, severity_rank, irreversible, claimed_until";

pub(super) fn columns_of(review: &Review) -> [Arg; 4] {
    let Urgency { due, severity, .. } = Urgency::of(review);
    let rank = Arg::from(i64::from(severity));
    [due.0.into(), rank, inbox::is_irreversible(review).into(), claimed_until(review).into()]
}

fn claimed_until(review: &Review) -> i64 {
    review.claimed_by.as_ref().map_or(0, |claim| claim.until.0)
}

/// The queue, and the conflict clause for a row that exists already.
pub(super) const QUEUE: Table =
    Table { name: "queue", key: "due, severity_rank, created_at, id", others: "class, claimed_until, question" };
pub(super) const ON_CONFLICT_UPDATE: &str = " ON CONFLICT (due, severity_rank, created_at, id) DO UPDATE SET \
                                class = excluded.class, claimed_until = excluded.claimed_until";
/// The classes. Each is written before the rows of the queue that refer to it.
pub(super) const CLASSES: Table = Table { name: "classes", key: "class", others: "outline" };

/// The row of a pending review in the queue, the review's class, and the outline of that class.
pub(super) fn row_of(review: &Review) -> Result<(Vec<Arg>, Uuid, String), Error> {
    let outline = outline_of(review)?;
    let class = class_of(&outline);
    Ok((row_of_class(review, class), class, outline))
}

/// Like [`row_of`], if the class is known.
pub(super) fn row_of_class(review: &Review, class: Uuid) -> Vec<Arg> {
    let question = review.run_id.is_none().then(|| question(review.kind, &review.requested_by));
    let mut row = queue_key(Urgency::of(review));
    row.extend([class.into(), claimed_until(review).into(), question.into()]);
    row
}

/// The outline of a review, as it is stored.
pub(super) fn outline_of(review: &Review) -> Result<String, Error> {
    serde_json::to_string(&inbox::outline(review)).map_err(|error| Error::Stored(error.to_string()))
}

fn class_of(outline: &str) -> Uuid {
    let mut class = [0; 16];
    class.copy_from_slice(&Sha256::digest(outline)[..16]);
    Uuid::from_bytes(class)
}

/// The key by which pending questions are counted that a person asks without a flow, by kind.
pub(super) fn question(kind: ReviewKind, asker: &Username) -> String {
    format!("{}:{asker}", kind.as_str())
}

#[derive(Default)]
pub(super) struct ClassCache(Mutex<HashMap<Uuid, Arc<Review>>>);

/// The number of pending reviews in each class, and the cursor at the same moment.
#[derive(Debug, Clone)]
pub struct Tally {
    /// The cursor at which the counts were taken.
    pub cursor: Cursor,
    classes: Vec<(Arc<Review>, u64)>,
}

impl Tally {
    /// Iterates over the classes: the outline of each, and the number of its reviews.
    pub(super) fn classes(&self) -> impl Iterator<Item = (&Review, u64)> {
        self.classes.iter().map(|(outline, count)| (outline.as_ref(), *count))
    }

    /// Counts the reviews that the viewer may see, those of them that the viewer may decide, and those that no run
    /// waits for.
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
    /// Counts the pending reviews of each class.
    pub async fn tally(&self) -> Result<Tally, Error> {
        let store = self.clone();
        let read = move |mut conn: Conn| async move {
            let tally = store.tally_in(&mut conn).await?;
            conn.rollback().await?;
            Ok(tally)
        };
        self.inner.db.snapshot_as_one(read).await
    }

    pub(super) async fn tally_in(&self, conn: &mut Conn) -> Result<Tally, Error> {
        let cursor = conn.head().await?.cursor(&self.inner.log);
        let sql = "SELECT class, CAST(0 AS BIGINT), CAST(0 AS BIGINT), CAST(0 AS BIGINT) FROM queue";
        let counts = conn.count_groups(Sql::new(sql)).await?;
        let counts: HashMap<Uuid, u64> = counts.into_iter().map(|(key, count)| (key.id, count)).collect();
        let outlines = self.outlines(conn, counts.keys().copied().collect()).await?;
        let classes = outlines.into_iter().map(|(class, outline)| (outline, counts.get(&class).copied().unwrap_or(0)));
        Ok(Tally { cursor, classes: classes.collect() })
    }

    /// Returns the classes of pending reviews with their outlines; also some that are no longer in use.
    pub(super) async fn classes(&self, conn: &mut Conn) -> Result<Vec<(Uuid, Arc<Review>)>, Error> {
        let classes = conn.all(Sql::new("SELECT class FROM classes"), Row::uuid).await?;
        self.outlines(conn, classes).await
    }

    /// Returns the outlines of classes, from the cache if possible.
    async fn outlines(&self, conn: &mut Conn, classes: Vec<Uuid>) -> Result<Vec<(Uuid, Arc<Review>)>, Error> {
        let known = |class: &Uuid| self.inner.classes.0.lock().get(class).map(Arc::clone);
        let (mut found, mut unknown) = (Vec::with_capacity(classes.len()), Vec::new());
        for class in classes {
            match known(&class) {
                Some(outline) => found.push((class, outline)),
                None => unknown.push(class),
            }
        }
        for chunk in unknown.chunks(CHUNK) {
            let read = read_outlines(conn, chunk).await?;
            let mut known = self.inner.classes.0.lock();
            if known.len() + read.len() > MAX_KNOWN {
                known.clear();
            }
            // An outline that cannot be read is not cached: a newer server may rewrite it.
            let readable = read.iter().filter(|(_, outline)| !outline.unreadable);
            known.extend(readable.map(|(class, outline)| (*class, Arc::clone(outline))));
            found.extend(read);
        }
        Ok(found)
    }

    /// Returns a page of pending reviews in the order of the query.
    pub(super) async fn waiting(&self, viewer: &Principal, query: &ReviewQuery) -> Result<Page<Review>, Error> {
        let (store, viewer, query) = (self.clone(), viewer.clone(), query.clone());
        let read = move |mut conn: Conn| async move {
            let page = store.waiting_in(&mut conn, &viewer, &query).await?;
            conn.rollback().await?;
            Ok(page)
        };
        self.inner.db.snapshot_as_one(read).await
    }

    pub(super) async fn waiting_in(
        &self,
        conn: &mut Conn,
        viewer: &Principal,
        query: &ReviewQuery,
    ) -> Result<Page<Review>, Error> {
        match query.order.unwrap_or_default() {
            ReviewOrder::Urgency => self.page_in::<QueuePosition>(conn, viewer, query).await,
            ReviewOrder::Newest => self.page_in::<ListPlace>(conn, viewer, query).await,
        }
    }

    async fn page_in<P: QueuePlace>(
        &self,
        conn: &mut Conn,
        viewer: &Principal,
        query: &ReviewQuery,
    ) -> Result<Page<Review>, Error> {
        let (places, next) = self.places_in::<P>(conn, viewer, query).await?;
        let see = |reviews| seen(reviews, viewer);
        let (items, next) = conn.page_of_reviews(&places, next, PageBytes::of_page(MAX_PAGE_BYTES), see).await?;
        Ok(Page { items, next_cursor: next.map(P::encode) })
    }

    /// Returns the ids and places of the reviews on a page, and the place of the next page.
    pub(super) async fn places_in<P: QueuePlace>(
        &self,
        conn: &mut Conn,
        viewer: &Principal,
        query: &ReviewQuery,
    ) -> Result<(Vec<(Uuid, P)>, Option<P>), Error> {
        let now = self.inner.clock.now();
        let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        let place = P::of(query.cursor.as_deref())?;
        let all = self.classes(conn).await?;
        let asks = |outline: &Review| query.requested_by.is_none() || asked_by(outline, viewer);
        let fit = all.iter().filter(|(_, outline)| asks(outline) && fits_as_class(query, outline, viewer, now));
        let fit: Vec<_> = fit.map(|(class, _)| *class).collect();
        let search = search::of(conn, query.q.as_deref(), &[WordIndex::Pending]).await?;
        if fit.is_empty() {
            return Ok((Vec::new(), None));
        }
        let (order, key) = (P::ORDER, P::COLUMNS);
        let page = |among: Option<&[Uuid]>, place: Option<P>, limit: u32| {
            let sql = from(Sql::new("SELECT v.id, ").push(key).push(" FROM "), false, among);
            let mut sql = columns_fit(of_classes(sql, all.len(), &fit), query, now);
            if let Some(run) = query.run {
                sql = of_run(sql, run);
            }
            if let Some(place) = place {
                sql = place.behind(sql);
            }
            sql.push(" ORDER BY ").push(order).push(" LIMIT ").bind(limit)
        };
        Ok(match &search {
            Some(ReviewSearch::Each(words)) => {
                // Joined with the texts of these rows only, not of all rows that are sorted.
                let [order, key] = [order, key].map(|columns| columns.replace("v.", "s."));
                let with_text = format!("SELECT s.id, {key}, r.search FROM (");
                let behind = format!(") AS s CROSS JOIN reviews r WHERE r.id = s.id ORDER BY {order}");
                let page = |place, limit| page(None, place, limit).around(&with_text).push(&behind);
                let text = key.split(", ").count() + 1;
                let fits = |row: &Row| Ok(words.are_in(&row.text(text)?));
                search::each(conn, fits, limit, place, page, |row| P::read(row, 1)).await?
            }
            search => {
                let among = search.as_ref().map(|search| match search {
                    ReviewSearch::Among(ids) => &ids[..],
                    ReviewSearch::Each(_) => &[],
                });
                let rows = conn.fetch(page(among, place, limit + 1)).await?;
                let places = rows.iter().map(|row| Ok((row.uuid(0)?, P::read(row, 1)?)));
                let mut places: Vec<(Uuid, P)> = places.collect::<Result<_, Error>>()?;
                let next = super::cut(&mut places, limit, |(_, place)| place.clone());
                (places, next)
            }
        })
    }
}

/// Keeps the reviews that the viewer may see, as the viewer may see them. The rights are checked on the reviews
/// themselves once more.
pub(super) fn seen(mut reviews: Vec<Review>, viewer: &Principal) -> Vec<Review> {
    reviews.retain(|review| review.unreadable || access(viewer, Act::SeeReview(review)).is_allowed());
    visible_to(reviews, viewer)
}

/// Adds the FROM clause for pending reviews, `queue v`. `with_text` joins their reviews as `r`; `among` limits them to
/// these ids, which are looked up one by one.
pub(super) fn from(sql: Sql, with_text: bool, among: Option<&[Uuid]>) -> Sql {
    // With CROSS JOIN, SQLite keeps this order.
    let Some(among) = among else {
        return sql.push(if with_text {
            "queue v CROSS JOIN reviews r WHERE r.id = v.id"
        } else {
            "queue v WHERE true"
        });
    };
    let sql = sql.push("reviews r CROSS JOIN queue v WHERE v.due = r.due AND v.severity_rank = r.severity_rank ");
    sql.push("AND v.created_at = r.created_at AND v.id = r.id AND r.id").among(padded(among))
}

/// Adds the condition that a review in `queue v` belongs to a run.
fn of_run(sql: Sql, run: RunId) -> Sql {
    sql.push(" AND v.id IN (SELECT o.id FROM reviews o WHERE o.run_id = ").bind(run.0).push(")")
}

/// Whether reviews of a class can match a query and may be seen by the viewer. Properties that differ within a class
/// are checked by columns ([`columns_fit`]).
pub(super) fn fits_as_class(query: &ReviewQuery, outline: &Review, viewer: &Principal, now: Timestamp) -> bool {
    let is_of_columns = |facet| match facet {
        Some(Facet::Due | Facet::Age) => true,
        Some(Facet::Assigned) => query.assigned != Some(Assigned::Me),
        _ => false,
    };
    access(viewer, Act::SeeReview(outline)).is_allowed() && query.misses(outline, viewer, now).all(is_of_columns)
}

/// Whether the viewer has requested the reviews of a class, and may list them as their own.
fn asked_by(outline: &Review, viewer: &Principal) -> bool {
    outline.requested_by == viewer.username && asked(viewer, outline)
}

/// Adds the condition that a review is in one of the classes `fit`, unless these are all. `fit` must not be empty.
pub(super) fn of_classes(sql: Sql, all: usize, fit: &[Uuid]) -> Sql {
    if fit.len() == all { sql } else { sql.push(" AND v.class").among(fit.iter().copied()) }
}

/// Adds the conditions of a query that depend on columns of `v`, whether or not a review is pending: deadline, age,
/// claim.
pub(super) fn columns_fit(mut sql: Sql, query: &ReviewQuery, now: Timestamp) -> Sql {
    match query.due {
        None => {}
        Some(Due::Never) => sql = sql.push(" AND v.due = ").bind(Timestamp::MAX.0),
        Some(due) => {
            // `MAX` stands for no deadline.
            let latest = due.latest(now).unwrap_or(now).0.min(Timestamp::MAX.0 - 1);
            sql = sql.push(" AND v.due <= ").bind(latest);
        }
    }
    if let Some(oldest) = query.oldest(now) {
        sql = sql.push(" AND v.created_at <= ").bind(oldest.0);
    }
    match query.assigned {
        Some(Assigned::Claimed) => sql.push(" AND v.claimed_until > ").bind(now.0),
        Some(Assigned::Unclaimed) => sql.push(" AND v.claimed_until <= ").bind(now.0),
        Some(Assigned::Me) | None => sql,
    }
}

async fn read_outlines(conn: &mut Conn, classes: &[Uuid]) -> Result<Vec<(Uuid, Arc<Review>)>, Error> {
    let rows = conn.fetch(Sql::new("SELECT class, outline FROM classes WHERE class").among(padded(classes))).await?;
    let read = rows.iter().map(|row| {
        let class = row.uuid(0)?;
        // A class that cannot be read must not keep reviews of other classes out of lists.
        let outline = serde_json::from_str(&row.text(1)?).or_else(|error| {
            tracing::error!(%class, %error, "a class of reviews cannot be read, and is in the queue for admins");
            unreadable::class(class, &Error::Stored(format!("a class of reviews: {error}")))
        });
        Ok((class, Arc::new(outline?)))
    });
    read.collect()
}

/// Returns some classes without pending reviews. Reads the whole queue, so it is not done by a writer.
pub(super) async fn unused_classes(db: &Db) -> Result<Vec<Uuid>, DriverError> {
    // Both databases hash or sort for EXCEPT.
    let sql = Sql::new("SELECT class FROM classes EXCEPT SELECT class FROM queue LIMIT ").bind(FORGOTTEN_AT_ONCE);
    db.read().await?.all(sql, Row::uuid).await
}

impl Conn {
    /// Removes those of these classes that still have no pending reviews. Returns whether there may be more. This must be
    /// the first statement of a transaction, since writers of reviews take the lock on `classes` before any row that the
    /// clean-up locks.
    pub async fn forget_classes(&mut self, unused: &[Uuid]) -> Result<bool, DriverError> {
        if unused.is_empty() {
            return Ok(false);
        }
        let sql = Sql::new("DELETE FROM classes WHERE class").among(unused.iter().copied());
        if self.is_postgres() {
            // Whoever adds a row to the queue has written its class in the same transaction, and so holds a lock on this
            // table. With the table locked, rows that were added meanwhile are checked again.
            self.execute(Sql::new("SET LOCAL lock_timeout = '1s'")).await?;
            self.execute(Sql::new("LOCK TABLE classes IN EXCLUSIVE MODE")).await?;
            // PostgreSQL joins for NOT EXISTS, which takes less time than comparing with a long list.
            self.execute(sql.push(" AND NOT EXISTS (SELECT 1 FROM queue q WHERE q.class = classes.class)")).await?;
        } else {
            // No index of the queue begins with the class, so that SQLite would read the queue once for each class with
            // NOT EXISTS. So it reads the queue once, and only if there is something to remove.
            let sql = sql.push(" AND class NOT IN (SELECT q.class FROM queue q WHERE q.class");
            self.execute(sql.among(unused.iter().copied()).push(")")).await?;
        }
        Ok(unused.len() >= FORGOTTEN_AT_ONCE as usize)
    }

    /// Returns the classes whose outlines match; some of them may no longer be in use.
    pub async fn classes_where(&mut self, fits: impl Fn(&Review) -> bool) -> Result<Vec<Uuid>, Error> {
        let all = self.all(Sql::new("SELECT class FROM classes"), Row::uuid).await?;
        let mut found = Vec::new();
        for chunk in all.chunks(CHUNK) {
            let read = read_outlines(self, chunk).await?;
            found.extend(read.iter().filter(|(_, outline)| fits(outline)).map(|(class, _)| *class));
        }
        Ok(found)
    }
}
