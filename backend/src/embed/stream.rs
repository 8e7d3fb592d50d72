//! The text of running agents, as they write it.

use shared::id::RunId;
use tokio::sync::broadcast::{Receiver, error::RecvError};

use super::running::Running;
use crate::token_stream::{Chunk, Following, Streams};

/// The text that agents of a run are writing. It is not approved: the output is [`Finished::output`](super::Finished).
pub struct TextStream {
    run: RunId,
    chunks: Receiver<Chunk>,
    _following: Following,
}

impl TextStream {
    fn of(run: RunId, streams: &Streams) -> Self {
        Self { run, chunks: streams.subscribe(), _following: streams.follow(&[run]) }
    }

    /// Returns the next piece, with the node that writes it. `None` once Countersign is stopped. The stream does not
    /// end with the run: use [`Running::next`] for that. A slow receiver misses some pieces.
    pub async fn next(&mut self) -> Option<Chunk> {
        loop {
            match self.chunks.recv().await {
                Ok(chunk) if chunk.run == self.run => return Some(chunk),
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

impl Running {
    /// Returns the text that its agents write from now on.
    pub fn stream(&self) -> TextStream {
        TextStream::of(self.id(), &self.streams())
    }
}
