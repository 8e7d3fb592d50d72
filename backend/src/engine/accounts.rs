//! Who has used what in a step. A conversation counts what its own agent uses, and keeps beside it what those have used
//! from whom it was taken over; a team keeps what its members used in turns that are over.

use std::collections::BTreeMap;

use super::conversation::{Conversation, Purpose};
use super::phase::Phase;
use super::spent::Spent;
use super::state::RunState;

impl Conversation {
    /// What was used for it, by agent.
    pub(super) fn spent(&self) -> BTreeMap<String, Spent> {
        let mut spent = self.handed_over.clone();
        *spent.entry(self.agent.clone()).or_default() += &self.spent_itself();
        spent
    }

    /// What an agent has used for it.
    fn spent_by(&self, agent: &str) -> Spent {
        let mut spent = self.handed_over.get(agent).cloned().unwrap_or_default();
        if self.agent == agent {
            spent += &self.spent_itself();
        }
        spent
    }

    fn spent_itself(&self) -> Spent {
        let Self { turn, asks, tokens, cost_usd, .. } = *self;
        Spent { turns: turn, asks, tokens, cost_usd }
    }
}

impl RunState {
    /// What the agent of a conversation has used of what its limits allow it in the step: where it works in a team, in all
    /// turns there that it had or took over, those that are under way included.
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
            // No two turns have calls with the same ids.
            if let Some(other) = other.filter(|other| other.id_prefix != conversation.id_prefix) {
                used += &other.spent_by(agent);
            }
        }
        used
    }
}
