//! The reasons for which a session ends, and what its client is told. Also the limit of a client's messages, since a
//! larger one ends the session.

use axum::extract::ws::close_code;

/// The maximum length of a client's message, in bytes.
pub(super) const MAX_MESSAGE: usize = 256 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// The client is gone, or does not read.
    Gone,
    /// The server closes, with this code and reason.
    Close(u16, String),
}

/// The reason for a message over the limit.
pub(super) fn too_large() -> CloseReason {
    CloseReason::Close(close_code::SIZE, format!("a message has at most {MAX_MESSAGE} bytes"))
}

/// The reason for an error of the transport, which reports a message over the limit only in words.
pub(super) fn unreadable(error: &impl std::fmt::Display) -> CloseReason {
    if error.to_string().contains("too long") { too_large() } else { CloseReason::Gone }
}

/// Cuts a reason to the 123 bytes that fit into a close frame.
pub(super) fn clip(reason: &str) -> String {
    let mut end = reason.len().min(123);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    reason[..end].to_owned()
}
