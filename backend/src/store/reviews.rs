//! Reviews: one, those of a run, and lists of those that somebody may see. What is pending is listed by `queue`, what is
//! not, or all, by `review_list`.

use std::collections::HashMap;

use shared::access::Principal;
use shared::api::{Page, ReviewQuery};
use shared::id::{ReviewId, RunId};
use shared::inbox::ReviewOrder;
use shared::review::{Review, ReviewStatus};
use uuid::Uuid;

use super::blobs::{Blobs, Reader};
use super::db::{Conn, Sql};
use super::log_index::padded;
use super::page_bytes::PageBytes;
use super::queue_place::QueuePosition;
use super::{Error, Pending, Store, queue, review_list, unreadable};

/// Of so many reviews, at most, that have the words of a search, each is looked up and put in order. Where there are
/// more, they are found soon along the list. Tests see both ways.
pub(super) const FEW: usize = if cfg!(test) { 9 } else { 2000 };

impl Store {
    /// A review by its id, without a claim that has run out; `None` where there is none.
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

impl Conn {
    /// The reviews of a query that begins with [`select`]; those that cannot be read are marked so.
    pub async fn found_reviews(&mut self, sql: Sql, blobs: &mut Blobs) -> Result<Vec<Review>, Error> {
        let found = self.reviews_with_runs(sql, blobs).await?;
        Ok(found.into_iter().map(|(_, review)| review).collect())
    }

    /// Removes the rows under which a review is found that cannot be read: nobody knows them, so all are looked through.
    pub async fn forget_audience(&mut self, review: ReviewId) -> Result<(), Error> {
        self.execute(Sql::new("DELETE FROM review_audience WHERE review_id = ").bind(review.0)).await?;
        Ok(())
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

    /// The reviews at these places as far as a page takes them, as `see` leaves them, and the place where the next page
    /// begins; `next`: behind all of them. No more of them is in memory than the page takes, but for the last that are read.
    pub async fn page_of_reviews<P: Clone>(
        &mut self,
        places: &[(Uuid, P)],
        next: Option<P>,
        mut bytes: PageBytes,
        see: impl Fn(Vec<Review>) -> Vec<Review>,
    ) -> Result<(Vec<Review>, Option<P>), Error> {
        let (mut taken, mut rest) = (Vec::new(), places);
        while !rest.is_empty() {
            let (chunk, later) = rest.split_at(bytes.at_once().min(rest.len()));
            rest = later;
            let ids: Vec<Uuid> = chunk.iter().map(|(id, _)| *id).collect();
            for review in see(self.reviews_in_order(&ids).await?) {
                if !bytes.takes(&review)? {
                    let last = taken.last().map(|last: &Review| last.id.0);
                    return Ok((
                        taken,
                        places.iter().find(|(id, _)| Some(*id) == last).map(|(_, place)| place.clone()),
                    ));
                }
                taken.push(review);
            }
        }
        Ok((taken, next))
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

/// Reviews as somebody may see them.
pub(super) fn visible_to(items: Vec<Review>, viewer: &Principal) -> Vec<Review> {
    items.into_iter().map(|review| review.seen_by(Some(&viewer.username))).collect()
}

/// What [`Conn::found_reviews`] reads, of `reviews r`.
pub(super) fn select() -> Sql {
    Sql::new("SELECT r.run_id, r.body, ").push(unreadable::REVIEW)
}
