//! Why a session ends, and what its client is told; also the limit of a client's message, because a larger one ends its
//! session.

use axum::extract::ws::close_code;

/// The largest message of a client, in bytes.
pub(super) const MAX_MESSAGE: usize = 256 * 1024;

/// Why a session is over.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// The client is gone, or does not read.
    Gone,
    /// The server closes, with this code and reason.
    Close(u16, String),
}

/// A message is larger than what is read.
pub(super) fn too_large() -> CloseReason {
    CloseReason::Close(close_code::SIZE, format!("a message has at most {MAX_MESSAGE} bytes"))
}

/// The transport speaks of a message over its limit in words only.
pub(super) fn unreadable(error: &impl std::fmt::Display) -> CloseReason {
    if error.to_string().contains("too long") { too_large() } else { CloseReason::Gone }
}

/// A reason for a close frame has at most 123 bytes.
pub(super) fn clip(reason: &str) -> String {
    let mut end = reason.len().min(123);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    reason[..end].to_owned()
}
