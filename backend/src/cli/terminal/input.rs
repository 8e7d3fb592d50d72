//! The lines of answers, from a terminal, a pipe or a file.
//!
//! A separate thread or task reads the source, so that waiting for a line can be cancelled.

use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::path::Path;
use std::thread;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};
use tokio::sync::mpsc;

use crate::embed::Declined;

/// The longest line, in bytes.
pub const MAX_LINE: usize = 100_000;

/// A source of answers, one line each.
pub struct InputLines {
    lines: mpsc::Receiver<Result<String, String>>,
    interactive: bool,
    /// Whether lines that arrived before a question are discarded.
    pub(super) forgets: bool,
    /// The end of the error message when there are no more lines.
    remedy: &'static str,
}

impl InputLines {
    /// Reads standard input. If it is not a terminal, it counts as a script: invalid answers are errors.
    pub fn stdin() -> Self {
        let interactive = std::io::stdin().is_terminal();
        let remedy = if interactive {
            "the terminal was closed"
        } else {
            "standard input is not a terminal and has no more answers; run the command in a terminal, or pipe one line \
             for each answer"
        };
        Self::reading(std::io::stdin(), interactive, remedy)
    }

    /// Reads a file with one line for each answer. It counts as a script: invalid answers are errors. Fails if the file
    /// cannot be opened.
    pub fn file(path: &Path) -> std::io::Result<Self> {
        let remedy = "the answers file has no more lines; add one line for each answer";
        Ok(Self::reading(std::fs::File::open(path)?, false, remedy))
    }

    /// Reads lines from any source. They count as a script: invalid answers are errors.
    pub fn lines_of(mut source: impl AsyncBufRead + Send + Unpin + 'static) -> Self {
        let (send, lines) = mpsc::channel(16);
        tokio::spawn(async move {
            loop {
                let mut line = Vec::new();
                let read = (&mut source).take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line).await;
                let Some(line) = whole(read, line) else { return };
                let failed = line.is_err();
                if send.send(line).await.is_err() || failed {
                    return;
                }
            }
        });
        Self { lines, interactive: false, forgets: false, remedy: "there are no more lines" }
    }

    pub(super) fn reading(source: impl Read + Send + 'static, interactive: bool, remedy: &'static str) -> Self {
        // The small buffer limits how many lines are read before a question needs them.
        let (send, lines) = mpsc::channel(16);
        thread::spawn(move || {
            let mut source = BufReader::new(source);
            while let Some(line) = read(&mut source) {
                let failed = line.is_err();
                if send.blocking_send(line).is_err() || failed {
                    return;
                }
            }
        });
        Self { lines, interactive, forgets: interactive, remedy }
    }

    /// Whether a person types the answers at a terminal.
    pub fn is_interactive(&self) -> bool {
        self.interactive
    }

    /// Discards lines that a person typed before the question.
    pub fn forget_early(&mut self) {
        while self.forgets && self.lines.try_recv().is_ok() {}
    }

    /// Waits for the next line. Fails at the end of the source.
    pub async fn next(&mut self) -> Result<String, Declined> {
        match self.lines.recv().await {
            Some(line) => Ok(line?),
            None => Err(format!("there is no answer: {}", self.remedy).into()),
        }
    }
}

/// Reads a line without its line break; `None` at the end of the source.
fn read(source: &mut impl BufRead) -> Option<Result<String, String>> {
    let mut line = Vec::new();
    let read = source.take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line);
    whole(read, line)
}

/// Converts the bytes of a line to text without its line break; `None` at the end of the source. Fails if the line is
/// too long or not UTF-8.
fn whole(read: std::io::Result<usize>, line: Vec<u8>) -> Option<Result<String, String>> {
    match read {
        Ok(0) => return None,
        Ok(_) if line.len() > MAX_LINE => return Some(Err(format!("an answer is longer than {MAX_LINE} bytes"))),
        Ok(_) => {}
        Err(error) => return Some(Err(format!("the answers cannot be read: {error}"))),
    }
    let line = String::from_utf8(line).map_err(|_| "an answer is not UTF-8".to_owned());
    Some(line.map(|line| line.trim_end_matches(['\n', '\r']).to_owned()))
}
