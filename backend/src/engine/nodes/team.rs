//! Teams: several agents that work on one step. Each turn of a member is a separate conversation, in a branch beside
//! the team's, so that gates, calls and questions work as for any agent; the team's branch waits, and determines the
//! next turn ([`crate::engine::team`]).

use shared::definition::{Team, TeamStrategy};
use shared::error::{FlowCode, FlowError};
use shared::run::Step;

use crate::engine::builder::Builder;
use crate::engine::conversation::{Conversation, Message, Purpose};
use crate::engine::next::{TurnEnd, TurnEnded};
use crate::engine::phase::Phase;
use crate::engine::team::{Contribution, NextTurn, TeamWork};
use crate::engine::usage_by_agent::add_all;

impl Builder<'_> {
    /// Enters a team node. With a correction, the prompt contains the last answer and the correction. `Err` if the step
    /// fails.
    pub(in crate::engine) fn enter_team(
        &mut self,
        branch: u32,
        step: Step,
        team: &Team,
        correction: Option<&str>,
    ) -> Result<(), FlowError> {
        let mut prompt = self.prompt(&step, team.prompt.as_deref())?;
        if let Some(correction) = correction {
            let last = self.state.answers.get(&step.node).map_or("", String::as_str);
            prompt = format!("{prompt}\n\nThe last answer was:\n\n{last}\n\nIt is to be corrected: {correction}");
        }
        self.go_on_with_team(branch, step, Box::new(TeamWork::of(team, prompt)));
        Ok(())
    }

    /// Begins the next turns of a team in which none is under way.
    fn go_on_with_team(&mut self, branch: u32, step: Step, mut team: Box<TeamWork>) {
        let (agents, round, as_lead) = match team.next_turn() {
            NextTurn::Members { agents, round } => (agents, round, false),
            NextTurn::Lead => (vec![team.lead.clone()], 1, true),
            NextTurn::Over => return self.team_done(branch, step, &team),
            NextTurn::NobodyLeft => {
                let why = "every member of the team was left out";
                return self.fail(branch, step, FlowCode::FlowHumanRejected, why);
            }
        };
        let mut begun = Vec::new();
        for agent in agents {
            team.turns += 1;
            team.under_way += 1;
            let messages = vec![Message::User { text: team.prompt_for_next(as_lead) }];
            match self.conversation_of(&step, &agent, &team, messages) {
                Ok(conversation) => {
                    let purpose = Purpose::Turn { team: branch, round, as_lead, member: None };
                    let id_prefix = format!("{agent}.{}-", team.turns);
                    let delegates = if as_lead { team.delegates() } else { Vec::new() };
                    begun.push(Conversation { delegates, id_prefix, purpose, ..conversation });
                }
                Err(error) => return self.fail_step(branch, step, error),
            }
        }
        self.settle(branch, Phase::Team { step: step.clone(), team });
        for conversation in begun {
            let number = self.next_number();
            self.begin(number, step.clone(), conversation);
        }
    }

    /// Applies the end of a member's turn. Once no turn is under way, the next ones begin.
    pub(in crate::engine) fn turn_ended(&mut self, branch: u32, step: Step, mut team: Box<TeamWork>, ended: TurnEnded) {
        let TurnEnded { agent, round, as_lead, spent, delegated, wrote, end } = ended;
        let tokens = spent.values().fold(0, |tokens: u64, spent| tokens.saturating_add(spent.tokens));
        add_all(&mut team.spent, spent);
        add_all(&mut team.delegated, delegated);
        team.wrote.extend(wrote);
        let left_out =
            |team: &TeamWork| !as_lead && matches!(team.strategy, TeamStrategy::Parallel | TeamStrategy::Debate);
        let (text, value) = match end {
            TurnEnd::Answered { text, value } => (Some(text), value),
            // What a guardrail blocks fails the step, as it does without a team.
            TurnEnd::Refused(error) if left_out(&team) && error.code == FlowCode::FlowHumanRejected => (None, None),
            TurnEnd::Refused(error) | TurnEnd::Failed(error) => {
                self.settle(branch, Phase::Team { step, team });
                self.end_work(branch, None, "the team has failed");
                if let Some(Phase::Team { step, .. }) = self.state.branches.remove(&branch).map(|own| own.phase) {
                    self.fail_step(branch, step, error);
                }
                return;
            }
        };
        team.contributions.push(Contribution { agent, round, as_lead, text, value, tokens });
        team.under_way = team.under_way.saturating_sub(1);
        if team.under_way > 0 {
            return self.settle(branch, Phase::Team { step, team });
        }
        if std::mem::take(&mut team.changed) {
            team.before = team.contributions.len();
        }
        self.go_on_with_team(branch, step, team);
    }

    fn team_done(&mut self, branch: u32, mut step: Step, team: &TeamWork) {
        step.note = Some(team.note());
        let answer = team.answer().cloned();
        let (text, value) = answer.map_or((String::new(), None), |said| (said.text.unwrap_or_default(), said.value));
        let writes = self.answer_writes(&step, &team.wrote, text, value);
        self.finish_step(branch, step, writes);
    }
}
