//! The log, as a client reads it.

use shared::api::LogQuery;
use shared::log::{Cursor, Entry, EntryKind};

use crate::transport::Api;

/// Reads all entries after a cursor, page by page.
pub async fn log_after(api: &Api, after: &Cursor) -> Vec<Entry> {
    let (mut after, mut entries) = (after.clone(), Vec::new());
    loop {
        let query = LogQuery { run: None, after: Some(after.0.clone()), limit: Some(200) };
        let page = api.log(&query).await.expect("the log").items;
        match page.last() {
            Some(last) => after = last.cursor.clone(),
            None => return entries,
        }
        entries.extend(page);
    }
}

/// Whether entries of this kind are sent to subscribers of the topics `reviews` and `runs`.
pub fn is_heard(kind: EntryKind) -> bool {
    let word = kind.as_str();
    kind != EntryKind::ReviewViewed && ["review.", "run.", "workflow."].iter().any(|prefix| word.starts_with(prefix))
}
