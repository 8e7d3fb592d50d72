//! The text of running agents, on its way from workers to live sockets of this server and of others on the same
//! database. It is not committed, and slow receivers miss some.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use shared::id::{NodeId, RunId, TaskId};
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use crate::rate_limit::give_back;

/// The number of chunks that a listener may lag behind before it misses some.
const BEHIND: usize = 1024;

/// A piece of a running agent's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// The run that the agent works for. Whoever may see the run receives the text.
    pub run: RunId,
    /// The node at which the agent works.
    pub node: NodeId,
    /// The number of the node's visit, from 1.
    pub visit: u32,
    /// The agent that writes; `judge` for a judge.
    pub agent: String,
    /// The task of the model call, a different one for each turn. It tells agents apart that write at the same time.
    pub task: TaskId,
    /// The number of the attempt at this call; a later attempt starts the text anew.
    pub attempt: u32,
    /// The position of `text` in the turn's answer so far, in bytes.
    pub offset: u64,
    /// The piece of text.
    pub text: String,
}

/// The runs whose text a server wants to receive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interest {
    /// All runs: the server follows too many to list them.
    All,
    /// Only the text of these runs.
    Runs(HashSet<RunId>),
}

/// The exchange between workers, which send chunks, and sockets, which receive them. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Streams(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// All chunks, for the sockets of this server.
    arrived: broadcast::Sender<Chunk>,
    /// The chunks of this server that other servers want.
    outgoing: broadcast::Sender<Chunk>,
    /// The runs that sockets of this server follow, with the number of sockets.
    followed: watch::Sender<HashMap<RunId, usize>>,
    /// The interest of each other server, by its name, and the time at which it expires.
    elsewhere: Mutex<HashMap<String, (Interest, Instant)>>,
}

impl Default for Streams {
    fn default() -> Self {
        Self(Arc::new(Inner {
            arrived: broadcast::Sender::new(BEHIND),
            outgoing: broadcast::Sender::new(BEHIND),
            followed: watch::Sender::default(),
            elsewhere: Mutex::default(),
        }))
    }
}

impl Streams {
    /// Sends a chunk of this server's own worker to all listeners, here and on interested servers.
    pub fn send(&self, chunk: Chunk) {
        // It is no failure if nobody listens.
        if self.is_wanted_elsewhere(chunk.run) {
            let _ = self.0.outgoing.send(chunk.clone());
        }
        let _ = self.0.arrived.send(chunk);
    }

    /// Passes on a chunk that another server sent.
    pub fn receive(&self, chunk: Chunk) {
        let _ = self.0.arrived.send(chunk);
    }

    /// Subscribes to all chunks from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<Chunk> {
        self.0.arrived.subscribe()
    }

    /// Subscribes to the chunks for other servers from now on.
    pub fn outgoing(&self) -> broadcast::Receiver<Chunk> {
        self.0.outgoing.subscribe()
    }

    /// Registers that a socket follows these runs, until the returned guard is dropped.
    pub fn follow(&self, runs: &[RunId]) -> Following {
        self.0.followed.send_modify(|followed| {
            for run in runs {
                *followed.entry(*run).or_default() += 1;
            }
        });
        Following { streams: self.clone(), runs: runs.to_vec() }
    }

    /// Watches the runs that sockets of this server follow, with the number of sockets.
    pub fn followed(&self) -> watch::Receiver<HashMap<RunId, usize>> {
        self.0.followed.subscribe()
    }

    /// Records which runs another server wants. The record expires after `lasts`.
    pub fn wanted_by(&self, server: String, interest: Interest, lasts: Duration) {
        let mut elsewhere = self.0.elsewhere.lock();
        let now = Instant::now();
        elsewhere.retain(|_, (_, until)| *until > now);
        elsewhere.insert(server, (interest, now + lasts));
    }

    fn is_wanted_elsewhere(&self, run: RunId) -> bool {
        let elsewhere = self.0.elsewhere.lock();
        if elsewhere.is_empty() {
            return false;
        }
        let now = Instant::now();
        elsewhere.values().any(|(interest, until)| {
            let wanted = match interest {
                Interest::All => true,
                Interest::Runs(runs) => runs.contains(&run),
            };
            wanted && *until > now
        })
    }
}

/// The registration of the runs that a socket follows. It ends on drop.
#[derive(Debug)]
pub struct Following {
    streams: Streams,
    runs: Vec<RunId>,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.streams.0.followed.send_modify(|followed| {
            self.runs.iter().for_each(|run| give_back(followed, run));
        });
    }
}
