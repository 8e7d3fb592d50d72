//! The answers of a compiled flow.

use serde_json::json;
use shared::definition::{Flow, Severity};

use super::*;

fn compiled(flow: Value) -> Compiled {
    let flow: Flow = serde_json::from_value(flow).unwrap();
    Compiled::new(flow, 1).unwrap()
}

fn bare() -> Compiled {
    compiled(json!({ "id": "f", "nodes": { "a": { "set": { "x": "{{ count + 1 }}", "y": "Hello {{ topic }}" } } } }))
}

fn scope(value: &Value) -> Scope {
    Scope(value.as_object().unwrap().clone())
}

fn id(name: &str) -> NodeId {
    name.parse().unwrap()
}

#[test]
fn a_template_shows_strings_as_they_are_and_everything_else_as_json() {
    let flow = bare();
    let scope = scope(&json!({ "topic": "<the> \"ocean\"", "list": [1, "two"], "map": { "b": 1, "a": null }, "n": 2.5,
                              "yes": true, "decisions": { "my-node": { "option": "ok" } } }));
    let render = |template| flow.render(template, &scope).unwrap();
    assert_eq!(render("Hello {{ topic }}"), "Hello <the> \"ocean\"");
    assert_eq!(render("{{ list }} {{ map }} {{ n }} {{ yes }}"), r#"[1,"two"] {"b":1,"a":null} 2.5 true"#);
    assert_eq!(render("{{ decisions['my-node'].option }}!"), "ok!");
    assert_eq!(render("{{ topic }}"), "<the> \"ocean\"");
    assert_eq!(render("{{ map }}"), r#"{"b":1,"a":null}"#);
    assert_eq!(render("no template } here"), "no template } here");
    assert_eq!(render("/of/{{ 'a/../b?c=ü ~' | urlencode }}"), "/of/a%2F..%2Fb%3Fc%3D%C3%BC%20~");
    assert_eq!(render("{{ n | urlencode }}"), "2.5");
    assert!(flow.render("/of/{{ '..' | urlencode }}", &scope).is_err());
    assert_eq!(render("{% for x in list %}{{ loop.index }}={{ x }};{% endfor %}"), "1=1;2=two;");
}

#[test]
fn a_whole_expression_keeps_its_json_type() {
    let flow = bare();
    let scope =
        scope(&json!({ "count": 1, "topic": "x", "big": u64::MAX, "map": { "b": [1, 2.0, null], "a": false } }));
    let value = json!({ "n": "{{ count + 1 }}", "t": "{{ topic }}s", "m": "{{ map }}", "list": ["{{ big }}", 7, null],
                        "float": "{{ count / 2 }}", "quoted": "{{ '}' }}", "spaced": "  {{ count }} " });
    assert_eq!(
        flow.render_value(&value, &scope).unwrap(),
        json!({ "n": 2, "t": "xs", "m": { "b": [1, 2.0, null], "a": false }, "list": [u64::MAX, 7, null],
                "float": 0.5, "quoted": "}", "spaced": 1 })
    );
}

#[test]
fn a_name_that_is_not_there_is_an_error_that_names_the_template() {
    let flow = bare();
    for template in ["Hello {{ topic }}", "{{ nothing }}", "{{ a.b.c }}", "{{ m.b }}"] {
        let error = flow.render_value(&json!(template), &scope(&json!({ "m": {} }))).unwrap_err();
        assert!(error.0.contains("the template `"), "{error}");
    }
    assert_eq!(flow.render("{{ tone | default('plain') }}.", &scope(&json!({}))).unwrap(), "plain.");
}

#[test]
fn a_template_without_end_is_stopped() {
    let template = "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}";
    assert!(bare().render(template, &scope(&json!({}))).is_err());
}

#[test]
fn a_condition_that_meets_something_missing_is_false_and_any_other_failure_an_error() {
    let flow = bare();
    let scope = scope(&json!({ "count": 3, "text": "3", "none": null, "decision": { "option": "ok", "edits": {} },
                              "decisions": { "my-node": null }, "list": [1] }));
    let holds = |condition| flow.holds(condition, &scope);
    for yes in [
        "count + 1 == 4",
        "decision.option == 'ok'",
        "decisions['my-node'] == null",
        "none == null",
        "count >= 3 && text.startsWith('3')",
        "!has(decision.text)",
        "list.exists(x, x == 1)",
        "size(list) == 1",
        "missing.a == 1 || count == 3",
    ] {
        assert_eq!(holds(yes), Ok(true), "{yes}");
    }
    for no in [
        "missing == 1",
        "missing.deep.er == 1",
        "decision.text == 'x'",
        "none.field == 1",
        "none['field'] == 1",
        "decisions['my-node'].option == 'a'",
        "decisions['other'].option == 'a'",
        "decision.edits.x.y == 1",
        "has(none.field)",
        "list[4] == 1",
        "count == 4",
    ] {
        assert_eq!(holds(no), Ok(false), "{no}");
    }
    for bad in ["count", "count + text == 1", "count.field == 1", "count / 0 == 1", "size(count) == 1", "nofunction(1)"]
    {
        assert!(holds(bad).is_err(), "{bad}: {:?}", holds(bad));
    }
}

#[test]
fn texts_that_do_not_compile_are_found_with_their_places() {
    let flow = json!({ "id": "f", "input": { "type": "strin" }, "agents": { "w": { "model": "demo/w", "instructions": "{{ a" } },
        "nodes": { "a": { "set": { "x": ["{% if %}"] }, "next": [{ "to": "a", "when": "a ==" }, "end"] } } });
    let mistakes = Compiled::new(serde_json::from_value(flow).unwrap(), 1).unwrap_err();
    let places: Vec<_> = mistakes.iter().map(|mistake| mistake.path.as_str()).collect();
    assert_eq!(places, ["/agents/w/instructions", "/nodes/a/set/x/0", "/nodes/a/next/0/when", "/input/type"]);
}

#[test]
fn the_exact_name_of_a_tool_wins_over_patterns_and_the_longest_pattern_over_others() {
    let tool = json!({ "builtin": "demo_publish" });
    let asks = json!({ "builtin": "demo_publish", "ask_permission": true });
    let flow = compiled(json!({
        "id": "f",
        "tools": { "delete_all": tool, "delete_one": tool, "delete_log": tool, "list": tool, "asks": asks },
        "gates": { "before_tool": { "*": false, "delete_*": { "severity": "high" }, "delete_one": { "severity": "low" },
                                    "*_log": true, "delete_log": false } },
        "nodes": { "a": { "tool": "list" } }
    }));
    let severity = |name| flow.tool_gates(None, name).next().and_then(|gate| gate.severity.value().copied());
    assert_eq!(severity("delete_all"), Some(Severity::High));
    assert_eq!(severity("delete_one"), Some(Severity::Low));
    assert_eq!(severity("write_log"), Some(Severity::Medium));
    assert_eq!(severity("delete_log"), None);
    assert_eq!(severity("list"), None);
    assert_eq!(severity("asks"), Some(Severity::Medium));
    assert!(matches("a*b*c", "aXbbYc") && matches("*", "") && !matches("a*a", "a") && !matches("a*b*c", "acb"));
}

#[test]
fn a_correction_finds_its_source_through_what_makes_nothing() {
    let human = json!({ "prompt": "?" });
    let flow = compiled(json!({ "id": "f", "agents": { "w": { "model": "demo/w" } }, "nodes": {
        "draft": { "agent": "w", "next": "route" },
        "route": { "router": {}, "next": ["note"] },
        "note": { "set": { "a": 1 }, "next": "first" },
        "first": { "human": human, "next": "second" },
        "second": { "human": human, "next": ["left", "right"] },
        "left": { "agent": "w", "next": "both" },
        "right": { "agent": "w", "next": "both" },
        "both": { "human": human, "next": "named" },
        "named": { "human": { "prompt": "?", "corrects": "left" } },
        "alone": { "human": human }
    } }));
    let source = |human: &str| flow.source_of(&id(human)).map(|source| source.to_string());
    assert_eq!(source("first").as_deref(), Some("draft"));
    assert_eq!(source("second").as_deref(), Some("draft"));
    assert_eq!(source("both"), None);
    assert_eq!(source("named").as_deref(), Some("left"));
    assert_eq!(source("alone"), None);
}

#[test]
fn what_can_be_reached_counts_every_way_and_at_least_one_step() {
    let flow = compiled(json!({ "id": "f", "agents": { "w": { "model": "demo/w" } },
        "defaults": { "failure": { "then": { "goto": "rescue" } } },
        "nodes": {
            "draft": { "agent": "w", "next": "review", "on_visit_limit": "late" },
            "review": { "human": { "prompt": "?", "on_reject": "no" }, "next": "done" },
            "no": { "set": { "a": 1 }, "failure": {} },
            "late": { "set": { "b": 1 }, "failure": {} },
            "done": { "set": { "c": 1 }, "failure": {} },
            "rescue": { "set": { "d": 1 }, "failure": {} }
    } }));
    let reaches = |from: &str, to: &str| flow.reaches(&id(from), &id(to));
    for to in ["draft", "review", "no", "late", "done", "rescue"] {
        assert!(reaches("draft", to) && reaches("review", to), "{to}");
    }
    assert!(!reaches("done", "done") && !reaches("rescue", "draft") && !reaches("done", "rescue"));
}

#[test]
fn an_input_is_checked_in_words_for_people_at_the_place_of_the_mistake() {
    let flow = compiled(json!({ "id": "f", "nodes": { "a": { "set": { "x": 1 } } },
        "input": { "type": "object", "required": ["topic", "count"], "additionalProperties": false, "properties": {
            "topic": { "type": "string", "minLength": 1 }, "count": { "type": "integer", "maximum": 9 },
            "to": { "type": "array", "items": { "type": "string", "format": "email" } } } } }));
    let check = |input: Value| -> Vec<_> {
        let mistakes = flow.check_input(input.as_object().unwrap());
        mistakes.iter().map(ToString::to_string).collect()
    };
    assert_eq!(check(json!({ "topic": "ocean", "count": 3, "to": ["a@example.org"] })), Vec::<String>::new());
    assert_eq!(
        check(json!({ "topic": 3, "to": ["nobody"], "x/y": 1 })),
        [
            "/input/count: `count` is missing [required]",
            "/input/topic: must be text, but is a whole number [invalid]",
            "/input/to/0: must be an e-mail address [invalid]",
            "/input/x~1y: `x/y` is not expected here [unknown]",
        ]
    );
    assert_eq!(check(json!({ "topic": "", "count": 10 })).len(), 2);
}
