//! Adds up what each agent has used in a step. A conversation counts the usage of its own agent, and keeps beside it
//! that of agents who handed the conversation over; a team keeps the usage of its members in turns that have ended.

use std::collections::BTreeMap;

use super::conversation::{Conversation, Purpose};
use super::phase::Phase;
use super::spent::Spent;
use super::state::RunState;

impl Conversation {
    /// Returns the usage in this conversation, by agent.
    pub(super) fn spent(&self) -> BTreeMap<String, Spent> {
        let mut spent = self.handed_over.clone();
        *spent.entry(self.agent.clone()).or_default() += &self.spent_itself();
        spent
    }

    /// Returns the usage of one agent in this conversation.
    fn spent_by(&self, agent: &str) -> Spent {
        let mut spent = self.handed_over.get(agent).cloned().unwrap_or_default();
        if self.agent == agent {
            spent += &self.spent_itself();
        }
        spent
    }

    fn spent_itself(&self) -> Spent {
        let Self { turn, asks, tokens, cost_usd, .. } = *self;
        Spent { turns: turn, asks, tokens, cost_usd, tasks: 0 }
    }

    /// Adds the usage of a conversation that has ended, in which an agent worked for this one.
    pub(super) fn add_delegated(&mut self, ended: &Self) {
        let mut spent = ended.spent();
        spent.entry(ended.agent.clone()).or_default().tasks += 1;
        add_all(&mut self.delegated, spent);
        add_all(&mut self.delegated, ended.delegated.clone());
    }
}

/// Adds usage by agent.
pub(super) fn add_all(sum: &mut BTreeMap<String, Spent>, more: BTreeMap<String, Spent>) {
    for (agent, spent) in more {
        *sum.entry(agent).or_default() += &spent;
    }
}

impl RunState {
    /// Returns the usage of a conversation's agent that counts towards its limits in the step. In a team, this covers
    /// all turns that the agent had or took over, including those under way.
    pub(super) fn used_by_agent_of(&self, conversation: &Conversation) -> Spent {
        let agent = conversation.agent.as_str();
        let mut used = conversation.spent_by(agent);
        let Purpose::Turn { team, .. } = conversation.purpose else { return used };
        if let Some(Phase::Team { team: work, .. }) = self.branches.get(&team).map(|branch| &branch.phase)
            && let Some(before) = work.spent.get(agent)
        {
            used += before;
        }
        for turn in self.children_of(team) {
            let other = self.branches.get(&turn).and_then(|branch| branch.phase.conversation());
            // The prefix of call ids is unique to a turn: this skips the conversation itself.
            if let Some(other) = other.filter(|other| other.id_prefix != conversation.id_prefix) {
                used += &other.spent_by(agent);
            }
        }
        used
    }
}
