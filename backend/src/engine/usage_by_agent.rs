//! Adds up what each agent has used in a step. A conversation counts the usage of its own agent, and keeps beside it
//! that of agents who handed the conversation over; a team keeps the usage of its members in turns that have ended.

use std::collections::BTreeMap;

use super::conversation::{Conversation, Purpose};
use super::state::RunState;
use super::usage::Spent;

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
    /// all turns that the agent had or took over, and all calls of a member by others, including those under way.
    pub(super) fn used_by_agent_of(&self, conversation: &Conversation) -> Spent {
        let agent = conversation.agent.as_str();
        let mut used = conversation.spent_by(agent);
        let team = conversation.works_for().and_then(|branch| self.team_of(branch));
        let Some((team, work)) = team.and_then(|team| Some((team, self.phase(team)?.team()?))) else { return used };
        // An agent that only works for a member has its limits in each call.
        if matches!(conversation.purpose, Purpose::Task { .. }) && !work.has(agent) {
            return used;
        }
        let mut count = |sum: &BTreeMap<String, Spent>| sum.get(agent).into_iter().for_each(|spent| used += spent);
        count(&work.spent);
        count(&work.delegated);
        count(&conversation.delegated);
        let others = self.branches.iter().filter(|(number, _)| self.team_of(**number) == Some(team));
        // The prefix of call ids is unique to a conversation of the team: this skips the one that is asked about.
        let others = others.filter_map(|(_, branch)| branch.phase.conversation());
        for other in others.filter(|other| other.id_prefix != conversation.id_prefix) {
            count(&other.spent());
            count(&other.delegated);
        }
        used
    }
}
