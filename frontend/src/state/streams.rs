//! The streamed text of running agents. It is not committed: gaps are shown, and committed text replaces it.

use std::collections::HashMap;

use shared::protocol::ServerMessage;
use shared::run::{Step, StepStatus};

/// The text of one visit, as far as it was received.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamText {
    /// The number of the attempt; a later attempt starts over.
    pub attempt: u32,
    /// The offset of `text` in the whole answer, in bytes; above zero if the beginning was missed.
    pub start: u64,
    /// The text from there on, without gaps.
    pub text: String,
    /// The number of its changes, so that a change is found without comparing the text.
    pub changes: u64,
}

/// Streamed text by node and visit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Streams(HashMap<(String, u32), StreamText>);

impl Streams {
    /// Applies a message of the live socket.
    pub fn apply(&mut self, message: &ServerMessage) {
        let ServerMessage::Stream { node, visit, attempt, offset, text, .. } = message else { return };
        let known = self.0.entry((node.to_string(), *visit)).or_default();
        if *attempt < known.attempt {
            return;
        }
        let end = known.start + known.text.len() as u64;
        if *attempt > known.attempt || *offset > end || *offset < known.start {
            *known = StreamText { attempt: *attempt, start: *offset, text: String::new(), changes: known.changes };
        }
        known.changes += 1;
        // A repeated part replaces the text from its offset on.
        let keep = usize::try_from(*offset - known.start).unwrap_or(usize::MAX);
        if known.text.is_char_boundary(keep) {
            known.text.truncate(keep);
            known.text.push_str(text);
        }
    }

    /// Drops the text of steps that no longer run.
    pub fn keep_running(&mut self, steps: &[Step]) {
        self.0.retain(|(node, visit), _| {
            let step = steps.iter().find(|step| step.node.as_str() == node && step.visit == *visit);
            step.is_none_or(|step| matches!(step.status, StepStatus::Running | StepStatus::Retrying))
        });
    }

    /// The text of one visit; `None` if there is none.
    pub fn get(&self, node: &str, visit: u32) -> Option<&StreamText> {
        self.0.get(&(node.to_owned(), visit)).filter(|stream| !stream.text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(attempt: u32, offset: u64, text: &str) -> ServerMessage {
        let message = serde_json::json!({
            "type": "stream", "run": "019341f0-0000-7000-8000-000000000001", "node": "draft", "visit": 1,
            "attempt": attempt, "offset": offset, "text": text
        });
        serde_json::from_value(message).expect("a stream message")
    }

    #[test]
    fn a_new_try_begins_anew_and_an_old_one_is_ignored() {
        let mut streams = Streams::default();
        for message in [said(1, 0, "The "), said(1, 4, "sea"), said(2, 0, "An "), said(1, 7, "!"), said(2, 3, "ocean")]
        {
            streams.apply(&message);
        }
        assert_eq!(streams.get("draft", 1).map(|stream| stream.text.as_str()), Some("An ocean"));
    }

    #[test]
    fn a_gap_is_known() {
        let mut streams = Streams::default();
        streams.apply(&said(1, 0, "The "));
        streams.apply(&said(1, 9, "blue"));
        let stream = streams.get("draft", 1).expect("it was heard");
        assert_eq!((stream.start, stream.text.as_str()), (9, "blue"));
    }
}
