//! The guarantees of `check`: every mistake is found at once, with its line and column.

use std::fmt::Write;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;

mod budgets;
mod handled;
mod keys;
mod teams;

/// Formats every mistake as `line:column code message`, and every warning with a `?`.
fn found(source: &str) -> Vec<String> {
    let checked = check(source);
    let line = |mark: &str, m: &Mistake| {
        format!("{mark}{}:{} {} {}", m.line.unwrap_or(0), m.column.unwrap_or(0), m.code, m.message)
    };
    let errors = checked.errors.iter().map(|mistake| line("", mistake));
    errors.chain(checked.warnings.iter().map(|mistake| line("?", mistake))).collect()
}

#[test]
fn the_example_flows_have_no_mistakes_and_nothing_doubtful() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../flows");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    let source = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
    // Called flows come before their callers.
    files.sort_by_key(|path| calls(read(&source(path)).flow().unwrap()).count());
    let mut library = Library::default();
    for path in &files {
        let source = source(path);
        let checked = read(&source).check(&Here { library: Some(&library), ..Here::default() });
        assert!(checked.errors.is_empty() && checked.warnings.is_empty(), "{}: {checked:?}", path.display());
        let flow = checked.flow.unwrap();
        assert_eq!(path.file_stem().unwrap().to_str(), Some(flow.id.as_str()), "a file is named as its flow");
        assert!(graph(&flow).nodes.len() >= flow.nodes.len());
        let again = check(&serde_json::to_string(&flow).unwrap());
        assert_eq!(again.flow, Some(flow.clone()), "{:?}", again.errors);
        library.add(Arc::new(Compiled::calling(flow, 1, &library).unwrap()));
    }
    assert!(files.len() >= 5);
}

/// Checks that a source has exactly these mistakes, given as `line:column CODE` and a part of the message.
fn expect(source: &str, wanted: &[(&str, &str)]) {
    let found = found(source);
    let fits = found.len() == wanted.len()
        && found.iter().zip(wanted).all(|(found, (place, words))| found.starts_with(place) && found.contains(words));
    assert!(fits, "{source}\nfound {found:#?}\nwanted {wanted:#?}");
}

const HEAD: &str = "id: f\nagents: { w: { model: demo/w } }\nnodes:\n";

#[test]
fn what_is_no_yaml_or_no_json_value_is_refused_where_it_stands() {
    expect("", &[("1:1 FLOW_INVALID", "empty")]);
    expect("id: f\nnodes: [", &[("2:9 FLOW_INVALID", "cannot be read here")]);
    expect("id: f\n--- \nid: g\n", &[("3:1 FLOW_INVALID", "one document")]);
    expect("id: f\nid: g\nnodes: { a: { set: { x: 1 } } }", &[("2:1 FLOW_INVALID", "appears twice (first on line 1)")]);
    expect(
        "id: f\nnodes: { a: { set: { 1: 1, ü: .inf } } }",
        &[("2:22 FLOW_INVALID", "in quotes"), ("2:28 FLOW_INVALID", "not a state key"), ("2:31 FLOW_INVALID", ".inf")],
    );
    expect("id: !x f\nnodes: { a: { set: { x: 1 } } }", &[("1:5 FLOW_INVALID", "tags")]);
    expect("id: \"f\\0\"\nnodes: { a: { set: { x: 1 } } }", &[("1:5 FLOW_INVALID", "U+0000")]);
    expect(&format!("id: f\nnodes: {}", "[".repeat(70)), &[("2:72 FLOW_INVALID", "nested deeper")]);
    expect(&" ".repeat(limits::MAX_FILE + 1), &[("1:1 FLOW_INVALID", "larger")]);
    let bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n\
                c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n\
                e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\n";
    expect(bomb, &[("5:32 FLOW_INVALID", "including aliases")]);
}

#[test]
fn yaml_scalars_are_those_of_the_core_schema_and_json_is_read_as_it_is_written() {
    let values = |source: &str| {
        let checked = check(&format!("id: f\nnodes: {{ a: {{ set: {{ x: {source} }} }} }}"));
        match &checked.flow.expect("a flow").nodes[0].kind {
            shared::definition::NodeKind::Set(values) => values["x"].clone(),
            other => panic!("{other:?}"),
        }
    };
    let read = values("[no, on, True, ~, 012, 0o17, 0x1F, -3, 1e3, .5, 1.0, 1_000, '1', 2026-01-01]");
    assert_eq!(
        read,
        serde_json::json!(["no", "on", true, null, 12, 15, 31, -3, 1000.0, 0.5, 1.0, "1_000", "1", "2026-01-01"])
    );
    let json = "{\n\t\"id\": \"f\",\n\t\"nodes\": {\"a\": {\"set\": {\"x\": \"\\ud83d\\ude00 \\/ \\\\ud83d\"}}}\n}";
    let flow = check(json).flow.expect("JSON is read");
    assert_eq!(serde_json::to_value(&flow).unwrap(), serde_json::from_str::<Value>(json).unwrap());
}

#[test]
fn every_mistake_of_form_is_found_at_once_with_a_suggestion() {
    let source = "id: Bad_Id
titel: x
agents:
  writer: { model: gpt/4, instruction: hi, tools: [publsh], max_turns: many }
tools:
  publish: { builtin: demo_publsh }
  two: { builtin: sleep, http: { url: x } }
nodes:
  draft:
    agent: writr
    prompt: '{{ topic'
    next: reviw
  Review: { human: {} }
  both: { agent: writer, set: { a: 1 } }
  none: { next: end }
  late:
    human:
      promt: hi
      timeout: 24x
      options: [{ id: a, kind: acept, label: 3 }, { id: b }]
    next: [{ to: draft, when: 'a ==' }, { too: x }]
";
    expect(
        source,
        &[
            ("1:5 FLOW_INVALID", "`Bad_Id` is not a valid flow id"),
            ("2:1 FLOW_INVALID", "unknown key `titel`; did you mean `title`?"),
            ("4:20 FLOW_INVALID", "openai, anthropic, ollama, demo"),
            ("4:27 FLOW_INVALID", "unknown key `instruction`; did you mean `instructions`?"),
            ("4:52 FLOW_INVALID", "there is no tool `publsh`; did you mean `publish`?"),
            ("4:72 FLOW_INVALID", "expected a whole number, but this is text"),
            ("6:23 FLOW_INVALID", "did you mean `demo_publish`?"),
            ("7:3 FLOW_INVALID", "exactly one of `http`, `mcp`, `builtin` and `agent`"),
            ("10:12 FLOW_INVALID", "there is no agent `writr`; did you mean `writer`?"),
            ("11:13 FLOW_INVALID", "the template `{{ topic` cannot be read"),
            ("12:11 FLOW_INVALID", "there is no node `reviw`; did you mean `Review`?"),
            ("13:3 FLOW_INVALID", "`Review` is not a valid node id"),
            ("14:3 FLOW_INVALID", "this one has agent and set"),
            ("15:3 FLOW_INVALID", "a node has exactly one of"),
            ("17:5 FLOW_INVALID", "`prompt` is missing"),
            ("18:7 FLOW_INVALID", "unknown key `promt`; did you mean `prompt`?"),
            ("19:16 FLOW_INVALID", "`24x` is not a length of time"),
            ("20:32 FLOW_INVALID", "`acept` is not one of accept, correct, stop; did you mean `accept`?"),
            ("20:46 FLOW_INVALID", "expected text, but this is a whole number"),
            ("20:51 FLOW_INVALID", "`label` is missing"),
            ("21:31 FLOW_INVALID", "the condition `a ==` cannot be read"),
            ("21:41 FLOW_INVALID", "`to` is missing"),
            ("21:43 FLOW_INVALID", "unknown key `too`; did you mean `to`?"),
        ],
    );
    expect("just text", &[("1:1 FLOW_INVALID", "expected an object, but this is text")]);
    expect("title: x", &[("1:1 FLOW_INVALID", "`id` is missing"), ("1:1 FLOW_INVALID", "`nodes` is missing")]);
    expect("id: f\nnodes: {}", &[("2:1 FLOW_INVALID", "at least one node")]);
    assert!(check("id: f\ntitel: x\nnodes: { a: { set: { x: 1 } } }").flow.is_none());
}

#[test]
fn nothing_that_the_format_names_is_refused() {
    let source = "id: f
agents: { w: { model: demo/w } }
defaults: { on_timeout: follow, handlers: [human] }
guardrails: [{ name: x, webhook: { url: 'https://x.test' } }]
tools:
  go: { builtin: sleep }
gates:
  before_tool: { go: { timeout: 1h } }
nodes:
  draft: { agent: w, next: go }
  go: { tool: go, next: review }
  review:
    human:
      prompt: ok?
      timeout: 1h
      on_timeout: { escalate: boss, extend: 2h, then: reject }
      handlers: [human]
    next: map
  map: { map: { over: draft, as: y, node: draw }, next: draft }
  draw: { agent: w }
";
    expect(source, &[]);
}

#[test]
fn a_tool_that_asks_people_says_whom_and_no_other_does() {
    let flow = |tool: &str| {
        format!(
            "id: f\nagents: {{ w: {{ model: demo/w, tools: [t] }} }}\ntools:\n  t: {{ {tool} }}\nnodes: {{ a: {{ agent: w }} }}\n"
        )
    };
    let fine = "builtin: ask_human, description: Ask., reviewers: { roles: [x] }, severity: high, timeout: 1h, on_timeout: { escalate: boss, extend: 2h, then: error }";
    expect(&flow(fine), &[]);
    expect(&flow("builtin: ask_human, parameters: { type: object }"), &[("4:28 FLOW_INVALID", "are fixed")]);
    expect(&flow("builtin: escalate, policy: majority"), &[("4:35 FLOW_INVALID", "decided by one person")]);
    expect(&flow("builtin: request_edit, on_timeout: { goto: a }"), &[("4:31 FLOW_INVALID", "cannot go to a node")]);
    expect(
        &flow("builtin: sleep, reviewers: { roles: [x] }, severity: low"),
        &[("4:24 FLOW_INVALID", "set it at a gate"), ("4:61 FLOW_INVALID", "set it at a gate")],
    );
}

#[test]
fn output_that_would_be_passed_on_before_its_review_is_an_invalid_delegation() {
    let tail =
        "  other: { set: { x: 1 } }\n  review:\n    human:\n      prompt: ok?\n      options: [{ id: a, label: A }]\n";
    let flow = |next: &str| format!("{HEAD}  draft: {{ agent: w, next: {next} }}\n{tail}");
    let refused = [
        "[review, other]",
        "[other, { to: review, when: visit > 1 }]",
        "[{ to: review, when: visit > 1 }, { to: other, when: visit > 2 }]",
        "[{ to: review, when: visit == 1 }, { to: other, when: visit == 1 }]",
    ];
    for next in refused {
        let found = found(&flow(next));
        assert_eq!(found.iter().filter(|line| line.contains("FLOW_INVALID_DELEGATION")).count(), 1, "{next} {found:?}");
    }
    let fine = [
        "[review, end]",
        "[{ to: review, when: visit > 1 }, { to: other, else: true }]",
        "[{ to: review, when: draft == 'a' }, { to: other, when: draft == \"b\" }]",
    ];
    for next in fine {
        let found = found(&flow(next));
        assert!(found.iter().all(|line| !line.contains("DELEGATION")), "{next} {found:?}");
    }
    let question = flow("[review, other]").replace("      options: [{ id: a, label: A }]\n", "");
    assert_eq!(found(&question), Vec::<String>::new());
}

#[test]
fn the_rest_of_the_rules_is_checked_where_it_is_broken() {
    let human = |rest: &str| format!("id: f\n\nnodes:\n  a: {{ human: {{ prompt: hi, {rest} }} }}\n");
    expect(&human("on_timeout: reject"), &[("4:41 FLOW_INVALID", "has no effect")]);
    expect(&human("timeout: 1h, on_timeout: approve"), &[("4:54 FLOW_INVALID", "none here")]);
    expect(&human("timeout: 0s"), &[("4:38 FLOW_INVALID", "longer than zero")]);
    expect(&human("timeout: 11years"), &[("4:38 FLOW_INVALID", "at most 10years")]);
    expect(&human("corrects: a, options: [{ id: x, label: X }]"), &[("4:39 FLOW_INVALID", "cannot be corrected")]);
    expect(&human("options: [{ id: x, label: X, kind: correct }]"), &[("4:64 FLOW_INVALID", "no step")]);
    expect(&human("options: [{ id: x, label: X }, { id: x, label: Y }]"), &[("4:66 FLOW_INVALID", "two options `x`")]);
    expect(&human("edit_keys: [{ key: b, schema: { type: 1 } }]"), &[("4:67 FLOW_INVALID", "not a valid JSON Schema")]);
    expect(
        &human("handlers: [{ auto: approve }, human]"),
        &[("4:29 FLOW_INVALID", "none here"), ("4:59 FLOW_INVALID", "put `auto` last")],
    );
    let node = |rest: &str| format!("id: f\n\nnodes:\n  a: {{ set: {{ x: 1 }}, {rest} }}\n");
    expect(&node("max_visits: 0"), &[("4:35 FLOW_INVALID", "1 to 10000")]);
    expect(&node("next: [{ to: a, else: true }]"), &[("4:45 FLOW_INVALID", "no `when` here")]);
    expect(&node("on_visit_limit: b"), &[("4:39 FLOW_INVALID", "no node `b`")]);
    expect(&node("failure: { then: { goto: b } }"), &[("4:48 FLOW_INVALID", "no node `b`")]);
    expect(
        &node("next: b }\n  b: { set: { input: 1, 2x: 2, y: '{{ secret.a }}' }"),
        &[
            ("5:15 FLOW_INVALID", "`input` is reserved"),
            ("5:25 FLOW_INVALID", "`2x` is not a state key"),
            ("5:35 FLOW_INVALID", "secrets"),
        ],
    );
    expect(&node("next: end }\n  b: { router: {}"), &[("5:3 FLOW_INVALID", "`b` cannot be reached from `a`")]);
    let head = HEAD.replace("nodes:", "start: z\noutput: [q]\ngates: { before_tool: { no_*: true } }\nnodes:");
    expect(
        &format!("{head}  a: {{ agent: w }}\n"),
        &[
            ("3:8 FLOW_INVALID", "no node `z`"),
            ("5:31 FLOW_INVALID", "can never apply"),
            ("?4:10 doubtful", "nothing writes the state key `q`"),
        ],
    );
    expect(
        "id: f\nagents: { w: { model: demo/w, max_turns: 101 } }\nnodes: { my-node: { agent: w } }",
        &[("2:42 FLOW_INVALID", "1 to 100"), ("3:10 FLOW_INVALID", "`my-node` is not a state key")],
    );
    let many: Vec<_> =
        (0..=limits::MAX_NODES).map(|n| format!("  n{n}: {{ set: {{ x: 1 }}, next: n{} }}", n + 1)).collect();
    let many = many.join("\n");
    let found = found(&format!("{HEAD}{many}"));
    assert!(found.iter().any(|line| line.contains("at most 500 nodes")), "{found:?}");
}

#[test]
fn the_schema_for_editors_accepts_the_examples_and_refuses_an_unknown_key() {
    let schema = schema();
    let nodes = schema["properties"]["nodes"]["description"].as_str().unwrap_or_default();
    assert!(nodes.starts_with("The nodes by id"), "editors show what a key means: {nodes}");
    let article = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../flows/article.yaml")).unwrap();
    let mut flow = serde_json::to_value(check(&article).flow).unwrap();
    assert_eq!(check_value(&schema, &flow, ""), []);
    flow["titel"] = Value::from("x");
    assert_eq!(check_value(&schema, &flow, "").len(), 1);
}

/// Builds layers of 20 nodes, each of which leads to all nodes of the next layer.
fn dense(layers: usize) -> String {
    let mut source = HEAD.to_owned();
    for layer in 0..layers {
        let next: Vec<_> = (0..20).map(|to| format!("n{}_{to}", layer + 1)).collect();
        let next = if layer + 1 < layers { next.join(", ") } else { String::new() };
        for at in 0..20 {
            writeln!(source, "  n{layer}_{at}: {{ agent: w, next: [{next}] }}").unwrap();
        }
    }
    source
}

#[test]
fn the_largest_graphs_are_checked_and_only_those_that_are_too_large_are_not_drawn() {
    let checked = check(&dense(25));
    assert_eq!(checked.errors.len(), 19, "the first layer has one start");
    assert_eq!(graph(&checked.flow.unwrap()), shared::api::Graph::default());
    assert_eq!(graph(&check(&dense(2)).flow.unwrap()).nodes.len(), 41);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_file_makes_the_check_panic(
        file in 0..4_usize,
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..12_usize, "[ -~\n\té\u{1F600}]{0,6}"), 1..8),
    ) {
        let files = ["article", "contract", "release-notes", "polish"];
        let path = format!("{}/../flows/{}.yaml", env!("CARGO_MANIFEST_DIR"), files[file]);
        let mut text: Vec<char> = std::fs::read_to_string(path).expect("an example").chars().collect();
        for (at, remove, insert) in edits {
            let at = at.index(text.len() + 1);
            let end = (at + remove).min(text.len());
            text.splice(at..end, insert.chars());
        }
        let checked = check(&text.into_iter().collect::<String>());
        prop_assert!(checked.flow.is_some() || !checked.errors.is_empty());
        for mistake in checked.errors {
            prop_assert!(mistake.line.is_some_and(|line| line > 0) && mistake.column.is_some(), "{mistake:?}");
        }
    }
}

#[test]
fn a_misspelled_called_flow_is_guessed_from_all_that_there_are() {
    let mut library = Library::default();
    library.name("article".to_owned());
    library.name("f".to_owned());
    let source = "id: f\nnodes:\n  a: { flow: { id: articel } }\n  b: { flow: { id: g } }\n";
    let checked = read(source).check(&Here { library: Some(&library), ..Here::default() });
    let messages: Vec<_> = checked.errors.iter().map(|mistake| mistake.message.as_str()).collect();
    assert!(messages[0].contains("there is no flow `articel`; did you mean `article`?"), "{messages:?}");
    assert!(!messages[1].contains("did you mean"), "not itself: {messages:?}");
}

#[test]
fn effort_is_a_key_with_three_levels() {
    let agent = |rest: &str| {
        format!("id: f\nagents:\n  w: {{ model: openai/o3-mini-high{rest} }}\nnodes:\n  a: {{ agent: w }}\n")
    };
    for level in ["low", "medium", "high"] {
        expect(&agent(&format!(", reasoning: {level}")), &[]);
    }
    let words = "`hihg` is not one of low, medium, high; did you mean `high`?";
    expect(&agent(", reasoning: hihg"), &[("3:47 FLOW_INVALID", words)]);
    expect(
        &agent(", reasonning: high"),
        &[("3:36 FLOW_INVALID", "unknown key `reasonning`; did you mean `reasoning`?")],
    );
    expect(&agent(", reasoning: 3"), &[("3:47 FLOW_INVALID", "expected")]);
}

#[test]
fn keys_that_a_node_will_never_write_are_doubtful() {
    let doubted = |tools: &str, rest: &str| {
        let source = format!(
            "id: f\nagents: {{ w: {{ model: demo/w{tools} }} }}\ntools: {{ note: {{ builtin: set_state }} }}\nnodes:\n  \
             a: {{ agent: w, prompt: p, write_keys: [x, y]{rest} }}\n"
        );
        found(&source).into_iter().any(|line| line.starts_with("?5:") && line.contains("nothing is written to `y`"))
    };
    assert!(doubted("", ""));
    assert!(!doubted(", tools: [note]", ""), "a tool may write it");
    let schema = ", output_schema: { type: object, properties: { x: {}, y: {} } }";
    assert!(!doubted(schema, ""), "each key of the answer has its own");
}
