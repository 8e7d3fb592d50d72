//! Teams, agents as tools, and their gates that could not work as written.

use super::found;
use super::handled::place;

/// Checks that a source is refused for exactly these reasons, each at the last place of a piece of it.
fn refused(source: &str, wanted: &[(&str, &str)]) {
    let found: Vec<_> = found(source).into_iter().filter(|line| !line.starts_with('?')).collect();
    let fits = |(line, (piece, words)): (&String, &(&str, &str))| {
        line.starts_with(&place(source, piece)) && line.contains(words)
    };
    assert!(found.len() == wanted.len() && found.iter().zip(wanted).all(fits), "{source}\n{found:#?}\n{wanted:#?}");
}

#[test]
fn a_team_that_could_not_work_is_found_when_the_flow_is_saved() {
    let team = |team: &str| {
        format!(
            "id: f\nagents:\n  a: {{ model: demo/a, tools: [grow] }}\n  b: {{ model: demo/b }}\ntools: {{ grow: {{ builtin: spawn_specialist }} }}\n\
             nodes:\n  t: {{ team: {{ {team} }} }}\n"
        )
    };
    refused(&team("agents: [a, b], lead: a, strategy: debate, rounds: 20, emergent: { enabled: true, max: 20 }"), &[]);
    refused(&team("agents: [a, bb]"), &[("bb]", "there is no agent `bb`")]);
    refused(&team("agents: [a, b], lead: cc"), &[("cc", "there is no agent `cc`")]);
    refused(&team("agents: [a, b, a]"), &[("a] ", "`a` is already a member")]);
    refused(&team("agents: [a], lead: b"), &[("agents: [a]", "at least two members")]);
    refused(&team("agents: [a, b], strategy: debate, rounds: 21"), &[("21", "expected 1 to 20 rounds")]);
    refused(&team("agents: [a, b], rounds: 2"), &[("2 }", "only a debate has rounds")]);
    let alone = found(&team("agents: [a, b], strategy: debate"));
    assert!(
        matches!(&alone[..], [one] if one.starts_with('?') && one.contains("only `a` takes turns, since `b` leads"))
    );
    let judge = "agents: [a, b], emergent: { enabled: true, max: 0, judge: { model: x, criteria: ok } }";
    refused(&team(judge), &[("0,", "expected 1 to 20 specialists"), ("x, crit", "a model is `provider/model`")]);
}

#[test]
fn what_only_a_team_can_do_is_refused_outside_of_one() {
    let flow = |tool: &str, gates: &str, node: &str| {
        format!(
            "id: f\nagents: {{ a: {{ model: demo/a, tools: [t] }}, b: {{ model: demo/b }} }}\ntools: {{ t: {{ {tool} }} }}\n\
             gates: {{ {gates} }}\nnodes: {{ n: {{ {node} }} }}\n"
        )
    };
    let (alone, team) = ("agent: a", "team: { agents: [a, b] }");
    refused(&flow("builtin: set_strategy", "", alone), &[("t: {", "no member of a team has it")]);
    refused(&flow("builtin: set_strategy", "before_strategy_override: true", team), &[]);
    refused(&flow("builtin: sleep", "before_strategy_override: true", team), &[("true", "can never apply")]);
    let emergent = "team: { agents: [a, b], emergent: { enabled: true } }";
    refused(&flow("builtin: spawn_specialist", "before_emergent: true", emergent), &[]);
    refused(&flow("builtin: spawn_specialist", "before_emergent: true", team), &[("true", "can never apply")]);
    let doubtful = found(&flow("builtin: sleep", "", emergent));
    assert!(matches!(&doubtful[..], [one] if one.contains("no member can create a specialist")), "{doubtful:?}");
}

#[test]
fn a_tool_that_is_an_agent_names_one_of_the_flow() {
    let flow = |tool: &str| {
        format!(
            "id: f\nagents: {{ a: {{ model: demo/a, tools: [t] }}, b: {{ model: demo/b }} }}\ntools: {{ t: {{ {tool} }} }}\n\
             gates: {{ before_agent: {{ b: true }} }}\nnodes: {{ n: {{ agent: a }} }}\n"
        )
    };
    refused(&flow("agent: b, description: Ask."), &[]);
    let never = ("true", "can never apply");
    refused(&flow("agent: bb"), &[("bb", "there is no agent `bb`; did you mean"), never]);
    refused(&flow("agent: b, parameters: { type: object }"), &[("parameters", "an agent takes only a `task`")]);
}
