//! A model's answer while it arrives: its text, its calls, its usage, and the limit of its size.

use serde_json::{Value, json};

use super::OnText;
use super::price::Tokens;
use crate::engine::ModelToolCall;
use crate::limits::{self, MAX_BYTES};

/// What a call counts beside its texts, so that calls without any are bounded too.
const CALL: usize = 64;

/// Why no answer came of what a server sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AnswerFault {
    /// It ended, or its connection broke, before the answer was complete.
    BrokenOff(String),
    /// It is not what this kind of server sends.
    Form,
    /// It has an integer that cannot be kept exactly.
    LongInteger,
    /// It is larger than a value may be.
    TooLarge,
    /// The server says, instead of going on, that it failed.
    Failed {
        /// What it calls the failure; may be empty.
        kind: String,
        /// What it says of it.
        message: String,
    },
    /// The model declines to answer; what it says of that may be empty.
    Declined(String),
    /// The answer came to the most tokens that it may have, before it was complete: its last sentence or the arguments
    /// of its last call may be cut.
    CutOff,
}

/// Whether an answer has come to its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum End {
    /// More must come.
    #[default]
    Open,
    /// The answer is complete; more may come that counts what was used.
    Complete,
    /// Nothing more comes.
    Over,
}

/// What was heard so far.
pub(super) struct AnswerBuilder<'a> {
    on_text: &'a OnText<'a>,
    text: String,
    refusal: String,
    calls: Vec<PartialCall>,
    size: usize,
    pub(super) used: Tokens,
    pub(super) end: End,
}

struct PartialCall {
    /// Where the server has it in its list.
    place: Option<u64>,
    id: String,
    tool: String,
    arguments: String,
}

impl<'a> AnswerBuilder<'a> {
    pub(super) fn new(on_text: &'a OnText<'a>) -> Self {
        let (text, refusal, calls) = (String::new(), String::new(), Vec::new());
        Self { on_text, text, refusal, calls, size: 0, used: Tokens::default(), end: End::Open }
    }

    /// The model says a piece of text.
    pub(super) fn say(&mut self, text: &str) -> Result<(), AnswerFault> {
        if text.is_empty() {
            return Ok(());
        }
        self.grow(text.len())?;
        self.text.push_str(text);
        (self.on_text)(text);
        Ok(())
    }

    /// The model says a piece of why it declines.
    pub(super) fn refuse(&mut self, text: &str) -> Result<(), AnswerFault> {
        self.grow(text.len())?;
        self.refusal.push_str(text);
        Ok(())
    }

    /// The model begins a call. Without an id it gets one, for the result to name.
    pub(super) fn call(&mut self, place: Option<u64>, id: &str, tool: &str) -> Result<(), AnswerFault> {
        if tool.is_empty() {
            return Err(AnswerFault::Form);
        }
        self.grow(CALL + id.len() + tool.len())?;
        let id = if id.is_empty() { format!("call_{}", self.calls.len() + 1) } else { id.to_owned() };
        self.calls.push(PartialCall { place, id, tool: tool.to_owned(), arguments: String::new() });
        Ok(())
    }

    /// The model writes a piece of the arguments of the newest call at this place.
    pub(super) fn arguments(&mut self, place: Option<u64>, piece: &str) -> Result<(), AnswerFault> {
        self.grow(piece.len())?;
        let call = self.calls.iter_mut().rev().find(|call| call.place == place).ok_or(AnswerFault::Form)?;
        call.arguments.push_str(piece);
        Ok(())
    }

    /// Whether a piece of a call belongs to one that has begun: a new id or a new place begins another.
    pub(super) fn has_call(&self, place: Option<u64>, id: &str) -> bool {
        let newest = self.calls.iter().rev().find(|call| call.place == place);
        newest.is_some_and(|call| id.is_empty() || call.id == id)
    }

    /// The text and the calls.
    pub(super) fn finish(self) -> Result<(String, Vec<ModelToolCall>), AnswerFault> {
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

/// A frame of an answer as JSON. An integer in it that would become another one, where a server sends arguments as
/// objects, is a fault.
pub(super) fn frame(frame: &str) -> Result<Value, AnswerFault> {
    if limits::long_integer(frame.as_bytes()).is_some() {
        return Err(AnswerFault::LongInteger);
    }
    serde_json::from_str(frame).map_err(|_| AnswerFault::Form)
}

/// The arguments that a model wrote. A tool that takes nothing is often called with nothing; what is no JSON, or has an
/// integer that would become another one, is given on as it is, so that the engine tells the model.
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
