//! Lists of runs with the words of a search. The entry of the log that says that a run has started has its flow, title,
//! topic, person and id. So the index of the log finds it, as it does for the audit log, and runs need no index of words
//! of their own.

use shared::access::Principal;
use shared::api::{AuditQuery, DEFAULT_LIMIT, MAX_LIMIT, Page, RunQuery};
use shared::log::{Entry, EntryKind};
use shared::run::{RunStatus, RunSummary};
use uuid::Uuid;

use super::db::Conn;
use super::log_row::Form;
use super::run_list;
use super::words::Words;
use super::{Error, Store};

/// The number of pages of the audit log after which a page of runs ends, even if it is not full.
const MOST_PAGES: usize = if cfg!(test) { 1 } else { 4 };
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
        let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let q = with_whole_ids(query.q.as_deref().unwrap_or_default());
        let Some(words) = Words::of(Some(&q)) else { return Ok(Page { items: Vec::new(), next_cursor: None }) };
        let mut started = started(viewer, query, q);
        let mut page = Page { items: Vec::new(), next_cursor: None };
        for _ in 0..MOST_PAGES {
            let found = self.audit(&started, Form::Whole).await?;
            let with_words: Vec<(Uuid, &Entry)> =
                found.items.iter().filter_map(|entry| Some((run_with(entry, &words)?, entry))).collect();
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
    let topic = run.topic.as_deref().unwrap_or_default();
    let text = format!("{} {} {topic} {} {}", run.flow, run.title, run.requested_by, run.id);
    words.are_in(&text).then_some(run.id.0)
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
