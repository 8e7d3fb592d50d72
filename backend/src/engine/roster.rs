//! Changes of a team by its members: creating specialists, and changing the strategy.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use shared::JsonMap;
use shared::definition::{Agent, AgentGates, Builtin, NodeKind, Team, TeamEmergent, TeamStrategy, ToolKind};
use shared::log::{EventData, SpecialistMade, StrategyChanged};
use shared::run::Step;

use super::builder::Builder;
use super::conversation::{CallingAgent, Conversation, Purpose, Specialist, ToolCall, delegate_tool};
use super::phase::Phase;
use super::team::TeamWork;
use crate::flow::DELEGATE;

/// The longest name of a specialist: the tool by which a lead calls it has a name of 64 characters at most.
const LONGEST_ROLE: usize = 64 - DELEGATE.len();

/// Where a call comes from.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CallOrigin<'a> {
    /// The agent that makes the call; `None` for a tool node.
    pub agent: Option<CallingAgent<'a>>,
    /// The definition of the agent, in the flow or by its team.
    pub definition: Option<&'a Agent>,
    /// The branch of the team that the agent belongs to, if any.
    pub team: Option<u32>,
}

impl<'f> Builder<'f> {
    /// Returns the origin of a conversation's calls.
    pub(super) fn caller<'c>(&self, step: &Step, conversation: &'c Conversation) -> CallOrigin<'c>
    where
        'f: 'c,
    {
        let team = conversation.works_for().and_then(|branch| self.state.team_of(branch));
        let is_member = |work: &TeamWork| work.has(&conversation.agent);
        let team = team.filter(|team| self.state.phase(*team).and_then(Phase::team).is_some_and(is_member));
        let definition = conversation.agent_in(self.flow, &step.node);
        CallOrigin { agent: Some(conversation.calling_agent()), definition, team }
    }

    /// Checks that an edited call that changes a team can still do so. Other calls pass.
    pub(super) fn check_team_change(&self, step: &Step, branch: u32, call: &ToolCall) -> Result<(), String> {
        let tool = self.flow.of(&step.node).tool(&call.tool);
        let Some(ToolKind::Builtin(builtin @ (Builtin::SpawnSpecialist | Builtin::SetStrategy))) =
            tool.as_ref().map(|tool| &tool.kind)
        else {
            return Ok(());
        };
        let Some(conversation) = self.state.phase(branch).and_then(Phase::conversation) else { return Ok(()) };
        let caller = self.caller(step, conversation);
        self.team_arguments(step, caller, *builtin, call.arguments.clone()).map(|_| ())
    }

    /// Returns the complete arguments of a call that changes a team: defaults are filled in, so that a gate shows what
    /// would happen. `Err` says why it cannot happen.
    pub(super) fn team_arguments(
        &self,
        step: &Step,
        caller: CallOrigin<'_>,
        builtin: Builtin,
        arguments: JsonMap,
    ) -> Result<JsonMap, String> {
        let team = self.team_work(caller)?;
        match builtin {
            Builtin::SpawnSpecialist => self.specialist_arguments(step, caller, team, arguments),
            _ => strategy_arguments(team, &arguments),
        }
    }

    fn team_work(&self, caller: CallOrigin<'_>) -> Result<&TeamWork, String> {
        caller.team.and_then(|team| self.state.phase(team)?.team()).ok_or_else(|| "you are not in a team".to_owned())
    }

    fn team_work_mut(&mut self, caller: CallOrigin<'_>) -> Result<&mut TeamWork, String> {
        let team = caller.team.and_then(|team| self.state.branches.get_mut(&team));
        match team.map(|team| &mut team.phase) {
            Some(Phase::Team { team, .. }) => Ok(team),
            _ => Err("you are not in a team".to_owned()),
        }
    }

    fn emergent(&self, step: &Step) -> Option<&TeamEmergent> {
        match &self.flow.node(&step.node)?.kind {
            NodeKind::Team(team) => team.emergent.as_ref().filter(|emergent| emergent.enabled),
            _ => None,
        }
    }

    fn specialist_arguments(
        &self,
        step: &Step,
        caller: CallOrigin<'_>,
        team: &TeamWork,
        mut arguments: JsonMap,
    ) -> Result<JsonMap, String> {
        let flow = &self.flow.of(&step.node).flow;
        let emergent = self.emergent(step).ok_or("this team does not allow specialists")?;
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
        let role = text("role").unwrap_or_default();
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !role.starts_with(|c: char| c.is_ascii_alphabetic()) || role.len() > LONGEST_ROLE || !role.chars().all(good)
        {
            return Err(format!(
                "`role`: `{role}` is not a name: a letter, then up to {} letters, digits, _ and -",
                LONGEST_ROLE - 1
            ));
        }
        if flow.agents.contains_key(&role) || team.specialists.contains_key(&role) || flow.tools.contains_key(&role) {
            return Err(format!(
                "`role`: the name `{role}` is taken; call {}, or choose another",
                delegate_tool(&role)
            ));
        }
        if team.specialists.len() >= emergent.max() as usize {
            return Err(format!("the team already has {} specialists, which is the limit", team.specialists.len()));
        }
        if emergent.require_justification && text("justification").is_none_or(|why| why.trim().is_empty()) {
            return Err("`justification`: say why the team needs it".to_owned());
        }
        let own = caller.definition.ok_or("no agent asks")?;
        let model = text("model").unwrap_or_else(|| own.model.clone());
        if !flow.agents.values().any(|agent| agent.model == model) {
            let models: BTreeSet<_> = flow.agents.values().map(|agent| agent.model.as_str()).collect();
            let models: Vec<_> = models.into_iter().collect();
            return Err(format!("`model`: the flow does not use `{model}`; it uses {}", models.join(", ")));
        }
        let tools = arguments.get("tools").cloned().unwrap_or_else(|| json!([]));
        let foreign = tools.as_array().into_iter().flatten().filter_map(Value::as_str);
        if let Some(foreign) = foreign.into_iter().find(|tool| !own.tools.iter().any(|own| own == tool)) {
            return Err(format!("`tools`: you do not have `{foreign}` yourself"));
        }
        arguments.insert("model".to_owned(), model.into());
        arguments.insert("tools".to_owned(), tools);
        Ok(arguments)
    }

    /// Creates a specialist, which joins the team.
    pub(super) fn spawn(&mut self, step: &Step, caller: CallOrigin<'_>, arguments: &JsonMap) -> Result<Value, String> {
        let arguments = self.team_arguments(step, caller, Builtin::SpawnSpecialist, arguments.clone())?;
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (role, instructions, model) = (text("role"), text("instructions"), text("model"));
        let tools = arguments.get("tools").and_then(Value::as_array).into_iter().flatten();
        let tools = tools.filter_map(Value::as_str).map(str::to_owned).collect();
        let mut agents = self.flow.of(&step.node).flow.agents.values();
        // The settings and limits for a model are those of an agent of the flow that uses it.
        let like = agents.find(|agent| agent.model == model).ok_or("the flow does not use this model")?;
        let agent = Agent {
            instructions: Some(instructions.clone()),
            tools,
            output_schema: None,
            feedback: None,
            gates: AgentGates::default(),
            ..like.clone()
        };
        let specialist =
            Specialist { agent, made_by: caller.agent.map(|agent| agent.gates_of.to_owned()).unwrap_or_default() };
        let by = caller.agent.map(|agent| agent.name.to_owned()).unwrap_or_default();
        let team = self.team_work_mut(caller)?;
        team.specialists.insert(role.clone(), specialist);
        team.members.push(role.clone());
        let is_routed = team.strategy == TeamStrategy::Router;
        let node = step.node.clone();
        self.emit(None, None, EventData::SpecialistMade(SpecialistMade { node, role: role.clone(), by, instructions }));
        // Only a routing lead calls specialists. Otherwise, a specialist speaks when its turn comes.
        Ok(if is_routed { json!({ "joined": role, "call": delegate_tool(&role) }) } else { json!({ "joined": role }) })
    }

    /// Lets a routing lead call the specialists that have joined since its turn began.
    pub(super) fn meet_specialists(&self, conversation: &mut Conversation) {
        let Purpose::Turn { team, as_lead: true, .. } = conversation.purpose else { return };
        if let Some(team) = self.state.phase(team).and_then(Phase::team)
            && !conversation.delegates.is_empty()
            && team.strategy == TeamStrategy::Router
        {
            conversation.delegates = team.delegates();
        }
    }

    /// Changes the strategy of a team, from its next turn on.
    pub(super) fn change_strategy(
        &mut self,
        step: &Step,
        caller: CallOrigin<'_>,
        arguments: &JsonMap,
    ) -> Result<Value, String> {
        let (to, rounds) = {
            let team = self.team_work(caller)?;
            // Other calls of the same turn may have changed it in the meantime.
            strategy_arguments(team, arguments)?;
            (strategy(arguments.get("to"))?, rounds(team, arguments)?)
        };
        let reason = arguments.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned();
        let by = caller.agent.map(|agent| agent.name.to_owned()).unwrap_or_default();
        let team = self.team_work_mut(caller)?;
        let from = std::mem::replace(&mut team.strategy, to);
        team.rounds = rounds;
        team.changed = true;
        team.changes += 1;
        let rounds = (to == TeamStrategy::Debate).then_some(rounds);
        let changed = StrategyChanged { node: step.node.clone(), from, to, rounds, by, reason };
        self.emit(None, None, EventData::StrategyChanged(changed));
        Ok(json!({ "strategy": to, "rounds": rounds }))
    }
}

fn strategy_arguments(team: &TeamWork, arguments: &JsonMap) -> Result<JsonMap, String> {
    let to = strategy(arguments.get("strategy").or(arguments.get("to")))?;
    let rounds = rounds(team, arguments)?;
    if to == team.strategy && (rounds == team.rounds || to != TeamStrategy::Debate) {
        return Err(format!("the team already uses this strategy ({})", to.as_str()));
    }
    if team.changes >= TeamWork::MAX_CHANGES {
        return Err(format!("the strategy was already changed {} times, which is the limit", team.changes));
    }
    let mut whole = JsonMap::new();
    whole.insert("from".to_owned(), json!(team.strategy));
    whole.insert("to".to_owned(), json!(to));
    if to == TeamStrategy::Debate {
        whole.insert("rounds".to_owned(), json!(rounds));
    }
    whole.insert("reason".to_owned(), arguments.get("reason").cloned().unwrap_or_default());
    Ok(whole)
}

fn strategy(named: Option<&Value>) -> Result<TeamStrategy, String> {
    let named = named.cloned().unwrap_or_default();
    serde_json::from_value(named).map_err(|_| "`strategy`: expected sequential, parallel, router or debate".to_owned())
}

fn rounds(team: &TeamWork, arguments: &JsonMap) -> Result<u32, String> {
    let Some(rounds) = arguments.get("rounds") else { return Ok(team.rounds) };
    let rounds = rounds.as_u64().and_then(|rounds| u32::try_from(rounds).ok()).unwrap_or(0);
    let fits = (1..=Team::MAX_ROUNDS).contains(&rounds);
    if fits { Ok(rounds) } else { Err(format!("`rounds`: expected 1 to {}", Team::MAX_ROUNDS)) }
}
