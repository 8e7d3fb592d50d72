//! Reviews: single ones, those of a run, and lists of those that a caller may see. `queue` lists pending reviews, and
//! `review_list` the others, or all.

use shared::access::Principal;
use shared::api::{Page, ReviewQuery};
use shared::id::{ReviewId, RunId};
use shared::inbox::ReviewOrder;
use shared::review::{Review, ReviewStatus};

use super::blobs::Blobs;
use super::db::{Conn, Sql};
use super::page_bytes::PageBytes;
use super::queue_place::QueuePosition;
use super::stored_review::select;
use super::{Error, Pending, Store, queue, review_list};

impl Store {
    /// A review by its id, without a claim that has run out; `None` where there is none.
    pub async fn review(&self, id: ReviewId) -> Result<Option<Review>, Error> {
        let mut conn = self.inner.db.read().await?;
        let reviews = conn
            .found_reviews(select().push(" FROM reviews r WHERE r.id = ").bind(id.0), &mut Blobs::default())
            .await?;
        Ok(self.without_lapsed_claims(reviews).pop())
    }

    /// The same without large values, for what asks only whose it is.
    pub async fn review_outline(&self, id: ReviewId) -> Result<Option<Review>, Error> {
        let mut conn = self.inner.db.read().await?;
        conn.review_outline(select().push(" FROM reviews r WHERE r.id = ").bind(id.0)).await
    }

    /// Those of these reviews that do not wait any more.
    pub async fn over_among(&self, reviews: &[ReviewId]) -> Result<Vec<ReviewId>, Error> {
        /// How many one statement asks for.
        const AT_ONCE: usize = 500;
        let mut conn = self.inner.db.read().await?;
        let mut over = Vec::new();
        for some in reviews.chunks(AT_ONCE) {
            let sql = Sql::new("SELECT id FROM reviews WHERE id IN (").list(some.iter().map(|id| id.0));
            for row in conn.fetch(sql.push(") AND status <> 'pending'")).await? {
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

    /// The reviews that somebody may see. In the order of urgency only those that are pending. A page of those that stand
    /// otherwise may have fewer than it could, or none, and a cursor: it has asked as many reviews as a page may.
    pub async fn reviews(&self, viewer: &Principal, query: &ReviewQuery) -> Result<Page<Review>, Error> {
        let newest = query.order.unwrap_or_default() == ReviewOrder::Newest;
        let Page { items, next_cursor } = if newest && query.status != Some(ReviewStatus::Pending) {
            let mut conn = self.inner.db.read().await?;
            review_list::page(&mut conn, viewer, query, self.inner.clock.now()).await?
        } else {
            self.waiting(viewer, query).await?
        };
        Ok(Page { items: self.without_lapsed_claims(items), next_cursor })
    }

    /// How many pending reviews somebody may see, the most urgent of them, and the place in the log of the same moment: so
    /// many reviews at most, and no more than have so many bytes as JSON.
    pub async fn pending(&self, viewer: &Principal, limit: u32, max_bytes: usize) -> Result<Pending, Error> {
        let mut conn = self.inner.db.snapshot().await?;
        let tally = self.tally_in(&mut conn).await?;
        let reviews = match limit {
            0 => Vec::new(),
            limit => self.most_urgent_in(&mut conn, viewer, limit, max_bytes).await?,
        };
        let reviews = self.without_lapsed_claims(reviews);
        conn.rollback().await?;
        Ok(Pending { tally, reviews })
    }

    /// The most urgent reviews that somebody may see: so many at most, and no more than have so many bytes as JSON.
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

    /// Reviews as they are now: a claim whose lease has run out is none.
    fn without_lapsed_claims(&self, mut reviews: Vec<Review>) -> Vec<Review> {
        let now = self.inner.clock.now();
        for review in &mut reviews {
            review.drop_lapsed_claim(now);
        }
        reviews
    }
}
