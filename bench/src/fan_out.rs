//! How fast one entry reaches 1,000 sockets, compared with a bare broadcast of the same bytes: a separate process, like
//! the server, that does nothing but write each frame to each socket.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::{SinkExt, StreamExt};
use tokio::io::AsyncBufReadExt;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinHandle;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;

use crate::report::Row;
use crate::server::{Data, Server};
use crate::sockets::{Socket, connect, subscribed};
use crate::{Options, cycles, median, share_of};

/// The argument with which this program acts as the rival.
pub const RIVAL: &str = "broadcast";

const SOCKETS: usize = 1_000;
/// The number of entries in a round, one after another.
const ENTRIES: usize = 50;

/// Measures frames per second from the first socket that receives an entry to the last, compared with the broadcast.
/// How soon the first socket receives it is another row (`decision_seen`).
pub async fn beside_bare_broadcast(options: &Options) -> Result<[Row; 1]> {
    let mut data = Data::new(None).await?;
    let server = Server::start(&options.binary, &mut data).await?;
    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    let mut readers = Vec::new();
    for credential in server.seats(SOCKETS).await? {
        readers.push(tokio::spawn(report_entries(subscribed(&server, &credential).await?, arrived.clone())));
    }
    let mut launcher = server.connect().await?;
    let frame = sample_frame(&server, &mut launcher).await?;
    spread(&mut arrivals).await?;
    let mut rival = Rival::start()?;
    for _ in 0..SOCKETS {
        readers.push(tokio::spawn(report_entries(connect(&rival.address).await?, arrived.clone())));
    }
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        let (mut our, mut their) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..ENTRIES {
            cycles::launch(&mut launcher).await?;
            our += spread(&mut arrivals).await?;
            rival.broadcast(&frame)?;
            their += spread(&mut arrivals).await?;
        }
        ours.push(rate(our));
        theirs.push(rate(their));
    }
    readers.iter().for_each(JoinHandle::abort);
    Ok([share_of("fan_out_1000", median(ours), "frames/s", median(theirs), 0.7)])
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below the precision of a double")]
fn rate(spread: Duration) -> f64 {
    (SOCKETS * ENTRIES) as f64 / spread.as_secs_f64()
}

/// Launches a run, and returns the first frame of an entry that this sends.
async fn sample_frame(server: &Server, launcher: &mut crate::client::Connection) -> Result<String> {
    let mut socket = subscribed(server, &server.credential).await?;
    cycles::launch(launcher).await?;
    while let Some(message) = socket.next().await {
        let message = message?;
        if is_entry(&message) {
            return Ok(message.to_text()?.to_owned());
        }
    }
    anyhow::bail!("no entry came")
}

fn is_entry(message: &Message) -> bool {
    message.to_text().is_ok_and(|text| text.starts_with(r#"{"type":"entry""#))
}

async fn report_entries(mut socket: Socket, arrived: mpsc::UnboundedSender<Instant>) {
    while let Some(Ok(message)) = socket.next().await {
        if is_entry(&message) {
            let _ = arrived.send(Instant::now());
        }
    }
}

/// Waits until one entry has arrived at all sockets, and returns the time from the first arrival to the last.
async fn spread(arrivals: &mut mpsc::UnboundedReceiver<Instant>) -> Result<Duration> {
    let mut times = Vec::with_capacity(SOCKETS);
    while times.len() < SOCKETS {
        times.push(tokio::time::timeout(Duration::from_secs(30), arrivals.recv()).await?.context("no reader")?);
    }
    let (first, last) = (times.iter().min().context("none")?, times.iter().max().context("none")?);
    Ok(last.duration_since(*first))
}

/// The rival's process, which is killed when this is dropped.
struct Rival {
    child: Child,
    frames: ChildStdin,
    address: String,
}

impl Rival {
    fn start() -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(RIVAL)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the rival could not be started")?;
        let frames = child.stdin.take().context("no input")?;
        let mut address = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut address)?;
        Ok(Self { child, frames, address: address.trim().to_owned() })
    }

    fn broadcast(&mut self, frame: &str) -> Result<()> {
        writeln!(self.frames, "{frame}")?;
        Ok(self.frames.flush()?)
    }
}

impl Drop for Rival {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs as the rival: prints its address, then sends each line of standard input to every socket. Returns when standard
/// input ends.
pub async fn broadcast_lines() -> Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "ws://{}/", listener.local_addr()?)?;
    let sender = broadcast::Sender::<Arc<str>>::new(1024);
    let source = sender.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut frames = source.subscribe();
            tokio::spawn(async move {
                let Ok(mut socket) = accept_async(stream).await else { return };
                while let Ok(frame) = frames.recv().await {
                    if socket.send(Message::text(&*frame)).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    let mut lines = tokio::io::BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        // Fails only if no socket is connected, so none misses the line.
        let _ = sender.send(line.into());
    }
    Ok(())
}
