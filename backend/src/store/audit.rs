//! The audit log: its entries, newest first, filtered by actor, kind, act, run, review, time and words.
//!
//! A row of the log has several entries, so the index narrows the rows down ([`Scan`]), and the entries are checked
//! here.

use shared::api::{AuditQuery, DEFAULT_LIMIT, MAX_LIMIT, Page};
use shared::id::{ReviewId, RunId};
use shared::log::{Entry, Event, ReviewAct};

use super::audit_scan::Scan;
use super::cursor::LogPlace;
use super::db::{Conn, Row, Sql};
use super::log::read_rows;
use super::log_index::{Sought, Term};
use super::log_row::Form;
use super::page_bytes::{MAX_PAGE_BYTES, PageBytes};
use super::words::Words;
use super::{Error, Store};

/// The largest number of rows that a page examines; the next page continues with the others.
pub(super) const MOST_ROWS: i64 = 4096;

impl Store {
    /// Returns the entries that match, newest first, with the numbers of their seals. A page may have fewer entries
    /// than asked for, or none, and still a cursor: it has examined as many rows as a page may, and the next page
    /// continues there.
    pub async fn audit(&self, query: &AuditQuery, form: Form) -> Result<Page<Entry>, Error> {
        self.audit_among(query, form, MOST_ROWS).await
    }

    /// Like [`Self::audit`], examining about `most` rows.
    pub(super) async fn audit_among(&self, query: &AuditQuery, form: Form, most: i64) -> Result<Page<Entry>, Error> {
        let (store, query) = (self.clone(), query.clone());
        let read = move |mut conn: Conn| async move {
            let (mut page, places) = store.audit_page(&mut conn, &query, form, most).await?;
            let numbers = conn.seal_numbers(&places).await?;
            for (entry, number) in page.items.iter_mut().zip(numbers) {
                entry.sealed = number;
            }
            conn.rollback().await?;
            Ok(page)
        };
        self.inner.db.snapshot_as_one(read).await
    }

    /// Returns a page of entries without their seals, and the places of these entries.
    async fn audit_page(
        &self,
        conn: &mut Conn,
        query: &AuditQuery,
        form: Form,
        most: i64,
    ) -> Result<(Page<Entry>, Vec<LogPlace>), Error> {
        let log = &self.inner.log;
        let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        let (mut page, mut places) = (Page { items: Vec::new(), next_cursor: None }, Vec::new());
        let Some(filter) = EntryFilter::of(query) else { return Ok((page, places)) };
        let mut before = match &query.cursor {
            Some(cursor) => LogPlace::of(cursor, log).ok_or(Error::Cursor)?,
            None => conn.head().await?,
        };
        let Some(run) = filter.run(conn).await? else { return Ok((page, places)) };
        let mut scan = Scan::new(conn, query, run, filter.sought()).await?;
        let (mut scanned, mut bytes) = (0, PageBytes::of_page(MAX_PAGE_BYTES));
        loop {
            let batch = scan.next(conn, before).await?;
            let mut left = &batch.rows[..];
            while let Some(rows) = bytes.next(&mut left) {
                for (place, events) in read_rows(conn, rows, form).await? {
                    for (index, event) in events.into_iter().enumerate().rev() {
                        let place = LogPlace { seen: u32::try_from(index + 1).unwrap_or(u32::MAX), ..place };
                        if place >= before || !filter.fits(&event) {
                            continue;
                        }
                        let full = page.items.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
                        if full || !bytes.takes(&event)? {
                            page.next_cursor = page.items.last().map(|entry: &Entry| entry.cursor.0.clone());
                            return Ok((page, places));
                        }
                        places.push(place);
                        page.items.push(Entry { cursor: place.cursor(log), sealed: None, event });
                    }
                }
            }
            let Some(row) = batch.down_to else { return Ok((page, places)) };
            before = before.min(LogPlace { seq: row, seen: 0 });
            scanned += batch.scanned;
            if scanned >= most {
                page.next_cursor = Some(before.cursor(log).0);
                return Ok((page, places));
            }
        }
    }
}

/// The conditions that an entry must meet.
struct EntryFilter<'a> {
    query: &'a AuditQuery,
    run: Option<RunId>,
    review: Option<ReviewId>,
    acts: Option<Vec<ReviewAct>>,
    words: Option<Words>,
}

impl<'a> EntryFilter<'a> {
    /// Returns `None` if no entry can match: an id or an act is not valid, or the searched words have no letter or
    /// digit.
    fn of(query: &'a AuditQuery) -> Option<Self> {
        let run = query.run.as_deref().map(str::parse).transpose().ok()?;
        let review = query.review.as_deref().map(str::parse).transpose().ok()?;
        let acts = query.act.as_deref().map(|acts| acts.split(',').map(str::parse).collect()).transpose().ok()?;
        let words = Words::of(query.q.as_deref());
        let found = !words.as_ref().is_some_and(Words::is_empty);
        found.then_some(Self { query, run, review, acts, words })
    }

    /// What to look up in the index. `None` if any row may match.
    fn sought(&self) -> Option<Sought> {
        let (kind, actor) = (self.query.kind.as_deref(), self.query.actor.as_deref());
        let terms: Vec<Term> = match &self.acts {
            Some(acts) => acts.iter().filter_map(|act| Term::of(kind, actor, Some(*act))).collect(),
            None => Term::of(kind, actor, None).into_iter().collect(),
        };
        (!terms.is_empty() || self.words.is_some()).then(|| Sought { terms, words: self.words.clone() })
    }

    /// The run to which matching rows belong: the named one, or that of the named review. The outer `None` means that
    /// nothing can match.
    async fn run(&self, conn: &mut Conn) -> Result<Option<Option<RunId>>, Error> {
        let (None, Some(review)) = (self.run, self.review) else { return Ok(Some(self.run)) };
        let sql = Sql::new("SELECT run_id FROM reviews WHERE id = ").bind(review.0);
        Ok(conn.first(sql, Row::uuid).await?.map(|run| Some(RunId(run))))
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
        let acts = event.acts();
        wanted.iter().any(|act| acts.has(*act))
    }

    fn has_words(&self, event: &Event) -> bool {
        self.words.as_ref().is_none_or(|words| words.are_in_event(event))
    }
}
