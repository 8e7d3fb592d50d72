//! Relays the text of running agents between servers on one PostgreSQL database, by NOTIFY. A server announces the runs
//! that its sockets follow, and the others send it their text: if no other server follows a run, nothing is sent.
//!
//! Text may be lost. It is sent in batches of limited size over reading connections, so that no commit waits for it.
//! The receiving socket decides who may see it.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{sleep, timeout};

use super::db::{Arg, Sql};
use super::{Error, Inner, Store};
use crate::token_stream::{Chunk, Interest, Streams};

/// The channel for notices about streams.
pub(super) const CHANNEL: &str = "countersign_streams";
/// The interval at which text is sent, and at which newly followed runs are announced.
const SEND_INTERVAL: Duration = Duration::from_millis(100);
/// The interval at which followed runs are announced again.
const INTEREST_INTERVAL: Duration = Duration::from_secs(10);
/// The time for which an announcement is valid.
const INTEREST_LIFETIME: Duration = Duration::from_secs(30);
/// The longest payload, in bytes; PostgreSQL accepts 7,999.
const MAX_PAYLOAD: usize = 7900;
/// The longest text in one piece, in bytes; as JSON, a byte takes at most six.
const MAX_TEXT: usize = 1000;
/// The number of payloads that are sent at once; further ones are dropped.
const MAX_AT_ONCE: usize = 8;
/// The largest number of runs that are named. A server whose sockets follow more gets the text of all runs.
const MAX_NAMED: usize = 150;

/// A notice from one server to the others.
#[derive(Debug, Serialize, Deserialize)]
struct ChunkNotice {
    /// The name of the sender.
    from: String,
    #[serde(flatten)]
    what: What,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum What {
    /// The runs that the sender's sockets follow.
    Wants(Interest),
    /// Text of the sender's agents.
    Text(Vec<Chunk>),
}

impl Store {
    /// Exchanges text of running agents with other servers on this database, until the store is closed. No effect with
    /// SQLite, which has one server.
    pub fn relay(&self, streams: Streams) {
        if self.inner.db.is_postgres() {
            let inner = &self.inner;
            *inner.streams.lock() = Some(streams.clone());
            let relay = inner.background.watch("relay of streams", &inner.stop, run(Arc::clone(inner), streams));
            inner.tasks.lock().spawn(relay);
        }
    }
}

async fn run(inner: Arc<Inner>, streams: Streams) {
    let relay = async {
        tokio::join!(announce(&inner, &streams), forward(&inner, &streams));
    };
    tokio::select! {
        () = relay => {}
        () = inner.stop.cancelled() => {}
    }
}

/// Handles a notice, if this server runs flows.
pub(super) fn receive(inner: &Inner, payload: &str) {
    let Some(streams) = inner.streams.lock().clone() else { return };
    // A notice of a newer server may have content that this version does not understand.
    let Ok(ChunkNotice { from, what }) = serde_json::from_str(payload) else { return };
    if from == inner.name {
        return;
    }
    match what {
        What::Wants(interest) => streams.wanted_by(from, interest, INTEREST_LIFETIME),
        What::Text(chunks) => chunks.into_iter().for_each(|chunk| streams.receive(chunk)),
    }
}

/// Announces which runs are followed here: when they change, and at intervals. Nothing is announced while there are
/// none.
async fn announce(inner: &Inner, streams: &Streams) {
    let mut followed = streams.followed();
    let mut interest_of_all = Interest::Runs(std::collections::HashSet::new());
    loop {
        let wanted = {
            let followed = followed.borrow_and_update();
            match followed.len() {
                0..=MAX_NAMED => Interest::Runs(followed.keys().copied().collect()),
                _ => Interest::All,
            }
        };
        let none = matches!(&wanted, Interest::Runs(runs) if runs.is_empty());
        if !none || wanted != interest_of_all {
            match notify(inner, vec![payload(inner, What::Wants(wanted.clone()))]).await {
                Ok(()) => interest_of_all = wanted,
                Err(error) => report(&error),
            }
        }
        sleep(SEND_INTERVAL).await;
        // The channel stays open, since `streams` holds its sender.
        let _ = timeout(INTEREST_INTERVAL, followed.changed()).await;
    }
}

/// Sends text to the servers that follow its runs.
async fn forward(inner: &Inner, streams: &Streams) {
    let mut outgoing = streams.outgoing();
    loop {
        let Some(first) = next(&mut outgoing).await else { return };
        let mut batch = ChunkBatch::default();
        batch.add(first);
        sleep(SEND_INTERVAL).await;
        while let Ok(chunk) = outgoing.try_recv() {
            batch.add(chunk);
        }
        if let Err(error) = notify(inner, batch.payloads(inner)).await {
            report(&error);
        }
    }
}

async fn next(outgoing: &mut broadcast::Receiver<Chunk>) -> Option<Chunk> {
    loop {
        match outgoing.recv().await {
            Ok(chunk) => return Some(chunk),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return None,
        }
    }
}

/// Text that is sent together.
#[derive(Debug, Default)]
struct ChunkBatch(Vec<Chunk>);

impl ChunkBatch {
    /// Adds a chunk. If it continues another one, the two are joined.
    fn add(&mut self, chunk: Chunk) {
        let continues = |last: &&mut Chunk| {
            (last.task, last.attempt) == (chunk.task, chunk.attempt)
                && last.offset + last.text.len() as u64 == chunk.offset
        };
        match self.0.iter_mut().rev().find(continues) {
            Some(last) => last.text.push_str(&chunk.text),
            None => self.0.push(chunk),
        }
    }

    fn payloads(&self, inner: &Inner) -> Vec<String> {
        let (mut payloads, mut pieces, mut size) = (Vec::new(), Vec::new(), 0);
        for piece in self.0.iter().flat_map(split) {
            // The length as JSON, with a margin for the sender's name.
            let length = serde_json::to_string(&piece).map_or(MAX_PAYLOAD, |text| text.len()) + 1;
            if size + length > MAX_PAYLOAD - 200 {
                payloads.push(payload(inner, What::Text(std::mem::take(&mut pieces))));
                size = 0;
            }
            size += length;
            pieces.push(piece);
        }
        payloads.push(payload(inner, What::Text(pieces)));
        payloads
    }
}

/// Splits a chunk into pieces that each fit in a payload.
fn split(chunk: &Chunk) -> Vec<Chunk> {
    let (mut pieces, mut rest) = (Vec::new(), chunk.text.as_str());
    let mut offset = chunk.offset;
    while !rest.is_empty() {
        let (text, behind) = rest.split_at(rest.floor_char_boundary(MAX_TEXT));
        let (node, agent) = (chunk.node.clone(), chunk.agent.clone());
        pieces.push(Chunk { offset, text: text.to_owned(), node, agent, ..*chunk });
        offset += text.len() as u64;
        rest = behind;
    }
    pieces
}

fn payload(inner: &Inner, what: What) -> String {
    // Ids, numbers and texts always serialise.
    serde_json::to_string(&ChunkNotice { from: inner.name.clone(), what }).unwrap_or_default()
}

/// Sends payloads in one statement. Those that are too long or too many are dropped.
async fn notify(inner: &Inner, payloads: Vec<String>) -> Result<(), Error> {
    let fit = payloads.into_iter().filter(|payload| payload.len() <= MAX_PAYLOAD).take(MAX_AT_ONCE);
    let rows: Vec<Vec<Arg>> = fit.map(|payload| vec![payload.into()]).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let sql = Sql::new("SELECT pg_notify('").push(CHANNEL).push("', p.column1)::text FROM (");
    inner.db.read().await?.fetch(sql.values(rows).push(") AS p")).await?;
    Ok(())
}

fn report(error: &Error) {
    tracing::warn!(%error, "the text of running agents is not shared with other servers");
}

#[cfg(test)]
mod tests {
    use shared::id::TaskId;

    use super::*;

    #[test]
    fn text_that_follows_goes_together_and_long_text_in_pieces() {
        let chunk = |offset, text: &str| Chunk {
            run: shared::id::RunId(uuid::Uuid::from_u128(1)),
            node: "draft".parse().expect("an id"),
            visit: 1,
            agent: "writer".to_owned(),
            task: TaskId(uuid::Uuid::from_u128(1)),
            attempt: 1,
            offset,
            text: text.to_owned(),
        };
        let mut batch = ChunkBatch::default();
        batch.add(chunk(0, "a"));
        batch.add(Chunk { task: TaskId(uuid::Uuid::from_u128(2)), ..chunk(1, "other") });
        batch.add(chunk(1, &"é".repeat(1500)));
        batch.add(chunk(9000, "after a gap"));
        assert_eq!(batch.0.len(), 3);
        let pieces = split(&batch.0.swap_remove(0));
        assert!(pieces.iter().all(|piece| piece.text.len() <= MAX_TEXT) && pieces.len() == 4);
        let mut offset = 0;
        for piece in pieces {
            assert_eq!(piece.offset, offset);
            offset += piece.text.len() as u64;
        }
        assert_eq!(offset, 3001);
    }
}
