//! The live socket: tails the log once per process, and sends each entry to every session that may see it.
//!
//! - [`Hub`] reads the log, serialises an entry once, and keeps the newest in a bounded ring;
//! - a session (one task per socket) follows the ring, replays from the store what a client missed, and asks
//!   `shared::access` about every entry with the current rights;
//! - [`upgrade()`] accepts sockets.
//!
//! A session sends only what was read: entries come from the log, and snapshots from one read transaction. Everything
//! that a slow client could cause to grow is bounded: the ring by entries and bytes, a socket by one frame.

mod authenticate;
mod close_reason;
mod count;
mod followed_streams;
mod hub;
mod limit;
mod outgoing;
mod parsed_entry;
mod replay;
pub(crate) mod request;
mod ring;
mod run_visibility;
mod session;
mod snapshot;
#[cfg(test)]
mod tests;
mod topics;
mod upgrade;
mod visibility_cache;

pub use authenticate::Authenticate;
pub use hub::{Hub, HubOptions, Listening, Observe};
pub use limit::MaxSockets;
pub use upgrade::{LiveState, upgrade};

/// Whether the socket lets this person see an entry.
#[cfg(test)]
pub(crate) async fn lets_see(
    store: &crate::store::Store,
    entry: &shared::log::Entry,
    principal: &shared::access::Principal,
) -> bool {
    let parsed = parsed_entry::ParsedEntry::new(entry.clone());
    let viewers = visibility_cache::VisibilityCache::new(store.clone()).viewers(&parsed).await.expect("reads");
    viewers.include(principal)
}
