//! The progress of a team: the answers of its members, and whose turn is next. It calls nothing itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::definition::{Team, TeamStrategy};

use super::conversation::Specialist;
use super::usage::Spent;

/// The progress of a team in one visit of its node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TeamWork {
    /// The rendered prompt of the team.
    pub prompt: String,
    /// The current strategy.
    pub strategy: TeamStrategy,
    /// The current number of rounds of a debate.
    pub rounds: u32,
    /// The members, in their order; specialists come after those whom the flow names.
    pub members: Vec<String>,
    /// The agent that answers for the team, if the strategy has one that does.
    pub lead: String,
    /// The agents that members have created, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub specialists: BTreeMap<String, Specialist>,
    /// All contributions, in order.
    #[serde(default, rename = "said", skip_serializing_if = "Vec::is_empty")]
    pub contributions: Vec<Contribution>,
    /// The number of contributions from before the current strategy.
    #[serde(default)]
    pub before: usize,
    /// Whether the strategy has changed in a turn that is under way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
    /// The number of turns under way.
    #[serde(default)]
    pub under_way: u32,
    /// The number of changes of strategy so far.
    #[serde(default)]
    pub changes: u32,
    /// The number of turns that have begun.
    #[serde(default)]
    pub turns: u32,
    /// The usage of each agent in the turns of this visit that have ended, for its limits.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub spent: BTreeMap<String, Spent>,
    /// The usage of agents that worked for them in these turns, by agent: of members that a lead called, and of tools.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub delegated: BTreeMap<String, Spent>,
    /// The state keys that members wrote.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub wrote: BTreeSet<String>,
}

/// The result of one turn.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contribution {
    /// The member whose turn it was.
    pub agent: String,
    /// The round, from 1.
    pub round: u32,
    /// Whether it answered for the whole team.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_lead: bool,
    /// The answer; `None` if the member was left out.
    pub text: Option<String>,
    /// The answer as JSON; `None` if the agent has no schema.
    #[serde(serialize_with = "shared::user_data::value")]
    pub value: Option<Value>,
    /// The tokens of the turn.
    #[serde(default)]
    pub tokens: u64,
}

/// Whose turn comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NextTurn {
    /// The turns of these members, at the same time.
    Members {
        /// The names of the members; just one in a sequence or a debate.
        agents: Vec<String>,
        /// The round, from 1.
        round: u32,
    },
    /// The turn of the lead, which answers for the team.
    Lead,
    /// Nobody's: the last answer is that of the team.
    Over,
    /// Nobody's: every member was left out.
    NobodyLeft,
}

impl TeamWork {
    /// The most changes of strategy in one visit.
    pub const MAX_CHANGES: u32 = 5;

    /// Creates the progress of a team before its first turn.
    pub fn of(team: &Team, prompt: String) -> Self {
        Self {
            prompt,
            strategy: team.strategy,
            rounds: team.rounds.unwrap_or(Team::DEFAULT_ROUNDS),
            members: team.agents.clone(),
            lead: team.lead().to_owned(),
            ..Self::default()
        }
    }

    /// Whether an agent belongs to the team: as a member, as its lead or as a specialist. An agent that only works for a
    /// member does not.
    pub(super) fn has(&self, agent: &str) -> bool {
        self.lead == agent || self.members.iter().any(|member| member == agent)
    }

    /// Returns the members that take turns: in a sequence all of them, otherwise all except the lead.
    pub fn speakers(&self) -> impl Iterator<Item = &String> {
        let all = self.strategy == TeamStrategy::Sequential;
        self.members.iter().filter(move |member| all || **member != self.lead)
    }

    /// Returns the members that the lead calls as tools: if it routes, all others, otherwise none.
    pub fn delegates(&self) -> Vec<String> {
        if self.strategy == TeamStrategy::Router { self.speakers().cloned().collect() } else { Vec::new() }
    }

    /// Returns whose turn comes next, when none is under way.
    pub(super) fn next_turn(&self) -> NextTurn {
        let contributions = &self.contributions[self.before.min(self.contributions.len())..];
        let has_had = |agent: &&String, round: u32| {
            contributions.iter().any(|turn| !turn.as_lead && turn.agent == **agent && turn.round == round)
        };
        let waiting = |round: u32| self.speakers().filter(move |agent| !has_had(agent, round)).cloned();
        let one = |round: u32| waiting(round).next().map(|agent| NextTurn::Members { agents: vec![agent], round });
        let next = match self.strategy {
            TeamStrategy::Sequential => return one(1).unwrap_or(NextTurn::Over),
            TeamStrategy::Parallel => {
                let agents: Vec<_> = waiting(1).collect();
                (!agents.is_empty()).then_some(NextTurn::Members { agents, round: 1 })
            }
            TeamStrategy::Debate => (1..=self.rounds).find_map(one),
            TeamStrategy::Router => None,
        };
        let has_led = contributions.iter().any(|turn| turn.as_lead);
        let is_silent =
            self.strategy != TeamStrategy::Router && self.contributions.iter().all(|turn| turn.text.is_none());
        next.unwrap_or(match (has_led, is_silent) {
            (true, _) => NextTurn::Over,
            (false, true) => NextTurn::NobodyLeft,
            (false, false) => NextTurn::Lead,
        })
    }

    /// Returns the prompt of the next turn: that of the team, with the contributions that are shown in it.
    pub(super) fn prompt_for_next(&self, as_lead: bool) -> String {
        let mut text = self.prompt.clone();
        // Writing into a string does not fail.
        match self.strategy {
            TeamStrategy::Sequential => {
                if let Some(last) = self.contributions.iter().rev().find(|turn| turn.text.is_some()) {
                    let _ = write!(text, "\n\nThe answer of `{}` before you:\n\n{}", last.agent, last.words());
                }
            }
            // Members that answer at the same time see only what was said before their strategy.
            TeamStrategy::Parallel if !as_lead => {
                self.write_contributions(&self.contributions[..self.before], &mut text);
            }
            TeamStrategy::Parallel | TeamStrategy::Router | TeamStrategy::Debate => {
                self.write_contributions(&self.contributions, &mut text);
            }
        }
        text
    }

    fn write_contributions(&self, contributions: &[Contribution], text: &mut String) {
        // In the order of the members, not in that of their answers.
        let mut contributions: Vec<_> = contributions.iter().collect();
        if self.strategy == TeamStrategy::Parallel {
            let place = |turn: &&Contribution| self.members.iter().position(|member| *member == turn.agent);
            contributions.sort_by_key(|turn| (turn.as_lead, place(turn)));
        }
        if !contributions.is_empty() {
            text.push_str("\n\nWhat was said so far:");
        }
        for turn in contributions {
            let place =
                if self.strategy == TeamStrategy::Debate { format!(", round {}", turn.round) } else { String::new() };
            let _ = write!(text, "\n\n[{}{place}]: {}", turn.agent, turn.words());
        }
    }

    /// Returns the answer of the team: its last contribution that has a text.
    pub(super) fn answer(&self) -> Option<&Contribution> {
        self.contributions.iter().rev().find(|turn| turn.text.is_some())
    }

    /// Summarises turns and tokens of the members, and of agents that they called, for the list of steps.
    pub(super) fn note(&self) -> String {
        let mut spent: BTreeMap<&str, (u32, u64)> = BTreeMap::new();
        let turns = self.contributions.iter().map(|turn| (&turn.agent, 1, turn.tokens));
        let tasks = self.delegated.iter().map(|(agent, spent)| (agent, spent.tasks, spent.tokens));
        for (agent, more, used) in turns.chain(tasks) {
            let (turns, tokens) = spent.entry(agent).or_default();
            *turns = turns.saturating_add(more);
            *tokens = tokens.saturating_add(used);
        }
        let members: Vec<_> =
            spent.iter().map(|(agent, (turns, tokens))| format!("{agent} ×{turns} ({tokens} tokens)")).collect();
        let made: Vec<_> = self.specialists.keys().map(String::as_str).collect();
        let made = if made.is_empty() { String::new() } else { format!("; specialists: {}", made.join(", ")) };
        let strategy = self.strategy.as_str();
        let changed = if self.changes > 0 { format!("; changed to {strategy}") } else { String::new() };
        format!("{}{made}{changed}", members.join(", "))
    }
}

impl Contribution {
    fn words(&self) -> &str {
        self.text.as_deref().unwrap_or("(was left out: a person did not let it answer)")
    }
}
