//! The live socket: tails the log once per process, and sends each entry to every session that may see it.
//!
//! - [`Hub`] reads the log, serialises an entry once, and keeps the newest in a bounded ring;
//! - a session (one task a socket) follows the ring, replays from the store what a client missed, and asks
//!   `shared::access` about every entry with the rights of now;
//! - [`upgrade`] lets sockets in.
//!
//! Nothing that a session sends was made up by it: entries come from the log, snapshots from one read transaction.
//! Whatever a slow client could make grow is bounded: the ring by entries and bytes, a socket by one frame.
//!
//! Imports `shared`, `crate::{clock, engine, problem, store, stream}` only.

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

pub use authenticate::Authenticate;
pub use hub::{Hub, HubHandle, Listening, Observe, Options};
pub use limit::MaxSockets;
pub use upgrade::{LiveState, upgrade};
