//! Reads stored reviews and prepares them for display, in the order of a query or of ids. `queue`, `review_list` and
//! `reviews` decide which reviews.

use std::collections::HashMap;

use shared::access::Principal;
use shared::id::{ReviewId, RunId};
use shared::review::Review;
use uuid::Uuid;

use super::blobs::{Blobs, Reader, hollow};
use super::db::{Conn, Row, Sql};
use super::log_index::padded;
use super::page_bytes::PageBytes;
use super::{Error, unreadable};

impl Conn {
    /// Reads the reviews of a query that begins with [`select`]. Those that cannot be read are marked as unreadable.
    pub async fn found_reviews(&mut self, sql: Sql, blobs: &mut Blobs) -> Result<Vec<Review>, Error> {
        let found = self.reviews_with_runs(sql, blobs).await?;
        Ok(found.into_iter().map(|(_, review)| review).collect())
    }

    /// Deletes the rows by which a review is found that cannot be read: those of its audience keys, which are not known,
    /// so the whole table is searched.
    pub async fn forget_audience(&mut self, review: ReviewId) -> Result<(), Error> {
        self.execute(Sql::new("DELETE FROM review_audience WHERE review_id = ").bind(review.0)).await?;
        Ok(())
    }

    /// Returns reviews by id, in the order of `ids`.
    pub async fn reviews_in_order(&mut self, ids: &[Uuid]) -> Result<Vec<Review>, Error> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let sql = select().push(" FROM reviews r WHERE r.id").among(padded(ids));
        let mut found = self.found_reviews(sql, &mut Blobs::default()).await?;
        let place: HashMap<_, _> = ids.iter().zip(0..).collect();
        found.sort_by_key(|review| place.get(&review.id.0).copied().unwrap_or(usize::MAX));
        Ok(found)
    }

    /// Returns the reviews at these places that fit in a page, as `see` filters them, and the place of the next page.
    /// `next` is the place after all of them. Only the reviews of the page, and the last few that are read, are in
    /// memory.
    pub async fn page_of_reviews<P: Clone>(
        &mut self,
        places: &[(Uuid, P)],
        next: Option<P>,
        mut bytes: PageBytes,
        see: impl Fn(Vec<Review>) -> Vec<Review>,
    ) -> Result<(Vec<Review>, Option<P>), Error> {
        let (mut taken, mut left) = (Vec::new(), places);
        while let Some(next) = bytes.next(&mut left) {
            let ids: Vec<Uuid> = next.iter().map(|(id, _)| *id).collect();
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

    /// Reads the reviews of a query that begins with [`select`], each with its run, even if the run only carries a
    /// question.
    pub async fn reviews_with_runs(&mut self, sql: Sql, blobs: &mut Blobs) -> Result<Vec<(RunId, Review)>, Error> {
        let rows = self.fetch(sql).await?;
        self.reviews_in(rows, blobs).await
    }

    /// Reads the reviews in rows with the columns of [`select`], each with its run.
    pub async fn reviews_in(&mut self, rows: Vec<Row>, blobs: &mut Blobs) -> Result<Vec<(RunId, Review)>, Error> {
        let mut reader = Reader::default();
        for row in &rows {
            reader.add(row.uuid(0)?, row.text(1));
        }
        let reviews = reader.finish_each("a review", self, blobs).await?.into_iter().zip(&rows);
        reviews.map(|(review, row)| Ok((RunId(row.uuid(0)?), or_marked(review, row)?))).collect()
    }

    /// Reads the review of a query that begins with [`select`], without its large values.
    pub async fn review_outline(&mut self, sql: Sql) -> Result<Option<Review>, Error> {
        Ok(self.review_outlines(sql).await?.pop())
    }

    /// Reads the reviews of a query that begins with [`select`], without their large values. One that cannot be read
    /// without them, as some that earlier versions wrote, is read as a whole.
    pub async fn review_outlines(&mut self, sql: Sql) -> Result<Vec<Review>, Error> {
        let rows = self.fetch(sql).await?;
        let mut outlines = Reader::default();
        for row in &rows {
            outlines.add_without(row.uuid(0)?, row.text(1), hollow);
        }
        let outlines = outlines.finish_each("a review", self, &mut Blobs::default()).await?;
        let mut reviews = Vec::with_capacity(rows.len());
        for (mut review, row) in outlines.into_iter().zip(&rows) {
            if review.is_err() {
                let mut whole = Reader::default();
                whole.add(row.uuid(0)?, row.text(1));
                let read = whole.finish_each("a review", self, &mut Blobs::default()).await?.pop();
                review = read.unwrap_or(review);
            }
            reviews.push(or_marked(review, row)?);
        }
        Ok(reviews)
    }
}

/// Returns a review, or if it cannot be read, a marked review made of the row's columns.
fn or_marked(review: Result<Review, Error>, row: &Row) -> Result<Review, Error> {
    review.or_else(|error| {
        tracing::error!(%error, "a review cannot be read");
        unreadable::review(row, row.uuid(0)?, 2, &error)
    })
}

/// Makes reviews what the viewer may see of them.
pub(super) fn visible_to(items: Vec<Review>, viewer: &Principal) -> Vec<Review> {
    items.into_iter().map(|review| review.seen_by(Some(&viewer.username))).collect()
}

/// Begins a query for [`Conn::found_reviews`] on reviews `r`.
pub(super) fn select() -> Sql {
    Sql::new("SELECT r.run_id, r.body, ").push(unreadable::REVIEW)
}
