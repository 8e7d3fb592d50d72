//! The token streams that a session follows.

use shared::id::RunId;
use tokio::sync::broadcast;

use super::hub::Hub;
use crate::token_stream::{Chunk, Following};

/// A subscription to the token streams of some runs.
pub(super) struct FollowedStreams {
    arriving: broadcast::Receiver<Chunk>,
    /// Makes other servers send the streams of these runs.
    _following: Following,
}

impl FollowedStreams {
    pub fn of(hub: &Hub, runs: &[RunId]) -> Option<Self> {
        let streams = hub.streams();
        (!runs.is_empty()).then(|| Self { arriving: streams.subscribe(), _following: streams.follow(runs) })
    }

    /// Returns the next piece if it has arrived.
    pub fn ready(&mut self) -> Option<Chunk> {
        self.arriving.try_recv().ok()
    }

    /// Waits for the next piece. Pieces that the session was too slow for are skipped.
    pub async fn next(&mut self) -> Chunk {
        loop {
            match self.arriving.recv().await {
                Ok(chunk) => return chunk,
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}
