//! No flow file costs more than its size: deep or long expressions, aliases, long keys and thousands of mistakes end in
//! a few mistakes with their places.

use super::*;
use crate::flow::limits::{MAX_FILE, MAX_MISTAKES, MAX_TAG_TOKENS, MAX_TOKENS};

/// The messages for a flow with one `set` of this template, checked on the stack of a small thread.
fn template(template: &str) -> Vec<String> {
    let flow = serde_json::json!({ "id": "f", "nodes": { "a": { "set": { "x": template } } } }).to_string();
    assert!(flow.len() < MAX_FILE);
    let check = move || check(&flow).errors.into_iter().map(|mistake| mistake.message).collect();
    std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(check).unwrap().join().unwrap()
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
        let words = ["holds more than", "recursion limits"];
        assert!(matches!(&found[..], [one] if words.iter().any(|words| one.contains(words))), "{link}: {found:?}");
    }
    // The longest that is allowed.
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
    assert!(matches!(&found[..], [one] if one.contains("stands alone")), "{found:?}");
}

#[test]
fn what_aliases_repeat_counts_as_if_it_were_written() {
    let text = "x".repeat(200_000);
    let file = |aliases: usize| {
        let repeated = "*t, ".repeat(aliases);
        format!("id: f\nnodes:\n  a: {{ set: {{ t: &t {text}, all: [{repeated}] }} }}\n")
    };
    assert_eq!(found(&file(4)), [""; 0]);
    expect(&file(6), &[("3:", "the file is larger than 1048576 bytes, aliases followed")]);
    // Anchors within anchors: each keeps what the one within it keeps.
    let anchors = (0..60).map(|n| format!("&a{n} [")).collect::<Vec<_>>().concat();
    let file = format!("id: f\nnodes: {{ a: {{ set: {{ x: {anchors}{text}{} }} }} }}\n", "]".repeat(60));
    expect(&file, &[("2:", "aliases followed")]);
    let list = format!("&l [{}]", "1, ".repeat(30_000));
    let file = format!("id: f\nnodes: {{ a: {{ set: {{ x: {list}, y: [*l, *l, *l] }} }} }}\n");
    expect(&file, &[("2:", "more than 100000 values, aliases followed")]);
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
        let Checked { errors, warnings, .. } = check(&file);
        let found = if errors.is_empty() { warnings } else { errors };
        assert_eq!(found.len(), MAX_MISTAKES + 1, "{what}");
        assert!(found.last().unwrap().message.contains("correct these first"), "{what}: {:?}", found.last());
    }
}
