//! Titles of reviews: what distinguishes one from the next in an inbox.

use super::*;

/// Returns the titles of pending reviews, in the order in which they were opened.
fn titles(flow: &str, input: Value) -> Vec<String> {
    let play = Play::start(flow, input);
    let mut pending: Vec<_> = play.snapshot.reviews.values().filter(|review| review.is_pending()).collect();
    pending.sort_by_key(|review| review.id);
    pending.into_iter().map(|review| review.title.clone()).collect()
}

const OPTIONS: &str = "options: [{ id: ok, label: OK }]";

#[test]
fn a_human_node_is_headed_by_its_title_else_its_question_and_what_the_run_is_about() {
    let ask = |human: &str| format!("id: ask\nnodes:\n  ask: {{ human: {{ {human}, {OPTIONS} }} }}\n");
    let input = json!({ "seats": 3, "customer": "Acme" });
    for (human, title) in [
        ("title: 'Credit for {{ input.customer }}', prompt: Give it?", "Credit for Acme"),
        ("prompt: 'Give {{ input.customer }} credit? It cannot be undone.'", "Give Acme credit? It cannot be undone"),
        ("prompt: Give credit?", "Give credit? · Acme"),
        // A title that cannot be rendered is no reason to fail.
        ("title: '{{ input.unknown }}', prompt: Give credit?", "Give credit? · Acme"),
        ("title: '  ', prompt: Give credit?", "Give credit? · Acme"),
    ] {
        assert_eq!(titles(&ask(human), input.clone()), [title], "{human}");
    }
}

#[test]
fn items_of_a_list_and_calls_are_told_apart() {
    let items = format!(
        "id: each\nnodes:\n  all: {{ map: {{ over: names, as: it, node: ask }} }}\n  \
         ask: {{ human: {{ prompt: Fine?, {OPTIONS} }} }}\n\
         input: {{ type: object, properties: {{ names: {{ default: [Ann, {{ name: Bo }}, 3] }} }} }}\n"
    );
    assert_eq!(titles(&items, json!({})), ["Fine? · Ann (1 of 3)", "Fine? · Bo (2 of 3)", "Fine? (3 of 3)"]);
    let call = |gate: &str| {
        format!(
            "id: call\ntools: {{ send: {{ http: {{ url: 'https://x' }} }} }}\n\
             nodes: {{ go: {{ tool: send, arguments: {{ text: Hello, to: ann@example.org }} }} }}\n\
             gates: {{ before_tool: {{ send: {gate} }} }}\n"
        )
    };
    assert_eq!(titles(&call("true"), json!({})), ["send: ann@example.org"]);
    assert_eq!(titles(&call("{ title: 'Write to {{ arguments.to }}' }"), json!({})), ["Write to ann@example.org"]);
}
