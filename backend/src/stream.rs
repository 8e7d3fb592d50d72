//! Text of running agents, on its way from workers to the live socket. Not committed; whoever is too slow misses some.

use shared::id::{NodeId, RunId};
use tokio::sync::broadcast;

/// A piece of a running agent's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The run.
    pub run: RunId,
    /// The node.
    pub node: NodeId,
    /// The visit.
    pub visit: u32,
    /// The attempt: a later one starts the text anew.
    pub attempt: u32,
    /// Where the text begins, in bytes of the turn's answer so far.
    pub offset: u64,
    /// The text.
    pub text: String,
}

/// Where workers put chunks and sockets take them. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Streams(broadcast::Sender<Chunk>);

impl Default for Streams {
    fn default() -> Self {
        Self(broadcast::Sender::new(1024))
    }
}

impl Streams {
    /// Sends a chunk to whoever listens.
    pub fn send(&self, chunk: Chunk) {
        // Nobody listening is no failure.
        let _ = self.0.send(chunk);
    }

    /// Listens from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<Chunk> {
        self.0.subscribe()
    }
}
