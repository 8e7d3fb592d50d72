//! The progress of a team: the answers of its members, and whose turn is next. It calls nothing itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::definition::{Team, TeamStrategy};

use super::conversation::Specialist;
use super::spent::Spent;

/// A team in one visit of its node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TeamWork {
    /// What they are asked, as rendered.
    pub prompt: String,
    /// How they work now.
    pub strategy: TeamStrategy,
    /// How many rounds a debate has now.
    pub rounds: u32,
    /// The members, in their order; specialists come after those whom the flow names.
    pub members: Vec<String>,
    /// Who answers for all, where the strategy has somebody who does.
    pub lead: String,
    /// The agents that members have made.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub specialists: BTreeMap<String, Specialist>,
    /// All that was said, in order.
    #[serde(default, rename = "said", skip_serializing_if = "Vec::is_empty")]
    pub contributions: Vec<Contribution>,
    /// How much of it was said before the strategy that counts now.
    #[serde(default)]
    pub before: usize,
    /// Whether the strategy has changed in a turn that is under way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
    /// How many turns are under way.
    #[serde(default)]
    pub under_way: u32,
    /// How often its strategy was changed.
    #[serde(default)]
    pub changes: u32,
    /// How many turns have begun.
    #[serde(default)]
    pub turns: u32,
    /// What each agent has used in the turns of this visit that are over, for its limits.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub spent: BTreeMap<String, Spent>,
    /// The state keys that members wrote.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub wrote: BTreeSet<String>,
}

/// What came of one turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contribution {
    /// Whose turn it was.
    pub agent: String,
    /// The round, from 1.
    pub round: u32,
    /// Whether it answered for all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_lead: bool,
    /// What it said; none where it was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The same as JSON, where the agent answers in JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Tokens of the turn.
    #[serde(default)]
    pub tokens: u64,
}

/// Whose turn is next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NextTurn {
    /// These members', at the same time.
    Members {
        /// The names of the members; just one in a sequence or a debate.
        agents: Vec<String>,
        /// The round, from 1.
        round: u32,
    },
    /// The lead's, which answers for all.
    Lead,
    /// Nobody's: the last answer is the team's.
    Over,
    /// Nobody's, and nobody has said anything.
    NobodyLeft,
}

impl TeamWork {
    /// The most changes of strategy in one visit.
    pub const MAX_CHANGES: u32 = 5;

    /// Before the first turn.
    pub fn of(team: &Team, prompt: String) -> Self {
        Self {
            prompt,
            strategy: team.strategy,
            rounds: team.rounds.unwrap_or(Team::DEFAULT_ROUNDS),
            members: team.agents.clone(),
            lead: team.lead().to_owned(),
            specialists: BTreeMap::new(),
            contributions: Vec::new(),
            before: 0,
            changed: false,
            under_way: 0,
            changes: 0,
            turns: 0,
            spent: BTreeMap::new(),
            wrote: BTreeSet::new(),
        }
    }

    /// Those who take turns: all, where nobody answers for them.
    pub fn speakers(&self) -> impl Iterator<Item = &String> {
        let all = self.strategy == TeamStrategy::Sequential;
        self.members.iter().filter(move |member| all || **member != self.lead)
    }

    /// Whom its lead calls as tools: all others, where the lead routes; else nobody.
    pub fn delegates(&self) -> Vec<String> {
        if self.strategy == TeamStrategy::Router { self.speakers().cloned().collect() } else { Vec::new() }
    }

    /// Whose turn is next, where none is under way.
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

    /// What whoever is next is told: what all are asked, and what was said that they are to hear.
    pub(super) fn prompt_for_next(&self, as_lead: bool) -> String {
        let mut text = self.prompt.clone();
        // Writing into a string does not fail.
        match self.strategy {
            TeamStrategy::Sequential => {
                if let Some(last) = self.contributions.iter().rev().find(|turn| turn.text.is_some()) {
                    let _ = write!(text, "\n\nThe answer of `{}` before you:\n\n{}", last.agent, last.words());
                }
            }
            // Those who answer at the same time hear only what was said before that.
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
        // In the order of the members, whoever was quicker.
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

    /// The answer of the team.
    pub(super) fn answer(&self) -> Option<&Contribution> {
        self.contributions.iter().rev().find(|turn| turn.text.is_some())
    }

    /// What they did, in a few words.
    pub(super) fn note(&self) -> String {
        let mut spent: BTreeMap<&str, (u32, u64)> = BTreeMap::new();
        for turn in &self.contributions {
            let (turns, tokens) = spent.entry(&turn.agent).or_default();
            *turns += 1;
            *tokens += turn.tokens;
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
