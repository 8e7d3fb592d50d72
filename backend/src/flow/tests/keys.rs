//! Tests of the keys that nodes write, and of the options that a key holds.

use super::*;

#[test]
fn branches_that_run_at_the_same_time_may_not_write_one_key() {
    let flow = |join: &str, last: &str| {
        format!(
            "{HEAD}  a: {{ router: {{}}, next: [b, c] }}
  b: {{ agent: w, next: d }}
  c: {{ agent: w, write_keys: [other], next: d }}
  d: {{ agent: w, write_keys: [{last}], join: {join} }}
"
        )
    };
    expect(&flow("all", "b"), &[]);
    expect(&flow("any", "d"), &[]);
    expect(&flow("any", "b"), &[("7:31 FLOW_INVALID", "`b` and `d` can run at the same time after `a`")]);
    let same = flow("all", "d").replace("[other]", "[b]");
    expect(&same, &[("6:31 FLOW_INVALID", "`b` and `c` can run at the same time after `a`, and both write `b`")]);
    // An agent takes one of the branches only.
    expect(&same.replace("router: {}", "router: { agent: w, prompt: Which? }"), &[]);
    let any = flow("all", "'*'");
    expect(&any, &[]);
    expect(&any.replace("b: { agent: w", "b: { agent: w, write_keys: ['*']"), &[]);
    let both = any.replace("b: { agent: w", "b: { agent: w, write_keys: ['*']").replace("[other]", "[other, '*']");
    expect(&both, &[("6:38 FLOW_INVALID", "both may write any key; list the keys of one of them")]);
}

#[test]
fn an_agent_node_writes_the_keys_of_its_output_schema() {
    let flow = |properties: &str, writes: &str| {
        format!(
            "id: f
agents: {{ w: {{ model: demo/w, output_schema: {{ type: object, properties: {{ {properties} }} }} }} }}
nodes:
  a: {{ router: {{}}, next: [le-gal, finance] }}
  le-gal: {{ agent: w, prompt: hi, {writes} }}
  finance: {{ agent: w, prompt: hi, write_keys: [verdict] }}
"
        )
    };
    let verdict = "verdict: { type: string }";
    expect(
        &flow(verdict, "next: end"),
        &[("6:49 FLOW_INVALID", "`le-gal` and `finance` can run at the same time after `a`, and both write `verdict`")],
    );
    expect(&flow(verdict, "write_keys: [other]"), &[]);
    expect(&flow("reason: { type: string }", "next: end"), &[]);
    let checked = check(&flow("decision: { type: string }, due-date: {}", "next: end"));
    assert!(checked.errors.is_empty(), "{:?}", checked.errors);
    let doubtful: Vec<_> = checked.warnings.iter().map(|warning| &*warning.path).collect();
    let place = "/agents/w/output_schema/properties";
    assert_eq!(doubtful, [format!("{place}/decision"), format!("{place}/due-date")]);
}

#[test]
fn the_options_of_a_state_key_may_be_of_any_kind() {
    let menu = |rest: &str| {
        format!(
            "id: f\nnodes:\n  a: {{ set: {{ menu: [Soup, Bread] }}, next: b }}\n  \
             b: {{ human: {{ prompt: hi, options_key: menu, {rest} }} }}\n"
        )
    };
    for rest in ["timeout: 1h, on_timeout: approve", "policy: majority", "on_reject: a"] {
        expect(&menu(rest), &[]);
    }
}
