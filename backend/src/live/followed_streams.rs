//! The token streams that a session follows.

use shared::id::RunId;
use tokio::sync::broadcast;

use super::hub::HubHandle;
use crate::token_stream::{Chunk, Following};

/// The token streams of some runs.
pub(super) struct FollowedStreams {
    arriving: broadcast::Receiver<Chunk>,
    /// Has them sent from other servers.
    _following: Following,
}

impl FollowedStreams {
    pub fn of(hub: &HubHandle, runs: &[RunId]) -> Option<Self> {
        let streams = hub.streams();
        (!runs.is_empty()).then(|| Self { arriving: streams.subscribe(), _following: streams.follow(runs) })
    }

    /// The next piece, if there is one already.
    pub fn ready(&mut self) -> Option<Chunk> {
        self.arriving.try_recv().ok()
    }
}

/// The next piece of a token stream; pieces that were missed are missed.
pub(super) async fn next(chunks: Option<&mut FollowedStreams>) -> Chunk {
    if let Some(chunks) = chunks {
        loop {
            match chunks.arriving.recv().await {
                Ok(chunk) => return chunk,
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => break,
            }
        }
    }
    std::future::pending().await
}
