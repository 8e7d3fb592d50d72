//! Checks teams: their members, and what the members may change.

use shared::definition::{Builtin, Flow, Team, TeamStrategy, ToolKind};
use shared::error::pointer;

use super::{Checker, handlers, names};
use crate::flow::agents::teams;
use crate::flow::compiled::DELEGATE;

/// The maximum number of specialists that a flow may allow.
const MAX_SPECIALISTS: u32 = 20;

pub fn check(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    for (id, node) in &flow.nodes {
        if let shared::definition::NodeKind::Team(team) = &node.kind {
            self::team(checker, &(pointer(["nodes", id.as_str()]) + "/team"), team);
        }
    }
    for (name, tool) in &flow.tools {
        let base = pointer(["tools", name]);
        if name.starts_with(DELEGATE) {
            let message = format!("names that begin with `{DELEGATE}` are for the members of teams; choose another");
            checker.invalid_key(&base, message);
        }
        if let ToolKind::Agent(agent) = &tool.kind {
            let known = checker.written("agents", flow.agents.keys().map(String::as_str));
            names::expect(checker, &format!("{base}/agent"), "agent", agent, &known);
            if tool.parameters.is_some() {
                let message = "an agent takes only a `task`; use `description` instead";
                checker.invalid(&format!("{base}/parameters"), message);
            }
        }
        let changes = match tool.kind {
            ToolKind::Builtin(Builtin::SpawnSpecialist) => "makes specialists",
            ToolKind::Builtin(Builtin::SetStrategy) => "changes the strategy",
            _ => continue,
        };
        if checker.nodes_whole && !members_have(flow, name) {
            checker.invalid(&base, format!("this tool {changes} of a team, but no member of a team has it"));
        }
    }
    if checker.whole {
        gates(checker);
    }
}

fn team(checker: &mut Checker<'_>, base: &str, team: &Team) {
    let flow = checker.flow;
    let known = checker.written("agents", flow.agents.keys().map(String::as_str));
    let lead = team.lead.iter().map(|lead| (format!("{base}/lead"), lead));
    let named = team.agents.iter().enumerate().map(|(index, agent)| (format!("{base}/agents/{index}"), agent));
    for (path, agent) in named.chain(lead) {
        names::expect(checker, &path, "agent", agent, &known);
    }
    for (index, agent) in team.agents.iter().enumerate() {
        if team.agents[..index].contains(agent) {
            checker.invalid(&format!("{base}/agents/{index}"), format!("`{agent}` is already a member"));
        }
    }
    if team.agents.len() < 2 {
        checker.invalid(&format!("{base}/agents"), "a team has at least two members; use `agent` for one");
    }
    if team.rounds.is_some_and(|rounds| !(1..=Team::MAX_ROUNDS).contains(&rounds)) {
        checker.invalid(&format!("{base}/rounds"), format!("expected 1 to {} rounds", Team::MAX_ROUNDS));
    }
    let may_change = team.named().any(|agent| has(flow, agent, Builtin::SetStrategy));
    if team.rounds.is_some() && team.strategy != TeamStrategy::Debate && !may_change {
        checker.invalid(&format!("{base}/rounds"), "only a debate has rounds: `strategy: debate`");
    }
    // By default the last member leads, and takes no turn.
    let turns: Vec<&String> = team.agents.iter().filter(|agent| *agent != team.lead()).collect();
    if let ([alone], TeamStrategy::Parallel | TeamStrategy::Debate, false) =
        (&turns[..], team.strategy, team.is_emergent())
    {
        let lead = team.lead();
        let message = format!("only `{alone}` takes turns, since `{lead}` leads: name a `lead` besides the members");
        checker.warn(&format!("{base}/agents"), message);
    }
    let Some(emergent) = &team.emergent else { return };
    if emergent.max.is_some_and(|max| !(1..=MAX_SPECIALISTS).contains(&max)) {
        checker.invalid(&format!("{base}/emergent/max"), format!("expected 1 to {MAX_SPECIALISTS} specialists"));
    }
    if let Some(judge) = &emergent.judge {
        handlers::judge(checker, &format!("{base}/emergent/judge"), judge);
    }
    if emergent.enabled && !team.named().any(|agent| has(flow, agent, Builtin::SpawnSpecialist)) {
        let message = "no member can create a specialist: none has a tool with `builtin: spawn_specialist`";
        checker.warn(&format!("{base}/emergent"), message);
    }
}

/// Checks for gates that can never apply.
fn gates(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    let spawns =
        |team: &Team| team.is_emergent() && team.named().any(|agent| has(flow, agent, Builtin::SpawnSpecialist));
    if flow.gates.before_emergent.is_some() && !teams(flow).any(spawns) {
        let message =
            "this gate can never apply: no team with `emergent.enabled: true` has a member with `spawn_specialist`";
        checker.invalid("/gates/before_emergent", message);
    }
    let changes = |team: &Team| team.named().any(|agent| has(flow, agent, Builtin::SetStrategy));
    if flow.gates.before_strategy_override.is_some() && !teams(flow).any(changes) {
        let message = "this gate can never apply: no team has a member with `set_strategy`";
        checker.invalid("/gates/before_strategy_override", message);
    }
}

/// Whether an agent has a tool with this builtin, under any name.
fn has(flow: &Flow, agent: &str, builtin: Builtin) -> bool {
    let tools = flow.agents.get(agent).into_iter().flat_map(|agent| &agent.tools);
    tools.filter_map(|tool| flow.tools.get(tool)).any(|tool| tool.kind == ToolKind::Builtin(builtin))
}

fn members_have(flow: &Flow, tool: &str) -> bool {
    let has = |agent: &str| flow.agents.get(agent).is_some_and(|agent| agent.tools.iter().any(|own| own == tool));
    teams(flow).flat_map(Team::named).any(has)
}
