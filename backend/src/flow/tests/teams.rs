//! Teams, agents as tools, and gates of both that could not do what they say.

use super::handled::expect_at;

#[test]
fn a_team_that_could_not_work_is_found_when_the_flow_is_saved() {
    let team = |team: &str| {
        format!(
            "id: f\nagents:\n  a: {{ model: demo/a, tools: [grow] }}\n  b: {{ model: demo/b }}\ntools: {{ grow: {{ builtin: spawn_specialist }} }}\n\
             nodes:\n  t: {{ team: {{ {team} }} }}\n"
        )
    };
    expect_at(
        &team("agents: [a, b], lead: a, strategy: debate, rounds: 20, emergent: { enabled: true, max: 20 }"),
        &[],
    );
    expect_at(&team("agents: [a, bb]"), &[("bb]", "there is no agent `bb`")]);
    expect_at(&team("agents: [a, b], lead: cc"), &[("cc", "there is no agent `cc`")]);
    expect_at(&team("agents: [a, b, a]"), &[("a] ", "`a` is a member already")]);
    expect_at(&team("agents: [a], lead: b"), &[("[a]", "at least two members")]);
    expect_at(&team("agents: [a, b], strategy: debate, rounds: 21"), &[("21", "expected 1 to 20 rounds")]);
    expect_at(&team("agents: [a, b], rounds: 2"), &[("2 }", "only a debate has rounds")]);
    let judge = "agents: [a, b], emergent: { enabled: true, max: 0, judge: { model: x, criteria: ok } }";
    expect_at(&team(judge), &[("0,", "expected 1 to 20 specialists"), ("x, crit", "a model is `provider/model`")]);
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
    let unused = ("b: { model", "nothing uses the agent `b`");
    expect_at(&flow("builtin: set_strategy", "", alone), &[("t: {", "no member of a team has it"), unused]);
    expect_at(&flow("builtin: set_strategy", "before_strategy_override: true", team), &[]);
    expect_at(&flow("builtin: sleep", "before_strategy_override: true", team), &[("true", "can never fire")]);
    let emergent = "team: { agents: [a, b], emergent: { enabled: true } }";
    expect_at(&flow("builtin: spawn_specialist", "before_emergent: true", emergent), &[]);
    expect_at(&flow("builtin: spawn_specialist", "before_emergent: true", team), &[("true", "can never fire")]);
    expect_at(&flow("builtin: sleep", "", emergent), &[("{ enabled", "no member can make a specialist")]);
}

#[test]
fn a_tool_that_is_an_agent_names_one_of_the_flow() {
    let flow = |tool: &str| {
        format!(
            "id: f\nagents: {{ a: {{ model: demo/a, tools: [t] }}, b: {{ model: demo/b }} }}\ntools: {{ t: {{ {tool} }} }}\n\
             gates: {{ before_agent: {{ b: true }} }}\nnodes: {{ n: {{ agent: a }} }}\n"
        )
    };
    expect_at(&flow("agent: b, description: Ask."), &[]);
    let never = ("true", "can never fire");
    expect_at(
        &flow("agent: bb"),
        &[("bb", "there is no agent `bb`; did you mean"), never, ("b: { model", "nothing uses")],
    );
    expect_at(&flow("agent: b, parameters: { type: object }"), &[("{ type", "an agent takes a `task`")]);
}
