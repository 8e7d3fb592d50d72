//! The streamed text of running agents. It is not committed: gaps are shown, and committed text replaces it.

use std::collections::HashMap;

use shared::id::TaskId;
use shared::protocol::ServerMessage;
use shared::run::{Step, StepStatus};

/// The text of one call of a model, as far as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamText {
    /// The task of the call.
    task: TaskId,
    pub agent: String,
    /// The number of the attempt; a later attempt starts over.
    attempt: u32,
    /// The offset of `text` in the whole answer, in bytes; above zero if the beginning was missed.
    pub start: u64,
    /// The text from there on, without gaps.
    pub text: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct VisitTexts {
    /// The newest text of each agent, or several if it is called several times at once.
    texts: Vec<StreamText>,
    /// The number of their changes, so that a change is found without comparing texts.
    changes: u64,
}

/// Streamed text by node and visit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Streams(HashMap<(String, u32), VisitTexts>);

impl Streams {
    /// Applies a message of the live socket.
    pub fn apply(&mut self, message: &ServerMessage) {
        let ServerMessage::Stream { node, visit, agent, task, attempt, offset, text, .. } = message else { return };
        let VisitTexts { texts, changes } = self.0.entry((node.to_string(), *visit)).or_default();
        let at = texts.iter().position(|known| known.task == *task).unwrap_or_else(|| {
            if *offset == 0 {
                // The agent begins its next turn.
                texts.retain(|known| known.agent != *agent);
            }
            let (agent, text) = (agent.clone(), String::new());
            texts.push(StreamText { task: *task, agent, attempt: *attempt, start: *offset, text });
            texts.len() - 1
        });
        let known = &mut texts[at];
        if *attempt < known.attempt {
            return;
        }
        let end = known.start + known.text.len() as u64;
        if *attempt > known.attempt || *offset > end || *offset < known.start {
            (known.attempt, known.start) = (*attempt, *offset);
            known.text.clear();
        }
        *changes += 1;
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

    /// The texts of one visit that are not empty, in the order in which their calls began.
    pub fn get(&self, node: &str, visit: u32) -> Vec<&StreamText> {
        let texts = self.0.get(&(node.to_owned(), visit)).map(|own| own.texts.as_slice()).unwrap_or_default();
        texts.iter().filter(|stream| !stream.text.is_empty()).collect()
    }

    /// The number of changes of a visit's texts so far.
    pub fn changes(&self, node: &str, visit: u32) -> u64 {
        self.0.get(&(node.to_owned(), visit)).map_or(0, |own| own.changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said_by(agent: &str, task: u32, attempt: u32, offset: u64, text: &str) -> ServerMessage {
        let message = serde_json::json!({
            "type": "stream", "run": "019341f0-0000-7000-8000-000000000001", "node": "draft", "visit": 1,
            "agent": agent, "task": format!("019341f0-0000-7000-8000-{task:012}"), "attempt": attempt,
            "offset": offset, "text": text
        });
        serde_json::from_value(message).expect("a stream message")
    }

    fn said(attempt: u32, offset: u64, text: &str) -> ServerMessage {
        said_by("writer", 1, attempt, offset, text)
    }

    /// Returns the texts after these messages, with their agents.
    fn texts(messages: &[ServerMessage]) -> Vec<(String, String)> {
        let mut streams = Streams::default();
        for message in messages {
            streams.apply(message);
        }
        let text = |stream: &StreamText| (stream.agent.clone(), stream.text.clone());
        streams.get("draft", 1).into_iter().map(text).collect()
    }

    #[test]
    fn a_new_try_begins_anew_and_an_old_one_is_ignored() {
        let said =
            texts(&[said(1, 0, "The "), said(1, 4, "sea"), said(2, 0, "An "), said(1, 7, "!"), said(2, 3, "ocean")]);
        assert_eq!(said, [("writer".to_owned(), "An ocean".to_owned())]);
    }

    #[test]
    fn a_gap_is_known() {
        let mut streams = Streams::default();
        streams.apply(&said(1, 0, "The "));
        streams.apply(&said(1, 9, "blue"));
        let stream = streams.get("draft", 1)[0];
        assert_eq!((stream.start, stream.text.as_str()), (9, "blue"));
    }

    #[test]
    fn agents_that_write_at_the_same_time_have_a_text_each() {
        let said = texts(&[
            said_by("one", 1, 1, 0, "The "),
            said_by("two", 2, 1, 0, "An "),
            said_by("one", 1, 1, 4, "sea"),
            said_by("two", 2, 1, 3, "ocean"),
        ]);
        let pair = |agent: &str, text: &str| (agent.to_owned(), text.to_owned());
        assert_eq!(said, [pair("one", "The sea"), pair("two", "An ocean")]);
    }

    #[test]
    fn the_next_turn_of_an_agent_begins_anew_at_its_first_attempt() {
        let said = texts(&[
            said_by("one", 1, 2, 0, "The sea"),
            said_by("one", 2, 1, 0, "An "),
            said_by("one", 2, 1, 3, "ocean"),
        ]);
        assert_eq!(said, [("one".to_owned(), "An ocean".to_owned())]);
    }
}
