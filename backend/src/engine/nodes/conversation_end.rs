//! The end of agents' conversations: their step completes or fails, or the agent's caller gets the outcome.

use serde_json::Value;
use shared::JsonMap;
use shared::error::FlowError;
use shared::id::NodeId;
use shared::run::Step;

use crate::engine::builder::Builder;
use crate::engine::conversation::{Conversation, Purpose};
use crate::engine::next::{QuestionAnswer, Reply, TurnEnd, TurnEnded};
use crate::engine::phase::Phase;
use crate::engine::question::Subject;
use crate::engine::ruling::Findings;
use crate::engine::scope;

impl Builder<'_> {
    /// Reports the result of a call to the branch that made it.
    pub(super) fn reply_to(&mut self, branch: u32, call: &str, reply: Reply) {
        let answer = QuestionAnswer::Reply(reply, Findings::default());
        self.answer(Subject::Ask { branch, call: call.to_owned(), paused: false }, answer);
    }

    /// Ends a conversation with an answer: completes the step, or passes the answer on to whoever the agent worked for.
    pub(super) fn made(
        &mut self,
        branch: u32,
        step: Step,
        conversation: &Conversation,
        text: String,
        value: Option<Value>,
    ) {
        match &conversation.purpose {
            Purpose::Answer | Purpose::Choice(_) => {
                let writes = self.answer_writes(&step, &conversation.wrote, text, value);
                self.finish_step(branch, step, writes);
            }
            Purpose::Turn { .. } => self.end_turn(conversation, TurnEnd::Answered { text, value }),
            Purpose::Task { of, call } => {
                self.pass_on(*of, conversation);
                self.reply_to(*of, call, Reply::Returns(value.unwrap_or_else(|| text.into())));
            }
        }
    }

    /// Ends a conversation without an answer: fails the step, or tells whoever the agent worked for.
    pub(in crate::engine) fn fail_conversation(
        &mut self,
        branch: u32,
        step: Step,
        conversation: &Conversation,
        error: FlowError,
    ) {
        match &conversation.purpose {
            Purpose::Answer | Purpose::Choice(_) => self.fail_step(branch, step, error),
            Purpose::Turn { .. } => self.end_turn(conversation, TurnEnd::Failed(error)),
            Purpose::Task { of, call } => {
                self.pass_on(*of, conversation);
                self.reply_to(*of, call, Reply::Fails(error.code, error.message));
            }
        }
    }

    /// Ends a conversation that people or a guardrail did not let begin: fails the step, or tells the team, which may
    /// leave the member out.
    pub(super) fn refuse_conversation(
        &mut self,
        branch: u32,
        step: Step,
        conversation: &Conversation,
        error: FlowError,
    ) {
        match &conversation.purpose {
            Purpose::Turn { .. } => self.end_turn(conversation, TurnEnd::Refused(error)),
            _ => self.fail_conversation(branch, step, conversation, error),
        }
    }

    fn end_turn(&mut self, conversation: &Conversation, end: TurnEnd) {
        let Purpose::Turn { team, round, as_lead, member } = &conversation.purpose else { return };
        let (team, round, as_lead) = (*team, *round, *as_lead);
        let agent = member.as_ref().unwrap_or(&conversation.agent).clone();
        let (spent, delegated) = (conversation.spent(), conversation.delegated.clone());
        let ended = TurnEnded { agent, round, as_lead, spent, delegated, wrote: conversation.wrote.clone(), end };
        self.answer(Subject::Agent { branch: team }, QuestionAnswer::Turn(Box::new(ended)));
    }

    /// Adds the keys that an agent has written to those of the branch that it worked for, and what it has used.
    fn pass_on(&mut self, of: u32, ended: &Conversation) {
        let parent = self.state.branches.get_mut(&of).map(|branch| &mut branch.phase);
        let wrote = match parent {
            Some(Phase::Agent { conversation, .. }) => {
                conversation.add_delegated(ended);
                &mut conversation.wrote
            }
            Some(Phase::Tool { wrote, .. }) => wrote,
            _ => return,
        };
        wrote.extend(ended.wrote.iter().cloned());
    }

    /// Returns the writes of an agent's step: the keys that were written during it, and its answer. Remembers the
    /// answer if a person may correct it.
    pub(super) fn answer_writes<'k>(
        &mut self,
        step: &Step,
        wrote: impl IntoIterator<Item = &'k String>,
        text: String,
        value: Option<Value>,
    ) -> JsonMap {
        if self.is_correctable(&step.node) {
            self.state.answers.insert(step.node.clone(), text.clone());
        }
        let mut writes = self.written_meanwhile(&step.node, wrote);
        writes.extend(self.answer_keys(&step.node, text, value));
        writes
    }

    /// Returns the keys that were written during a step, with their current values.
    pub(super) fn written_meanwhile<'k>(&self, node: &NodeId, wrote: impl IntoIterator<Item = &'k String>) -> JsonMap {
        let keys = self.state.keys_of(node);
        wrote.into_iter().filter_map(|key| Some((key.clone(), keys.get(key)?.clone()))).collect()
    }

    /// Returns the writes of an answer: with an `output_schema`, each of its keys that the node may write, or the whole
    /// value under the node's result key if there is none; otherwise the text under the result key.
    pub(super) fn answer_keys(&self, id: &NodeId, text: String, value: Option<Value>) -> JsonMap {
        let Some(node) = self.flow.node(id) else { return JsonMap::new() };
        let allowed = |key: &str| scope::may_write(self.flow, id, node, key);
        let whole = |value| scope::result_key(self.flow, id, node).map(|key| (key, value)).into_iter().collect();
        match value {
            None => whole(Value::String(text)),
            Some(Value::Object(object)) if object.keys().any(|key| allowed(key)) => {
                object.into_iter().filter(|(key, _)| allowed(key)).collect()
            }
            Some(value) => whole(value),
        }
    }

    /// Returns the answer of an agent that would leave these values in the keys of its node: a JSON object of them, or
    /// the value itself if it is the only one and no property of the agent's `output_schema`. `None` if there is none.
    pub(super) fn answer_of(&self, id: &NodeId, writes: &JsonMap) -> Option<String> {
        let node = self.flow.node(id)?;
        let keys = self.state.keys_of(id);
        let value = |key: String| {
            let value = writes.get(&key).or_else(|| keys.get(&key))?.clone();
            Some((key, value))
        };
        let values: JsonMap = scope::write_keys(self.flow, id, node).into_iter().filter_map(value).collect();
        let schema = scope::answer_schema(self.flow, id, node);
        let is_property = |key: &String| schema.is_some_and(|schema| scope::has_property(schema, key));
        if values.len() > 1 || values.keys().any(is_property) {
            return Some(Value::Object(values).to_string());
        }
        values.into_iter().next().map(|(_, value)| match value {
            Value::String(text) => text,
            value => value.to_string(),
        })
    }

    /// Whether a person may correct what a node made.
    pub(super) fn is_correctable(&self, id: &NodeId) -> bool {
        let flow = self.flow.of(id);
        flow.flow.humans().any(|(human, _)| flow.source_of(human).is_some_and(|source| &*source == id.own()))
    }
}
