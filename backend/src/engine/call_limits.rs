//! The limits of an agent's tool calls: how many are made in a turn, and how much of their results a conversation keeps.
//! Both are in the state of the run, which is written with every step, and a model cannot be told more than this anyway.

use std::io::{self, Write};

use serde_json::Value;
use shared::error::FlowCode;

use super::conversation::{Conversation, Message, ToolCall, ToolCallState};
use super::input::ModelToolCall;

/// The maximum number of tool calls that are made in a turn.
pub(super) const MAX_CALLS: usize = 64;
/// The maximum size of all results in a conversation, as JSON, in bytes.
const MAX_RESULTS: usize = 8 * 1024 * 1024;
/// The size of results that are always kept, in bytes: answers of people are among them.
const SMALL: usize = 16 * 1024;

impl Conversation {
    /// Removes the calls that exceed the limit of a turn, and tells the model so after the results of the others.
    pub(super) fn leave_out_surplus(&mut self, calls: &mut Vec<ModelToolCall>) {
        let surplus = calls.len().saturating_sub(MAX_CALLS);
        calls.truncate(MAX_CALLS);
        if surplus > 0 {
            let told = format!("At most {MAX_CALLS} calls are made in a turn: your last {surplus} were not made.");
            self.instructed.push(told);
        }
    }

    /// Replaces results for which there is no room left beside the earlier ones. The model learns that the call was made,
    /// so that it does not repeat it.
    pub(super) fn leave_out_results(&self, calls: &mut [ToolCall]) {
        let earlier = self.messages.iter().map(|message| match message {
            Message::Tool { content, .. } => size(content),
            Message::User { .. } | Message::Assistant { .. } => 0,
        });
        let mut left = MAX_RESULTS.saturating_sub(earlier.sum());
        for call in calls {
            let ToolCallState::Done { result, failed: false } = &call.state else { continue };
            let size = size(result);
            if size <= left || size <= SMALL {
                left = left.saturating_sub(size);
                continue;
            }
            let why = format!(
                "the call has a result, but it is left out: the results of all your calls in this step may have {} MiB \
                 together",
                MAX_RESULTS / 1024 / 1024
            );
            call.state = ToolCallState::failed(FlowCode::ToolFailed, &why);
        }
    }
}

/// Returns the size of a value as JSON, in bytes.
fn size(value: &Value) -> usize {
    let mut count = Count(0);
    // Neither a value nor the counter fails.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// A writer that only counts.
struct Count(usize);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
