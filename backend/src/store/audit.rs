//! The audit: the log, newest first, by who, what, when and where.
//!
//! A row of the log holds several entries, so the database narrows the rows down and the entries are looked at here.

use shared::api::{AuditQuery, DEFAULT_LIMIT, MAX_LIMIT, Page};
use shared::id::{ReviewId, RunId};
use shared::log::{Entry, Event, ReviewAct};

use super::cursor::LogPlace;
use super::db::{Conn, Sql};
use super::log::{COLUMNS, read_rows};
use super::log_row::Form;
use super::{Error, Store};

/// How many rows are read at once.
const BATCH: u32 = 200;
/// How far the time of an entry can lie before that of its row: a transaction is never so long.
const SLACK_US: i64 = 60_000_000;

impl Store {
    /// Entries that fit, newest first, with their seals.
    pub async fn audit(&self, query: &AuditQuery, form: Form) -> Result<Page<Entry>, Error> {
        let mut conn = self.inner.db.snapshot().await?;
        let (mut page, places) = self.audit_page(&mut conn, query, form).await?;
        let numbers = conn.seal_numbers(&places).await?;
        for (entry, number) in page.items.iter_mut().zip(numbers) {
            entry.sealed = number;
        }
        conn.rollback().await?;
        Ok(page)
    }

    /// The same without their seals; with their places.
    async fn audit_page(
        &self,
        conn: &mut Conn,
        query: &AuditQuery,
        form: Form,
    ) -> Result<(Page<Entry>, Vec<LogPlace>), Error> {
        let log = &self.inner.log;
        let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        let (mut page, mut places) = (Page { items: Vec::new(), next_cursor: None }, Vec::new());
        let Some(filter) = Filter::of(query) else { return Ok((page, places)) };
        let mut before = match &query.cursor {
            Some(cursor) => match LogPlace::of(cursor, log) {
                Some(place) => place,
                None => return Err(Error::Cursor),
            },
            None => conn.head().await?,
        };
        let Some(run) = filter.run(conn).await? else { return Ok((page, places)) };
        loop {
            let sql = Self::rows_before(query, before, run);
            let rows = conn.fetch(sql).await?;
            let ended = rows.len() < usize::try_from(BATCH).unwrap_or(usize::MAX);
            for (place, events) in read_rows(conn, &rows, form).await? {
                for (index, event) in events.into_iter().enumerate().rev() {
                    let place = LogPlace { seen: u32::try_from(index + 1).unwrap_or(u32::MAX), ..place };
                    if place >= before || !filter.fits(&event) {
                        continue;
                    }
                    if page.items.len() >= usize::try_from(limit).unwrap_or(usize::MAX) {
                        page.next_cursor = page.items.last().map(|entry: &Entry| entry.cursor.0.clone());
                        return Ok((page, places));
                    }
                    places.push(place);
                    page.items.push(Entry { cursor: place.cursor(log), sealed: None, event });
                }
                before = before.min(place);
            }
            if ended {
                return Ok((page, places));
            }
        }
    }

    /// Rows before a place, newest first.
    pub(super) fn rows_before(query: &AuditQuery, before: LogPlace, run: Option<RunId>) -> Sql {
        let mut sql = Sql::new("SELECT ").push(COLUMNS).push(" FROM log WHERE true");
        if let Some(run) = run {
            sql = sql.push(" AND run_id = ").bind(run.0);
        }
        if let Some(from) = query.from {
            sql = sql.push(" AND at >= ").bind(from.0);
        }
        if let Some(to) = query.to {
            sql = sql.push(" AND at < ").bind(to.0.saturating_add(SLACK_US));
        }
        // `seen` is 0 where the whole row has been looked at, and the row of a cursor has entries before it.
        let whole = before.seen == 0;
        sql.push(if whole { " AND seq < " } else { " AND seq <= " })
            .bind(before.seq)
            .push(" ORDER BY seq DESC LIMIT ")
            .bind(BATCH)
    }
}

/// What an entry must fulfil.
struct Filter<'a> {
    query: &'a AuditQuery,
    run: Option<RunId>,
    review: Option<ReviewId>,
    acts: Option<Vec<ReviewAct>>,
    words: Vec<String>,
}

impl<'a> Filter<'a> {
    /// `None` where an id is no id, or an act none: nothing fits.
    fn of(query: &'a AuditQuery) -> Option<Self> {
        let run = query.run.as_deref().map(str::parse).transpose().ok()?;
        let review = query.review.as_deref().map(str::parse).transpose().ok()?;
        let acts = query.act.as_deref().map(|acts| acts.split(',').map(str::parse).collect()).transpose().ok()?;
        let words = query.q.iter().flat_map(|text| text.split_whitespace()).map(str::to_lowercase).collect();
        Some(Self { query, run, review, acts, words })
    }

    /// The run whose rows can fit: the one that is named, or that of the review. The outer `None`: nothing fits.
    async fn run(&self, conn: &mut Conn) -> Result<Option<Option<RunId>>, Error> {
        let (None, Some(review)) = (self.run, self.review) else { return Ok(Some(self.run)) };
        let sql = Sql::new("SELECT run_id FROM reviews WHERE id = ").bind(review.0);
        let row = conn.fetch_one(sql).await?;
        Ok(row.map(|row| row.uuid(0)).transpose()?.map(|run| Some(RunId(run))))
    }

    fn fits(&self, event: &Event) -> bool {
        let query = self.query;
        query.from.is_none_or(|from| event.at >= from)
            && query.to.is_none_or(|to| event.at < to)
            && query.actor.as_ref().is_none_or(|actor| event.actor.as_deref() == Some(actor))
            && query.kind.as_ref().is_none_or(|kind| event.kind.as_str() == kind)
            && self.run.is_none_or(|run| event.run_id == Some(run))
            && self.review.is_none_or(|review| event.review_id == Some(review))
            && self.has_acts(event)
            && self.has_words(event)
    }

    fn has_acts(&self, event: &Event) -> bool {
        let Some(wanted) = &self.acts else { return true };
        let told = event.acts();
        wanted.iter().any(|act| told.has(*act))
    }

    fn has_words(&self, event: &Event) -> bool {
        if self.words.is_empty() {
            return true;
        }
        let text = serde_json::to_string(event).unwrap_or_default().to_lowercase();
        self.words.iter().all(|word| text.contains(word))
    }
}
