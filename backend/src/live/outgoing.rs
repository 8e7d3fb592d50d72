//! An entry on its way to the sessions: its frame, which is created once, and the data that decide who may see it.

use std::sync::Arc;

use axum::extract::ws::Utf8Bytes;
use shared::access::{Access, Act, Principal, access};
use shared::id::{RunId, Username};
use shared::log::{Cursor, Entry, EntryKind, EntrySubject, EventData};
use shared::protocol::ServerMessage;
use shared::review::Review;

use super::parsed_entry::ParsedEntry;
use super::run_visibility::RunVisibility;
use crate::store::cursor::LogPlace;

/// An entry, ready to be sent.
#[derive(Debug)]
pub(super) struct OutgoingEntry {
    /// The position of the entry in the log.
    pub place: LogPlace,
    /// The same position, as clients know it.
    pub cursor: Cursor,
    /// The kind of the entry.
    pub kind: EntryKind,
    /// The run that the entry belongs to, if any.
    pub run_id: Option<RunId>,
    /// The whole frame, serialised once and shared by all sessions.
    pub frame: Utf8Bytes,
    /// Who may see the entry.
    pub audience: Audience,
}

/// Who may see an entry.
#[derive(Debug)]
pub(super) enum Audience {
    /// Those who may see this review. Its content is left out, since the frame has it.
    Review(Box<Review>),
    /// Those who may see this run.
    Run(Arc<RunVisibility>),
    /// Nobody over the live socket, but the entry may change what this person's sessions may see.
    Person {
        /// The person concerned. `None` if unknown, so that every session must check.
        username: Option<Username>,
        /// Whether rights that were read before this entry may be outdated.
        rights: bool,
    },
    /// Nobody sees it over the live socket.
    Nobody,
}

impl OutgoingEntry {
    /// Prepares an entry for sending. `run` is the visibility of its run, if it belongs to one.
    pub fn new(parsed: ParsedEntry, place: LogPlace, run: Option<Arc<RunVisibility>>) -> Self {
        let ParsedEntry { entry, review } = parsed;
        let audience = audience(&entry, review, run);
        let (cursor, kind, run_id) = (entry.cursor.clone(), entry.event.kind, entry.event.run_id);
        let frame = text(&ServerMessage::Entry(entry));
        Self { place, cursor, kind, run_id, frame, audience }
    }

    /// Returns the review of the entry, without its content.
    pub fn review(&self) -> Option<&Review> {
        match &self.audience {
            Audience::Review(review) => Some(review),
            _ => None,
        }
    }

    /// Whether `principal` may see the entry.
    pub fn is_seen_by(&self, principal: &Principal) -> bool {
        match &self.audience {
            Audience::Review(review) => access(principal, Act::SeeReview(review)) == Access::Allowed,
            Audience::Run(run) => run.is_seen_by(principal),
            Audience::Person { .. } | Audience::Nobody => false,
        }
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

fn audience(entry: &Entry, review: Option<Review>, run: Option<Arc<RunVisibility>>) -> Audience {
    let kind = entry.event.kind;
    if kind == EntryKind::ReviewViewed {
        // Views of reviews are for the audit log only.
        return Audience::Nobody;
    }
    match kind.subject() {
        EntrySubject::Review => return review.map_or(Audience::Nobody, |review| Audience::Review(Box::new(review))),
        EntrySubject::Run => return run.map_or(Audience::Nobody, Audience::Run),
        EntrySubject::Other => {}
    }
    match entry.event.read() {
        Some(EventData::UserUpdated(changed)) => {
            Audience::Person { rights: changed.concerns_rights(), username: Some(changed.username) }
        }
        Some(EventData::DeputyNamed(named) | EventData::DeputyRemoved(named)) => {
            Audience::Person { username: Some(named.deputy), rights: true }
        }
        Some(EventData::SessionEnded(ended)) => Audience::Person { username: Some(ended.username), rights: false },
        Some(EventData::TokenRevoked(_)) => Audience::Person { username: None, rights: false },
        Some(_) => Audience::Nobody,
        // An entry that this version cannot read may change anyone's rights.
        None => Audience::Person { username: None, rights: true },
    }
}
