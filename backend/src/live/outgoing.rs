//! An entry on its way to the sessions: its frame, which is created once, and the data that decide who may see it.

use std::sync::Arc;

use axum::extract::ws::Utf8Bytes;
use shared::id::RunId;
use shared::log::{Cursor, EntryKind, RightsChange};
use shared::protocol::ServerMessage;
use shared::review::Review;

use super::parsed_entry::ParsedEntry;
use super::run_visibility::Viewers;
use crate::store::cursor::LogPlace;

#[derive(Debug)]
pub(super) struct OutgoingEntry {
    /// The position of the entry in the log.
    pub place: LogPlace,
    /// The same position, as clients know it.
    pub cursor: Cursor,
    pub kind: EntryKind,
    pub run_id: Option<RunId>,
    /// The whole frame, serialised once and shared by all sessions.
    pub frame: Utf8Bytes,
    pub viewers: Viewers,
    /// The outline of the review that the entry is about, as it was after the commit.
    pub review: Option<Arc<Review>>,
    /// The change of rights because of which sessions must check theirs.
    pub rights_change: Option<RightsChange>,
}

impl OutgoingEntry {
    pub fn new(parsed: ParsedEntry, place: LogPlace, viewers: Viewers) -> Self {
        let ParsedEntry { entry, review } = parsed;
        let rights_change = entry.event.rights_change();
        let (cursor, kind, run_id) = (entry.cursor.clone(), entry.event.kind, entry.event.run_id);
        let frame = text(&ServerMessage::Entry(entry));
        Self { place, cursor, kind, run_id, frame, viewers, review, rights_change }
    }

    /// Returns the approximate size in memory, in bytes.
    pub fn size(&self) -> usize {
        self.frame.len() + size_of::<Self>() + size_of::<Review>()
    }
}

/// Serialises a message as a frame.
pub(super) fn text(message: &ServerMessage) -> Utf8Bytes {
    // Every message is made of strings, numbers and JSON values with string keys, which cannot fail to serialise.
    serde_json::to_string(message).unwrap_or_default().into()
}
