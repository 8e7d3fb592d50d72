//! Lists of runs with the words of a search. If the list without the words is short, each of its runs is read. For other
//! lists, the entry of the log that says that a run has started has its flow, title, topic, person and id. So the index of
//! the log finds it, as it does for the audit log, and runs need no index of words of their own.

use shared::access::Principal;
use shared::api::{AuditQuery, DEFAULT_LIMIT, MAX_LIMIT, Page, RunQuery};
use shared::log::{Entry, EntryKind};
use shared::run::{RunStatus, RunSummary};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::cursor::ListPlace;
use super::db::Conn;
use super::log_row::Form;
use super::run_list::{self, List};
use super::words::Words;
use super::{Error, Store};

/// The number of pages of the audit log after which a page of runs ends, even if it is not full.
const MOST_PAGES: usize = if cfg!(test) { 1 } else { 4 };
/// The number of runs that are read at once for their words, and after which a page ends.
const READ_AT_ONCE: u32 = if cfg!(test) { 2 } else { 200 };
const MOST_READ: u32 = if cfg!(test) { 2 } else { 1000 };
/// Limits how many searches read the log at the same time. Each page of it examines a few thousand rows.
static READING_LOG: Semaphore = Semaphore::const_new(2);
/// The places of the hyphens in an id.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

impl Store {
    /// Lists the runs that match and that the viewer may see, newest first. A page may have fewer runs than asked for, or
    /// none, and still a cursor: it has examined as many as a page may, and the next page continues there. Cursors of
    /// lists with words and of lists without them differ.
    pub async fn runs(&self, viewer: &Principal, query: &RunQuery) -> Result<Page<RunSummary>, Error> {
        if query.ending.is_some() && query.status.is_some_and(|status| status != RunStatus::Failed) {
            return Ok(Page { items: Vec::new(), next_cursor: None });
        }
        if query.has_words() {
            return self.runs_with_words(viewer, query).await;
        }
        let (viewer, query) = (viewer.clone(), query.clone());
        let read = move |mut conn: Conn| async move { run_list::page(&mut conn, &viewer, &query).await };
        self.inner.db.read_as_one(read).await
    }

    async fn runs_with_words(&self, viewer: &Principal, query: &RunQuery) -> Result<Page<RunSummary>, Error> {
        let q = with_whole_ids(query.q.as_deref().unwrap_or_default());
        let Some(words) = Words::of(Some(&q)).filter(|words| !words.is_empty()) else {
            return Ok(Page { items: Vec::new(), next_cursor: None });
        };
        let short = {
            let (viewer, query, words) = (viewer.clone(), query.clone(), words.clone());
            move |mut conn: Conn| async move { page_of_short(&mut conn, &viewer, &query, &words).await }
        };
        if let Some(page) = self.inner.db.read_as_one(short).await? {
            return Ok(page);
        }
        let _permit = READING_LOG.acquire().await;
        self.runs_in_log(viewer, query, &words, started(viewer, query, q)).await
    }

    /// Lists runs along the entries of the log that say that they have started.
    async fn runs_in_log(
        &self,
        viewer: &Principal,
        query: &RunQuery,
        words: &Words,
        mut started: AuditQuery,
    ) -> Result<Page<RunSummary>, Error> {
        let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut page = Page { items: Vec::new(), next_cursor: None };
        for _ in 0..MOST_PAGES {
            let found = self.audit(&started, Form::Whole).await?;
            let with_words: Vec<(Uuid, &Entry)> =
                found.items.iter().filter_map(|entry| Some((run_with(entry, words)?, entry))).collect();
            let ids: Vec<Uuid> = with_words.iter().map(|(id, _)| *id).collect();
            let mut conn = self.inner.db.read().await?;
            let matching = run_list::among(&mut conn, viewer, query, &ids).await?;
            let mut taken = Vec::new();
            for (id, entry) in with_words.into_iter().filter(|(id, _)| matching.contains(id)) {
                taken.push(id);
                if page.items.len() + taken.len() == limit {
                    page.items.extend(conn.summaries(&taken).await?);
                    let is_last = found.items.last().is_some_and(|last| last.cursor == entry.cursor);
                    let more = found.next_cursor.is_some() || !is_last;
                    page.next_cursor = more.then(|| entry.cursor.0.clone());
                    return Ok(page);
                }
            }
            page.items.extend(conn.summaries(&taken).await?);
            page.next_cursor.clone_from(&found.next_cursor);
            if found.next_cursor.is_none() {
                return Ok(page);
            }
            started.cursor = found.next_cursor;
        }
        Ok(page)
    }
}

/// Returns a page of a list that is so short that each of its runs is read for the words. `None` if it is not, or if the
/// cursor is one of the log.
async fn page_of_short(
    conn: &mut Conn,
    viewer: &Principal,
    query: &RunQuery,
    words: &Words,
) -> Result<Option<Page<RunSummary>>, Error> {
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    let Ok(mut place) = ListPlace::of(query.cursor.as_deref()) else { return Ok(None) };
    let list = List::of(conn, viewer, query).await?;
    // What began here continues here, even if the viewer sees many runs by now.
    if place.is_none() && !list.is_short() {
        return Ok(None);
    }
    let (mut items, mut read) = (Vec::new(), 0);
    loop {
        let (places, next) = list.first(conn, place, READ_AT_ONCE).await?;
        let ids: Vec<Uuid> = places.iter().map(|place| place.id).collect();
        for run in conn.summaries(&ids).await?.into_iter().filter(|run| has_words(run, words)) {
            let here = places.iter().find(|place| place.id == run.id.0);
            items.push(run);
            if items.len() >= limit as usize {
                let more = next.is_some() || here != places.last();
                let next_cursor = here.filter(|_| more).copied().map(ListPlace::encode);
                return Ok(Some(Page { items, next_cursor }));
            }
        }
        read += READ_AT_ONCE;
        // If fewer runs were found than asked for, the list has examined as many as a page may.
        if next.is_none() || places.len() < READ_AT_ONCE as usize || read >= MOST_READ {
            return Ok(Some(Page { items, next_cursor: next.map(ListPlace::encode) }));
        }
        place = next;
    }
}

/// The query for the entries of runs that started, with the conditions that the log has.
fn started(viewer: &Principal, query: &RunQuery, q: String) -> AuditQuery {
    AuditQuery {
        from: query.started_after,
        to: query.started_before,
        actor: query.requested_by.as_ref().map(|by| by.username(&viewer.username).to_string()),
        kind: Some(EntryKind::RunStarted.as_str().to_owned()),
        q: Some(q),
        limit: Some(MAX_LIMIT),
        cursor: query.cursor.clone(),
        ..AuditQuery::default()
    }
}

/// Returns the run that started with this entry, if it has all the words. The entry also has words that all runs have.
fn run_with(entry: &Entry, words: &Words) -> Option<Uuid> {
    let run = entry.event.run()?;
    has_words(&run, words).then_some(run.id.0)
}

/// Whether a run has all the words of a search.
fn has_words(run: &RunSummary, words: &Words) -> bool {
    let topic = run.topic.as_deref().unwrap_or_default();
    words.are_in(&format!("{} {} {topic} {} {}", run.flow, run.title, run.requested_by, run.id))
}

/// Writes the beginnings of ids without their hyphens, as words are: `018f0000-0000-70` is the beginning of one word.
fn with_whole_ids(q: &str) -> String {
    let begins_id = |piece: &str| {
        piece.len() > HYPHENS[0]
            && piece
                .bytes()
                .enumerate()
                .all(|(at, byte)| if HYPHENS.contains(&at) { byte == b'-' } else { byte.is_ascii_hexdigit() })
    };
    let pieces =
        q.split_whitespace().map(|piece| if begins_id(piece) { piece.replace('-', "") } else { piece.to_owned() });
    pieces.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_an_id_is_one_word() {
        for (q, whole) in [
            ("018f0000-0000-70 refund", "018f0000000070 refund"),
            ("018f0000-0000-7000-8000-000000000001", "018f0000000070008000000000000001"),
            ("follow-up-mail 018f0000 ab-cd", "follow-up-mail 018f0000 ab-cd"),
        ] {
            assert_eq!(with_whole_ids(q), whole, "{q}");
        }
    }
}
