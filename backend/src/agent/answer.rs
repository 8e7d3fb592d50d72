//! A model's answer while it arrives: its text, its tool calls, its usage, and the limit of its size.

use serde_json::{Value, json};

use super::OnText;
use super::price::Tokens;
use crate::engine::ModelToolCall;
use crate::limits::{self, MAX_BYTES};

/// The size that a tool call counts in addition to its texts, in bytes, so that empty calls are bounded too.
const CALL: usize = 64;

/// The reason why the data of a server did not result in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AnswerFault {
    /// It ended, or its connection broke, before the answer was complete.
    BrokenOff(String),
    /// The data does not have the form that this kind of server sends.
    Form,
    /// It contains an integer that cannot be kept exactly.
    LongInteger,
    /// It is larger than a value may be.
    TooLarge,
    /// The server reports a failure in place of the rest.
    Failed {
        /// The server's name for the failure; may be empty.
        kind: String,
        message: String,
    },
    /// The model declines to answer. The explanation may be empty.
    Declined(String),
    /// The answer reached its token limit before it was complete: its last sentence or the arguments of its last call
    /// may be cut.
    CutOff,
}

/// How far an answer has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum End {
    /// More must come.
    #[default]
    Open,
    /// The answer is complete, but usage may still be reported.
    Complete,
    /// Nothing more comes.
    Over,
}

/// The part of an answer that has arrived.
pub(super) struct AnswerBuilder<'a> {
    on_text: &'a OnText<'a>,
    text: String,
    refusal: String,
    /// Why the server ended the answer, if it is not a good one.
    stopped: Option<AnswerFault>,
    calls: Vec<PartialCall>,
    size: usize,
    pub(super) used: Tokens,
    pub(super) end: End,
}

struct PartialCall {
    /// The index of the call in the server's list, if the server numbers its calls.
    place: Option<u64>,
    id: String,
    tool: String,
    arguments: String,
}

impl<'a> AnswerBuilder<'a> {
    pub(super) fn new(on_text: &'a OnText<'a>) -> Self {
        let (text, refusal, calls) = (String::new(), String::new(), Vec::new());
        let (used, end) = (Tokens::default(), End::Open);
        Self { on_text, text, refusal, stopped: None, calls, size: 0, used, end }
    }

    pub(super) fn say(&mut self, text: &str) -> Result<(), AnswerFault> {
        if text.is_empty() {
            return Ok(());
        }
        self.grow(text.len())?;
        self.text.push_str(text);
        (self.on_text)(text);
        Ok(())
    }

    /// Appends a piece of the explanation why the model declines.
    pub(super) fn refuse(&mut self, text: &str) -> Result<(), AnswerFault> {
        self.grow(text.len())?;
        self.refusal.push_str(text);
        Ok(())
    }

    /// Begins a tool call. If the server gave no id, one is made up, so that the result can name the call.
    pub(super) fn call(&mut self, place: Option<u64>, id: &str, tool: &str) -> Result<(), AnswerFault> {
        if tool.is_empty() {
            return Err(AnswerFault::Form);
        }
        self.grow(CALL + id.len() + tool.len())?;
        let id = if id.is_empty() { format!("call_{}", self.calls.len() + 1) } else { id.to_owned() };
        self.calls.push(PartialCall { place, id, tool: tool.to_owned(), arguments: String::new() });
        Ok(())
    }

    /// Appends a piece of the arguments of the newest call with this index.
    pub(super) fn arguments(&mut self, place: Option<u64>, piece: &str) -> Result<(), AnswerFault> {
        self.grow(piece.len())?;
        let call = self.calls.iter_mut().rev().find(|call| call.place == place).ok_or(AnswerFault::Form)?;
        call.arguments.push_str(piece);
        Ok(())
    }

    /// Whether a piece belongs to a call that has begun. A new id or a new index begins another call.
    pub(super) fn has_call(&self, place: Option<u64>, id: &str) -> bool {
        let newest = self.calls.iter().rev().find(|call| call.place == place);
        newest.is_some_and(|call| id.is_empty() || call.id == id)
    }

    /// Ends an answer that is not a good one, and whose usage may still be reported.
    pub(super) fn stop(&mut self, fault: AnswerFault) {
        self.stopped = Some(fault);
        self.end = End::Complete;
    }

    /// Returns the text and the calls. Fails if the answer was stopped, or if the model declined.
    pub(super) fn finish(self) -> Result<(String, Vec<ModelToolCall>), AnswerFault> {
        if let Some(fault) = self.stopped {
            return Err(fault);
        }
        if !self.refusal.is_empty() {
            return Err(AnswerFault::Declined(self.refusal));
        }
        let call = |call: PartialCall| ModelToolCall {
            provider_id: call.id,
            tool: call.tool,
            arguments: arguments(&call.arguments),
        };
        Ok((self.text, self.calls.into_iter().map(call).collect()))
    }

    fn grow(&mut self, by: usize) -> Result<(), AnswerFault> {
        self.size = self.size.saturating_add(by);
        if self.size > MAX_BYTES { Err(AnswerFault::TooLarge) } else { Ok(()) }
    }
}

/// Parses a frame as JSON. Fails if it contains an integer of more than 64 bits, since some servers send arguments as
/// objects.
pub(super) fn frame(frame: &str) -> Result<Value, AnswerFault> {
    if limits::long_integer(frame.as_bytes()).is_some() {
        return Err(AnswerFault::LongInteger);
    }
    serde_json::from_str(frame).map_err(|_| AnswerFault::Form)
}

/// Parses the arguments that a model wrote. Models often call tools without parameters with an empty text. If the text
/// is not JSON, or has an integer of more than 64 bits, it is passed on as it is, so that the engine tells the model.
pub(crate) fn arguments(written: &str) -> Value {
    if written.trim().is_empty() {
        return json!({});
    }
    match serde_json::from_str(written) {
        Ok(Value::Null) => json!({}),
        Ok(value) if limits::long_integer(written.as_bytes()).is_none() => value,
        _ => written.into(),
    }
}
