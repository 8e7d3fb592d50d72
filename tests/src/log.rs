//! The log, as a client reads it.

use shared::api::LogQuery;
use shared::log::{Cursor, Entry, EntryKind};

use crate::transport::Api;

/// The whole log after a place.
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

/// Whether the topics `reviews` and `runs` have such entries.
pub fn is_heard(kind: EntryKind) -> bool {
    let word = kind.as_str();
    kind != EntryKind::ReviewViewed && ["review.", "run.", "workflow."].iter().any(|prefix| word.starts_with(prefix))
}
