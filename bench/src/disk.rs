//! What a run costs: disk, and while it waits also memory and start-up time of the server. Also measures the disk
//! itself.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::client::{CLIENTS, Connection};
use crate::report::Row;
use crate::server::{Data, Server};
use crate::{Options, below, cycles, median, percentile};

/// The number of waiting runs.
const RUNS: usize = 100_000;
/// The number of runs that finish before the first measurement of the disk, and again between the first and the second.
const FINISHED: usize = 20_000;
/// The number of waiting runs before the first measurement. By then, bounded caches (pages, prepared statements, what
/// allocators keep) are full.
const WARM: usize = 50_000;

/// Writes and syncs as much as a commit does, `times` times with a pause of `apart` before each. Returns the 99th
/// percentile of one write and sync, in milliseconds.
pub fn durable(folder: &Path, times: usize, apart: Duration) -> Result<f64> {
    use std::io::{Seek, SeekFrom, Write};
    /// One decision changes about eight pages (`pages_of_decision`).
    const COMMIT: usize = 8 * 4096;
    const FILE: usize = 4 * 1024 * 1024;
    let mut file = std::fs::File::create(folder.join("durable"))?;
    file.write_all(&vec![0; FILE])?;
    file.sync_all()?;
    let commit = vec![1; COMMIT];
    let mut took = Vec::with_capacity(times);
    for time in 0..times {
        std::thread::sleep(apart);
        let started = Instant::now();
        file.seek(SeekFrom::Start(u64::try_from(time * COMMIT % FILE)?))?;
        file.write_all(&commit)?;
        file.sync_data()?;
        took.push(started.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(percentile(took, 99))
}

/// Measures the bytes on disk and in memory per waiting run, and how long the server takes to be ready with all of
/// them.
#[expect(clippy::cast_precision_loss, reason = "sizes are far below the precision of a double")]
pub async fn waiting_runs(options: &Options) -> Result<Vec<Row>> {
    let mut data = Data::new(None).await?;
    let server = Server::start(&options.binary, &mut data).await?;
    // Fills the bounded caches, so that they do not count as memory of a run.
    make(&server, WARM, cycles::launch).await?;
    let (disk_before, memory_before) = (size_of(data.path())?, server.settled_memory().await?);
    make(&server, RUNS - WARM, cycles::launch).await?;
    let added = (RUNS - WARM) as f64;
    let disk = size_of(data.path())?.saturating_sub(disk_before) as f64 / added;
    let memory = server.settled_memory().await?.saturating_sub(memory_before) as f64 / added;
    drop(server);
    let mut starts = Vec::new();
    for _ in 0..options.rounds {
        let server = Server::start(&options.binary, &mut data).await?;
        starts.push(server.ready_after.as_secs_f64());
    }
    Ok(vec![
        below("waiting_run_disk", disk, "bytes", 4096.0),
        below("waiting_run_memory", memory, "bytes", 64.0),
        below("start_with_100k_waiting", median(starts), "s", 1.0),
    ])
}

/// Measures the bytes on disk per finished run of a flow with one node.
#[expect(clippy::cast_precision_loss, reason = "sizes are far below the precision of a double")]
pub async fn finished_runs(options: &Options) -> Result<[Row; 1]> {
    let mut data = Data::new(None).await?;
    let server = Server::start(&options.binary, &mut data).await?;
    make(&server, FINISHED, cycles::cycle).await?;
    server.settled_memory().await?;
    let before = size_of(data.path())?;
    make(&server, FINISHED, cycles::cycle).await?;
    // By then, the entries are indexed, and the write-ahead log is moved into the database file.
    server.settled_memory().await?;
    let disk = size_of(data.path())?.saturating_sub(before) as f64 / FINISHED as f64;
    Ok([below("finished_run_disk", disk, "bytes", 3500.0)])
}

/// Makes this many runs with all clients together, each by `one`.
async fn make<T>(server: &Server, runs: usize, one: impl AsyncFn(&mut Connection) -> Result<T>) -> Result<()> {
    let one = &one;
    let clients = (0..CLIENTS).map(|client| async move {
        let mut connection = server.connect().await?;
        for _ in 0..share(runs, client) {
            one(&mut connection).await?;
        }
        anyhow::Ok(())
    });
    futures::future::try_join_all(clients).await.map(drop)
}

/// The number of runs that a client makes, out of `runs` by all clients.
fn share(runs: usize, client: usize) -> usize {
    runs / CLIENTS + usize::from(client < runs % CLIENTS)
}

/// The size, in bytes, of all files in the data folder without the write-ahead log, which is emptied again and again.
fn size_of(folder: &Path) -> Result<u64> {
    let mut total = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().ends_with("-wal") {
            total += entry.metadata()?.len();
        }
    }
    Ok(total)
}
