//! What an agent is told that takes over a step: the prompt, and what others did before it, so that it repeats nothing.

use std::fmt::Write;

use crate::engine::builder::Builder;
use crate::engine::conversation::{Conversation, Message, Purpose, ToolCall, ToolCallState};

impl Builder<'_> {
    /// Returns the prompt of an agent that takes over the conversation of a branch. What its agents have begun has not
    /// ended yet: agents that work for it are told of, too.
    pub(super) fn successor_prompt(&self, branch: u32, before: &Conversation, instructions: &str) -> String {
        let prompt = match before.messages.first() {
            Some(Message::User { text }) => text.as_str(),
            _ => "",
        };
        let mut text = format!("{prompt}\n\nAgent `{}` has worked on this before you:\n", before.agent);
        write_messages(before.messages.get(1..).unwrap_or_default(), &mut text);
        self.write_calls(branch, &before.calls, &mut text);
        // Writing into a string does not fail.
        for told in &before.instructed {
            let _ = write!(text, "\nAgent `{}` was told: {told}\n", before.agent);
        }
        if !instructions.is_empty() {
            let _ = write!(text, "\nInstructions of the person who gives it to you: {instructions}\n");
        }
        text
    }

    /// Writes the outcome of the calls of a turn; of those that agents work on, what these have done so far.
    fn write_calls(&self, branch: u32, calls: &[ToolCall], text: &mut String) {
        for call in calls {
            let tool = &call.tool;
            let _ = match &call.state {
                ToolCallState::Done { result, .. } => write!(text, "\n`{tool}` returned: {result}\n"),
                ToolCallState::Due { .. } | ToolCallState::Lost => write!(
                    text,
                    "\n`{tool}` was under way, and nobody knows whether it took effect: do not simply call it again.\n"
                ),
                ToolCallState::Delegated => write!(
                    text,
                    "\n`{tool}` was under way, and did not return: what was done for it has happened, so do not simply \
                     call it again.\n"
                ),
                ToolCallState::Gated
                | ToolCallState::Held
                | ToolCallState::Asks
                | ToolCallState::Vetting
                | ToolCallState::Vetted => write!(text, "\n`{tool}` was not called.\n"),
            };
            if call.state == ToolCallState::Delegated {
                self.write_work(branch, &call.id, text);
            }
        }
    }

    /// Writes what the agent has done that works on a call of a branch.
    fn write_work(&self, branch: u32, call: &str, text: &mut String) {
        for child in self.state.children_of(branch) {
            let conversation = self.state.branches.get(&child).and_then(|child| child.phase.conversation());
            let is_its =
                |own: &&Conversation| matches!(&own.purpose, Purpose::Task { call: its, .. } if its.as_str() == call);
            let Some(own) = conversation.filter(is_its) else { continue };
            let _ = write!(text, "\nThis is what agent `{}` did for it:\n", own.agent);
            write_messages(&own.messages, text);
            self.write_calls(child, &own.calls, text);
            let _ = write!(text, "\nThat is all that agent `{}` did.\n", own.agent);
        }
    }
}

fn write_messages(messages: &[Message], text: &mut String) {
    for message in messages {
        let _ = match message {
            Message::User { text: said } => write!(text, "\nIt was told: {said}\n"),
            Message::Assistant { text: said, calls } => {
                let calls: Vec<_> = calls.iter().map(|call| format!("{}({})", call.tool, call.arguments)).collect();
                write!(text, "\nIt said: {said}\n{}\n", calls.join("\n"))
            }
            Message::Tool { tool, content, .. } => write!(text, "\n`{tool}` returned: {content}\n"),
        };
    }
}
