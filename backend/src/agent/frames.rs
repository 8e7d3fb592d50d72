//! The frames of a streamed answer: server-sent events, or one JSON value per line. However the network splits them,
//! frames are complete, and bounded in length.

use reqwest::Response;

use super::answer::AnswerFault;
use crate::limits::MAX_BYTES;
use crate::ssrf::{Cause, cause};

/// The maximum length of a frame, in bytes: enough for the largest value with its escapes.
const MAX_FRAME: usize = 2 * MAX_BYTES;

/// The beginnings of lines of an event other than its data. `:` begins a comment.
const FIELDS: [&str; 4] = [":", "event", "id", "retry"];

/// The separation of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-sent events: lines of `data: …` up to an empty line. Only the data is used.
    Events,
    /// One JSON value per line.
    Lines,
}

/// Reads the frames of one answer.
pub(super) struct Frames {
    framing: Framing,
    response: Response,
    bytes: Vec<u8>,
    /// The index in `bytes` at which the next line begins.
    start: usize,
    /// The index up to which `bytes` has no line feed after `start`.
    searched: usize,
    /// Whether a line was found that does not belong to server-sent events, and no event since.
    strange: bool,
}

impl Frames {
    pub(super) fn new(framing: Framing, response: Response) -> Self {
        Self { framing, response, bytes: Vec::new(), start: 0, searched: 0, strange: false }
    }

    /// Returns the next frame. `None` at the regular end of the response.
    pub(super) async fn next(&mut self) -> Result<Option<String>, AnswerFault> {
        match self.framing {
            Framing::Lines => self.line_of_json().await,
            Framing::Events => self.event().await,
        }
    }

    async fn line_of_json(&mut self) -> Result<Option<String>, AnswerFault> {
        while let Some(line) = self.line().await? {
            if !line.trim().is_empty() {
                return Ok(Some(line));
            }
        }
        // The last line may lack its line feed. An incomplete line is not a frame.
        let rest = text(&self.bytes.split_off(self.start))?;
        self.searched = self.start;
        Ok(serde_json::from_str::<serde::de::IgnoredAny>(&rest).is_ok().then_some(rest))
    }

    async fn event(&mut self) -> Result<Option<String>, AnswerFault> {
        let mut data: Option<String> = None;
        while let Some(line) = self.line().await? {
            if line.is_empty() {
                if data.is_some() {
                    self.strange = false;
                    return Ok(data);
                }
            } else if let Some(piece) = line.strip_prefix("data:") {
                let piece = piece.strip_prefix(' ').unwrap_or(piece);
                let data = data.get_or_insert_default();
                if !data.is_empty() {
                    data.push('\n');
                }
                if data.len() + piece.len() > MAX_FRAME {
                    return Err(AnswerFault::TooLarge);
                }
                data.push_str(piece);
            } else {
                self.strange |= !FIELDS.iter().any(|field| line.starts_with(field));
            }
        }
        if self.strange { Err(AnswerFault::Form) } else { Ok(None) }
    }

    /// Returns the next complete line, without its end. `None` at the end of the response.
    async fn line(&mut self) -> Result<Option<String>, AnswerFault> {
        loop {
            if let Some(found) = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n') {
                let end = self.searched + found;
                let line = &self.bytes[self.start..end];
                let line = text(line.strip_suffix(b"\r").unwrap_or(line))?;
                (self.start, self.searched) = (end + 1, end + 1);
                return Ok(Some(line));
            }
            self.bytes.drain(..self.start);
            self.start = 0;
            self.searched = self.bytes.len();
            if self.searched > MAX_FRAME {
                return Err(AnswerFault::TooLarge);
            }
            match self.response.chunk().await {
                Ok(Some(piece)) => self.bytes.extend_from_slice(&piece),
                Ok(None) => return Ok(None),
                Err(error) => return Err(broken_off(&error)),
            }
        }
    }
}

/// Converts an error of the connection to a fault.
pub(super) fn broken_off(error: &reqwest::Error) -> AnswerFault {
    let (Cause::Refused(why) | Cause::Failed(why)) = cause(error);
    AnswerFault::BrokenOff(why)
}

fn text(bytes: &[u8]) -> Result<String, AnswerFault> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| AnswerFault::Form)
}
