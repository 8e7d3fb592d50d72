//! Checking a flow file is never more expensive than its size justifies: deep or long expressions, aliases, long keys
//! and thousands of mistakes result in a few mistakes with their places.

use super::*;
use crate::flow::limits::{
    MAX_CONDITION, MAX_CONDITIONS, MAX_FILE, MAX_MISTAKES, MAX_PATTERNS, MAX_TAG_TOKENS, MAX_TOKENS,
};
use crate::flow::{CancelFlag, read};

/// Returns the messages for a flow with one `set` of this template, checked on the stack of a small thread.
fn template(template: &str) -> Vec<String> {
    let flow = serde_json::json!({ "id": "f", "nodes": { "a": { "set": { "x": template } } } }).to_string();
    assert!(flow.len() < MAX_FILE);
    let check = move || check(&flow).errors.into_iter().map(|mistake| mistake.message).collect();
    std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(check).unwrap().join().unwrap()
}

/// Concatenates so many lines, or parts of a line.
fn many(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect::<Vec<_>>().concat()
}

#[test]
fn a_template_that_is_too_long_or_too_deep_is_a_mistake_on_any_stack() {
    let chains = [
        ("{{ 1", "+1", " }}"),
        ("{{ input", "+1", " }}"),
        ("{{ input", ".b", " }}"),
        ("{{ input", "[0]", " }}"),
        ("{{ input", "()", " }}"),
        ("{{ ", "not ", "input }}"),
        ("{{ ", "-", "input }}"),
        ("{{ 1", "|abs", " }}"),
        ("{{ 1", " is odd", " }}"),
        ("{{ input", "~'}}'", " }}"),
        ("{{ ", "1 if input else ", "2 }}"),
        ("{% raw %}{{ ' {% endraw %}{{ input", "+1", " }} '"),
        ("{# {{ ' #}{{ input", "+1", " }} '"),
        ("{% if input %}", "{% elif input %}", "{% endif %}"),
        ("x {% set y = [", "[", " %}"),
        ("{{ ", "(", " }}"),
        ("", "{% if input %}", ""),
    ];
    for (begin, link, end) in chains {
        let long = format!("{begin}{}{end}", link.repeat(63_000 / link.len()));
        let found = template(&long);
        let words = ["has more than", "recursion limits"];
        assert!(matches!(&found[..], [one] if words.iter().any(|words| one.contains(words))), "{link}: {found:?}");
    }
    // The longest allowed expression.
    let of = |count: usize| format!("{{{{ input{} }}}}!", "+1".repeat((count - 1) / 2));
    assert_eq!(template(&of(MAX_TAG_TOKENS - 2)), [""; 0]);
    let elifs = "{% elif input %}".repeat(MAX_TOKENS / 4 - 10);
    assert_eq!(template(&format!("{{% if input %}}{elifs}{{% endif %}}")), [""; 0]);
    assert_eq!(template(&"A long text, as prompts are: 'it''s' {not} % # a tag. ".repeat(1100)), [""; 0]);
}

#[test]
fn a_template_calculates_nothing_large_when_it_is_checked() {
    for repeats in ["'x' * 100000000", "9 * ('a' ~ 'b')", "[(1, 2) * 9]", "input|default('x' * 100000000)"] {
        let found = template(&format!("a {{{{ {repeats} }}}}"));
        assert!(matches!(&found[..], [one] if one.contains("`*` is for numbers")), "{repeats}: {found:?}");
    }
    assert_eq!(template("{{ 2 * 3 * input.price }}"), [""; 0]);
    let found = template("{% include 'other' %}");
    assert!(matches!(&found[..], [one] if one.contains("imports and includes are not supported")), "{found:?}");
}

#[test]
fn what_aliases_repeat_counts_as_if_it_were_written() {
    let text = "x".repeat(200_000);
    let file = |aliases: usize| {
        let repeated = "*t, ".repeat(aliases);
        format!("id: f\nnodes:\n  a: {{ set: {{ t: &t {text}, all: [{repeated}] }} }}\n")
    };
    assert_eq!(found(&file(4)), [""; 0]);
    expect(&file(6), &[("3:", "the file is larger than 1048576 bytes, including aliases")]);
    // Nested anchors: each one keeps a copy of what the next one keeps.
    let anchors = (0..60).map(|n| format!("&a{n} [")).collect::<Vec<_>>().concat();
    let file = format!("id: f\nnodes: {{ a: {{ set: {{ x: {anchors}{text}{} }} }} }}\n", "]".repeat(60));
    expect(&file, &[("2:", "including aliases")]);
    let list = format!("&l [{}]", "1, ".repeat(30_000));
    let file = format!("id: f\nnodes: {{ a: {{ set: {{ x: {list}, y: [*l, *l, *l] }} }} }}\n");
    expect(&file, &[("2:", "more than 100000 values, including aliases")]);
}

#[test]
fn a_long_key_above_many_values_is_refused() {
    let (open, close) = (format!("{{ {}: ", "k".repeat(1000)).repeat(40), "}".repeat(40));
    let file = format!("id: f\nnodes:\n  a: {{ set: {{ x: {open}[{}]{close} }} }}\n", "1, ".repeat(2000));
    expect(&file, &[("3:", "the keys are too long for so many values below them")]);
}

#[test]
fn of_thousands_of_mistakes_the_first_are_named() {
    let many = |line: &dyn Fn(usize) -> String| (0..8000).map(line).collect::<String>();
    let unknown = format!("{HEAD}  a: {{ agent: w, read_keys: [{}] }}\n", many(&|n| format!("key_{n}, ")));
    let doubled = format!("{HEAD}  a: {{ agent: w }}\n{}", many(&|_| "id: f\n".to_owned()));
    let keys = format!("{HEAD}  a: {{ agent: w }}\n{}", many(&|n| format!("unknown_{n}: 1\n")));
    let wrong = format!("{HEAD}  a: {{ agent: w, next: [{}] }}\n", many(&|_| "{ to: 1 }, ".to_owned()));
    let nobody = format!("{HEAD}  a: {{ set: {{ {} }} }}\n", many(&|n| format!("k{n}: '{{{{ nobody_{n} }}}}', ")));
    for (what, file) in
        [("unknown", unknown), ("doubled", doubled), ("keys", keys), ("wrong", wrong), ("nobody", nobody)]
    {
        let CheckedFlow { errors, warnings, .. } = check(&file);
        let found = if errors.is_empty() { warnings } else { errors };
        assert_eq!(found.len(), MAX_MISTAKES + 1, "{what}");
        assert!(found.last().unwrap().message.contains("correct these first"), "{what}: {:?}", found.last());
    }
}

/// Builds a flow with so many conditions, all different and as long as allowed.
fn conditions(count: usize) -> String {
    let condition = |n: usize| format!("input.n{n} in [{}1]", "1, ".repeat((MAX_CONDITION - 100) / 3));
    let edges = |n: usize| format!("[{{ to: end, when: '{}' }}, {{ to: end, else: true }}]", condition(n));
    let node = |n: usize| format!("  a{n}: {{ set: {{ x: {n} }}, next: {} }}\n", edges(n));
    let nodes: String = (0..count).map(node).collect();
    format!("id: f\nnodes:\n{nodes}  end: {{ set: {{ x: 0 }} }}\n")
}

#[test]
fn the_conditions_of_a_flow_are_read_up_to_a_total() {
    let found = found(&conditions(MAX_CONDITIONS / MAX_CONDITION + 2));
    let words = "the conditions of a flow may have at most 131072 bytes in total";
    assert_eq!(found.iter().filter(|one| one.contains(words)).count(), 1, "{found:?}");
    // A condition that occurs in many places is parsed once.
    let same = "input.x == 1 || ".repeat(60) + "false";
    let edges = format!("[{{ to: end, when: '{same}' }}, {{ to: end, else: true }}]");
    let nodes = many(200, |n| format!("  a{n}: {{ set: {{ x: {n} }}, next: {edges} }}\n"));
    let all = check(&format!("id: f\nnodes:\n{nodes}  end: {{ set: {{ x: 0 }} }}\n")).errors;
    assert!(all.iter().all(|one| !one.message.contains(words)), "{all:?}");
}

#[test]
fn a_check_that_nobody_waits_for_reads_no_further() {
    let flow = "id: f\nnodes: { a: { set: { x: '{{ broken' } } }\n";
    assert_eq!(read(flow).check(&Here::default()).errors.len(), 1);
    let abandoned = CancelFlag::default();
    drop(abandoned.on_drop());
    assert_eq!(read(flow).check_unless(&abandoned, &Here::default()).errors, []);
}

#[test]
fn the_patterns_of_all_schemas_are_limited_together() {
    let input = |count: usize| {
        let properties = many(count, |n| format!("p{n}: {{ pattern: '^a{n}$' }}, "));
        format!("id: f\ninput: {{ properties: {{ {properties} }} }}\nnodes: {{ a: {{ set: {{ x: 1 }} }} }}\n")
    };
    assert_eq!(found(&input(MAX_PATTERNS)), [""; 0]);
    expect(&input(MAX_PATTERNS + 1), &[("2:", "may have at most 200 patterns in total")]);
}

#[test]
fn a_value_that_is_too_large_for_its_schema_is_refused_instead_of_compared_for_minutes() {
    let forms: Vec<_> = (0..40_000).map(|n| serde_json::json!(n)).chain([serde_json::json!("x")]).collect();
    let schema = serde_json::json!({ "items": { "enum": forms } });
    let value = serde_json::json!(vec!["y"; 40_000]);
    let found = check_value(&schema, &value, "/keys");
    assert!(matches!(&found[..], [one] if one.message.contains("is too large for its JSON Schema")), "{found:?}");
    assert_eq!(check_value(&schema, &serde_json::json!([1, 2, 39_999]), ""), []);
}
