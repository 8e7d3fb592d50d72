//! Reviews: single ones, those of a run, and lists of those that a caller may see. `queue` lists pending reviews, and
//! `review_list` the others, or all.

use std::collections::HashMap;

use shared::access::{Act, Principal, access};
use shared::api::{Page, ReviewQuery};
use shared::id::{ReviewId, RunId};
use shared::inbox::ReviewOrder;
use shared::review::{Review, ReviewStatus};

use super::blobs::Blobs;
use super::cursor::ListPlace;
use super::db::{Conn, Sql};
use super::page_bytes::{MAX_PAGE_BYTES, PageBytes};
use super::queue_place::QueuePosition;
use super::stored_review::{select, visible_to};
use super::visibility::sees_all;
use super::{Error, Pending, Store, queue, review_list};

impl Store {
    /// Returns a review, without an expired claim. `None` if it does not exist.
    pub async fn review(&self, id: ReviewId) -> Result<Option<Review>, Error> {
        let mut conn = self.inner.db.read().await?;
        let reviews = conn
            .found_reviews(select().push(" FROM reviews r WHERE r.id = ").bind(id.0), &mut Blobs::default())
            .await?;
        Ok(self.without_lapsed_claims(reviews).pop())
    }

    /// Returns a review without its large values, for checks of rights.
    pub async fn review_outline(&self, id: ReviewId) -> Result<Option<Review>, Error> {
        let mut conn = self.inner.db.read().await?;
        conn.review_outline(select().push(" FROM reviews r WHERE r.id = ").bind(id.0)).await
    }

    /// Returns those of these reviews that are no longer pending.
    pub async fn over_among(&self, reviews: &[ReviewId]) -> Result<Vec<ReviewId>, Error> {
        let over = "SELECT id FROM reviews WHERE status <> 'pending' AND id IN (";
        let ids: Vec<_> = reviews.iter().map(|id| id.0).collect();
        let over = self.inner.db.read().await?.ids_among(over, &ids).await?;
        Ok(over.into_iter().map(ReviewId).collect())
    }

    /// Returns those of these reviews that are no longer pending, or have more comments than the number beside them.
    pub async fn over_or_commented_among(&self, reviews: &[(ReviewId, u32)]) -> Result<Vec<(ReviewId, u32)>, Error> {
        /// The number of reviews per statement.
        const AT_ONCE: usize = 500;
        let mut conn = self.inner.db.read().await?;
        let mut comments = HashMap::new();
        for some in reviews.chunks(AT_ONCE) {
            let sql = Sql::new("SELECT id, comments FROM reviews WHERE status = 'pending' AND id IN (");
            for row in conn.fetch(sql.list(some.iter().map(|(id, _)| id.0)).push(")")).await? {
                comments.insert(row.uuid(0)?, row.int(1)?);
            }
        }
        let has_news = |(id, seen): &&(ReviewId, u32)| comments.get(&id.0).is_none_or(|now| *now > i64::from(*seen));
        Ok(reviews.iter().filter(has_news).copied().collect())
    }

    /// Returns the reviews of a run, in the order in which they were requested.
    pub async fn run_reviews(&self, run: RunId) -> Result<Vec<Review>, Error> {
        let sql = select().push(" FROM reviews r WHERE r.run_id = ").bind(run.0).push(" ORDER BY r.created_at, r.id");
        let mut conn = self.inner.db.read().await?;
        let reviews = conn.found_reviews(sql, &mut Blobs::default()).await?;
        Ok(self.without_lapsed_claims(reviews))
    }

    /// Lists the reviews of a run that the viewer may see, newest first. A page may have fewer reviews than asked for, or
    /// none, and still a cursor: the viewer may not see all. `None` if the run does not exist, or the viewer may not see
    /// it.
    pub async fn page_of_run(
        &self,
        viewer: &Principal,
        run: RunId,
        status: Option<ReviewStatus>,
        limit: u32,
        cursor: Option<&str>,
    ) -> Result<Option<Page<Review>>, Error> {
        let mut sql = Sql::new("SELECT r.id, r.created_at FROM reviews r WHERE r.run_id = ").bind(run.0);
        if let Some(status) = status {
            sql = sql.push(" AND r.status = ").bind(status.as_str());
        }
        if let Some(place) = ListPlace::of(cursor)? {
            sql = place.condition(sql, "r.created_at", "r.id");
        }
        let viewer = viewer.clone();
        if sees_all(&viewer) {
            // A review without a flow belongs to a run that only carries it. So the row of the run need not be read:
            // its key says whether it exists.
            sql = sql.push(" AND r.flow IS NOT NULL AND EXISTS (SELECT 1 FROM runs WHERE id = r.run_id)");
        }
        // A run has few reviews: the sum keeps PostgreSQL from looking for them among all, in their order.
        let sql = sql.push(" ORDER BY r.created_at + 0 DESC, r.id DESC LIMIT ").bind(limit + 1);
        let read = move |mut conn: Conn| async move {
            let (places, next) = conn.first_places(sql, limit).await?;
            // For those who see all runs, a review of a run that exists suffices; its state need not be read.
            let is_seen = sees_all(&viewer) && !places.is_empty();
            if !is_seen && conn.visible_summary(&viewer, run).await?.is_none() {
                return Ok(None);
            }
            let places: Vec<_> = places.into_iter().map(|place| (place.id, place)).collect();
            let see = |mut reviews: Vec<Review>| {
                reviews.retain(|review| access(&viewer, Act::SeeReview(review)).is_allowed());
                visible_to(reviews, &viewer)
            };
            conn.page_of_reviews(&places, next, PageBytes::of_page(MAX_PAGE_BYTES), see).await.map(Some)
        };
        let page = self.inner.db.read_as_one(read).await?;
        Ok(page.map(|(items, next)| Page {
            items: self.without_lapsed_claims(items),
            next_cursor: next.map(ListPlace::encode),
        }))
    }

    /// Lists the reviews that the viewer may see; in the order of urgency, only pending ones. Whether they may list what
    /// somebody else decided is for the caller to check. A page of other reviews may have fewer items than asked for, or
    /// none, and still a cursor: it has examined as many reviews as a page may.
    pub async fn reviews(&self, viewer: &Principal, query: &ReviewQuery) -> Result<Page<Review>, Error> {
        let newest = query.order.unwrap_or_default() == ReviewOrder::Newest;
        let in_queue = query.status == Some(ReviewStatus::Pending) && query.decided_by.is_none();
        let Page { items, next_cursor } = if newest && !in_queue {
            let (viewer, query, now) = (viewer.clone(), query.clone(), self.inner.clock.now());
            if let Some(by) = &query.decided_by {
                let (store, by) = (self.clone(), by.username(&viewer.username).clone());
                let read = move |mut conn: Conn| async move {
                    let page = store.decided_page(&mut conn, &viewer, &by, &query, now).await?;
                    conn.rollback().await?;
                    Ok::<_, Error>(page)
                };
                self.inner.db.snapshot_as_one(read).await?
            } else {
                let read =
                    move |mut conn: Conn| async move { review_list::page(&mut conn, &viewer, &query, now).await };
                self.inner.db.read_as_one(read).await?
            }
        } else {
            self.waiting(viewer, query).await?
        };
        Ok(Page { items: self.without_lapsed_claims(items), next_cursor })
    }

    /// Returns the counts of pending reviews, the most urgent that the viewer may see, and the cursor at that moment.
    /// There are at most `limit` reviews, of at most `max_bytes` as JSON in total.
    pub async fn pending(&self, viewer: &Principal, limit: u32, max_bytes: usize) -> Result<Pending, Error> {
        let (store, viewer) = (self.clone(), viewer.clone());
        let read = move |mut conn: Conn| async move {
            let tally = store.tally_in(&mut conn).await?;
            let reviews = match limit {
                0 => Vec::new(),
                limit => store.most_urgent_in(&mut conn, &viewer, limit, max_bytes).await?,
            };
            let reviews = store.without_lapsed_claims(reviews);
            conn.rollback().await?;
            Ok(Pending { tally, reviews })
        };
        self.inner.db.snapshot_as_one(read).await
    }

    /// Returns the most urgent reviews that the viewer may see: at most `limit`, of at most `max_bytes` as JSON in
    /// total.
    async fn most_urgent_in(
        &self,
        conn: &mut Conn,
        viewer: &Principal,
        limit: u32,
        max_bytes: usize,
    ) -> Result<Vec<Review>, Error> {
        let query = ReviewQuery { limit: Some(limit), order: Some(ReviewOrder::Urgency), ..ReviewQuery::default() };
        let (places, next) = self.places_in::<QueuePosition>(conn, viewer, &query).await?;
        let see = |reviews| queue::seen(reviews, viewer);
        Ok(conn.page_of_reviews(&places, next, PageBytes::of_list(max_bytes), see).await?.0)
    }

    /// Removes expired claims from reviews.
    fn without_lapsed_claims(&self, mut reviews: Vec<Review>) -> Vec<Review> {
        let now = self.inner.clock.now();
        for review in &mut reviews {
            review.drop_lapsed_claim(now);
        }
        reviews
    }
}
