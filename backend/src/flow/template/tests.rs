//! Budgets of templates: what they change, and what they stop.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::flow::Scope;

fn render(template: &str, scope: &Value) -> Result<String, EvalError> {
    let mut templates = Templates::default();
    templates.add(template)?;
    templates.render(template, &Scope(scope.as_object().unwrap().clone()))
}

#[test]
fn what_is_sliced_is_read() {
    let mut templates = Templates::default();
    let template = "{% macro cut(it, n=most) %}{{ it[:n] }}{% endmacro %}\
        {% for row in rows[skip:] %}{{ row.text[:2] }}{{ cut(row.text) }}{{ loop.index }}{% endfor %}";
    templates.add(template).unwrap();
    assert_eq!(templates.names(template), ["most", "rows", "skip"]);
    let scope = json!({ "rows": [{ "text": "abc" }, { "text": "def" }], "skip": 1, "most": 1 });
    assert_eq!(render(template, &scope).as_deref(), Ok("ded1"));
    assert_eq!(render("{{ text[:2] }}", &json!({ "text": "abc" })).as_deref(), Ok("ab"));
}

#[test]
fn a_budget_changes_no_text() {
    let scope = json!({
        "items": [{ "id": 2, "tag": "b" }, { "id": 1, "tag": "a" }], "name": "ana", "text": "one\ntwo", "n": 3,
        "map": { "b": 1, "a": 2 },
    });
    for (template, text) in [
        ("{{ items|map(attribute='tag')|sort|join(', ') }}", "a, b"),
        (
            "{% for i in items|sort(attribute='id') if i.id > 0 %}{{ loop.index }}{{ i.tag }}{% if not loop.last %},{% endif %}{% else %}none{% endfor %}",
            "1a,2b",
        ),
        ("{% for k, v in map|items %}{{ k }}={{ v }};{% endfor %}{{ map.a * n }}", "b=1;a=2;6"),
        (
            "{% macro hi(who, mark='!') %}Hi {{ who }}{{ mark }}{% endmacro %}{{ hi(name) }}{{ hi('x', mark='?') }}",
            "Hi ana!Hi x?",
        ),
        (
            "{% set ns = namespace(sum=0) %}{% for i in items %}{% set ns.sum = ns.sum + i.id %}{% endfor %}{{ ns.sum }}",
            "3",
        ),
        ("{% set long %}{{ name }} and {{ name }}{% endset %}{{ long|upper }}", "ANA AND ANA"),
        ("{% filter upper %}a{{ name }}{% endfilter %} {{ text|indent(2) }}", "AANA one\n  two"),
        (
            "{{ 1 < n < 5 }} {{ 'a' in name }} {{ name[1:] }} {{ items[0]['tag'] }} {{ n is odd }} {{ {'k': n}.k }}",
            "true true na b true 3",
        ),
        (
            "{{ missing|default('none') }} {{ missing is defined }} {{ name ~ n }} {{ [1] + [2] }}",
            "none false ana3 [1,2]",
        ),
        (
            "{{ '%s-%03d'|format(name, n) }} {{ name|replace('a', 'o') }} {{ map|tojson }}",
            "ana-003 ono {\"b\": 1, \"a\": 2}",
        ),
        (
            "{% raw %}{{ raw }}{% endraw %} {# nothing #}{{ range(3)|list }} {{ items|length if items else 0 }}",
            "{{ raw }} [0,1,2] 2",
        ),
        (
            "{% for row in [1, 2, 3]|batch(2) %}{{ row|join('+') }};{% endfor %}{{ items|selectattr('id', 'eq', 1)|list|length }}",
            "1+2;3;1",
        ),
    ] {
        assert_eq!(render(template, &scope).as_deref(), Ok(text), "{template}");
    }
    assert!(render("{{ missing }}", &scope).is_err());
    assert!(render("a\n\n{{ missing.b }}", &scope).unwrap_err().0.contains("its line 3"));
}

#[test]
fn nothing_is_multiplied_without_a_bound() {
    let items: Vec<u32> = (0..5000).collect();
    let scope = json!({ "items": items, "text": "x".repeat(100_000), "lines": "\n".repeat(100_000), "n": 100_000_000 });
    for endless in [
        "{{ 'x'|indent(10000000000) }}",
        "{{ lines|indent(1000) }}",
        "{{ lines|indent(width=1000) }}",
        "{{ '%2000000000d'|format(1) }}",
        "{{ '%*d'|format(n, 1) }}",
        "{{ text * n }}",
        "{{ items * n }}",
        "{% set ns = namespace(x=text) %}{% for i in range(40) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x|length }}",
        "{% set ns = namespace(x=text) %}{% for i in range(40) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x == ns.x }}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ {ns.x: 1} }}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(20000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x|length ~ ns.x }}",
        "{% for i in range(20000) %}{{ items|sort|reverse|join }}{% endfor %}",
        "{% for i in range(20000) %}{{ items|join(text) }}{% endfor %}",
        "{% for i in items %}{{ i in items }}{% endfor %}",
        "{{ items|select('in', items)|list }}",
        "{{ text|replace('', text) }}",
        "{{ text|trim(text) }}",
        "{{ items|batch(100000000, 'x')|list }}",
        "{{ items|slice(100000000)|list }}",
        "{{ items|map('indent', 1000000)|list }}",
        "{{ items|tojson(100000000) }}",
        "{{ 'a\nb'|indent(100000000.0) }}|",
        "{{ 'a\nb'|indent(1e13) }}",
        "{{ 'a\nb'|indent(width=2000.0) }}",
        "{{ [1]|batch(3000000.0, 0)|length }}|",
        "{{ [1]|slice(3000000.0)|length }}",
        "{{ [1]|tojson(300000000.0) }}",
        "{{ [1]|tojson(indent=2e9) }}",
        "{{ ['a\nb']|map('indent', 1e8)|list }}",
        "{{ text * 1e8 }}",
        "{{ 'ab' * 1e8 }}",
        "{{ 3000000.0 * [1] }}",
        "{% for i in range(20000) %}{% set x = text[-1] %}{% endfor %}",
        "{% for i in range(20000) %}{% set x = text[99000 + i % 2] %}{% endfor %}",
        "{% for i in range(20000) %}{% set x = text|attr(-1) %}{% endfor %}",
        "{% set r = range(100000) %}{% for i in range(20000) %}{% set x = r[-1] %}{% endfor %}",
        "{% set r = range(100000) %}{% for i in range(20000) %}{% set x = r|attr(99999) %}{% endfor %}",
        "{% set r = range(100000) %}{% for i in range(20000) %}{% set x = r|last %}{% endfor %}",
        "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{% for i in [ns.x, ns.y] %}{{ loop.changed(i) }}{% endfor %}",
        "{% for i in items %}{{ text }}{% endfor %}",
        "{% set all %}{% for i in items %}A text of some length that stands in the template.{% for j in items %}And one more.{% endfor %}{% endfor %}{% endset %}",
        "{% macro f(x, n) %}{% if n %}{{ f(x ~ x, n - 1) }}{% endif %}{% endmacro %}{{ f(text, 60) }}",
        "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
        "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
        "{{ debug() }}",
    ] {
        assert!(render(endless, &scope).is_err(), "{endless}");
    }
}

#[test]
fn what_is_repeated_counts_each_time_before_it_is_copied() {
    let scope = json!({ "text": "x".repeat(900_000), "n": 3 });
    let list = format!("{{{{ [{}] }}}}", ["text"; 480].join(", "));
    assert!(render(&list, &scope).unwrap_err().0.contains("renders to more than 8388608 bytes"), "a list literal");
    let nested = "{{ {'a': [text, text, text], 'b': {'c': [text, text, text, text, text, text, text]}} }}";
    assert!(render(nested, &scope).is_err(), "in lists and objects");
    assert!(render("{{ [text, text] if n > 2 else n }}", &scope).is_ok(), "what a value may hold");

    let mut templates = Templates::default();
    let scope = Scope(scope.as_object().unwrap().clone());
    templates.add("{{ text }}").unwrap();
    let parts = |count| Value::from(vec!["{{ text }}"; count]);
    assert!(templates.render_value(&parts(4), &scope).is_ok());
    // The fifth exceeds the limit and ends rendering: the template after it, which cannot be rendered, is not reached.
    let Value::Array(mut many) = parts(5) else { unreachable!() };
    many.push(Value::from("{{ missing }}"));
    let error = templates.render_value(&Value::from(many.clone()), &scope).unwrap_err();
    assert_eq!(error.0, "the rendered value is more than 4194304 bytes of text");
    let error = templates.render_request_value(&Value::from(many), &scope, "", &mut Vec::new()).unwrap_err();
    assert_eq!(error.0, "the rendered value is more than 4194304 bytes of text");
}

#[test]
fn an_item_costs_what_is_passed_on_the_way_to_it() {
    let scope = json!({ "text": "äx".repeat(100_000), "items": ["a", "b"] });
    for (template, text) in [
        ("{% for i in range(9000) %}{% if text[0] != 'ä' %}no{% endif %}{% endfor %}", ""),
        ("{{ text[-1] }}{{ text[1] }}{{ text[1.0] }}{{ text|attr(0) }}", "xxxä"),
        ("{{ items[-1] }}{{ items|attr(0) }}{{ items|last }}{{ range(9)[3] }}{{ range(9)|last }}", "bab38"),
        ("{{ 'a\nb'|indent(2.0) }}|{{ [1, 2, 3]|batch(2.0, 0.5)|list }}", "a\n  b|[[1,2],[3,0.5]]"),
        ("{{ items[::-1][0] }}{{ range(9)[2:4] }}{{ ''[::-1] }}{{ [][::-1] }}", "b[2,3][]"),
    ] {
        assert_eq!(render(template, &scope).as_deref(), Ok(text), "{template}");
    }
}

#[test]
fn lists_that_were_cut_or_joined_often_are_as_easy_to_read_as_others() {
    let scope = json!({ "empty": [], "map": { "a": 1 } });
    for step in [
        "ns.x[:]",
        "ns.x + empty",
        "empty + ns.x",
        "ns.x + range(0)",
        "ns.x|chain(empty)",
        "ns.x|reverse",
        "ns.x[::-1]",
    ] {
        let often = format!(
            "{{% set ns = namespace(x=range(0)) %}}{{% for i in range(3000) %}}{{% set ns.x = {step} %}}{{% endfor %}}{{{{ ns.x|list|length }}}}"
        );
        assert_eq!(render(&often, &scope).as_deref(), Ok("0"), "{step}");
    }
    let often = "{% set ns = namespace(x=map) %}{% for i in range(3000) %}{% set ns.x = ns.x|chain(map) %}{% endfor %}{{ ns.x|length }}";
    assert_eq!(render(often, &scope).as_deref(), Ok("1"));
    let joined =
        "{{ ({'a': 1, 'b': 1}|chain({'b': 2}))|tojson }}{{ ([1]|chain([2]))[-1] }}{{ [1]|chain(range(2))|list }}";
    assert_eq!(render(joined, &scope).as_deref(), Ok("{\"a\": 1, \"b\": 2}2[1,0,1]"));
}

#[test]
fn a_template_that_fails_counts_as_what_it_did_until_then() {
    let spends = |most: u64, template: &str, times: usize| {
        work_limit::within(most, || {
            (0..times).for_each(|_| assert!(render(template, &json!({})).is_err()));
            work_limit::is_spent()
        })
    };
    assert!(!spends(10_000_000, "{{ missing.name }}", 100));
    assert!(spends(2_000_000, "{% for i in range(20000) %}{{ i }}{% endfor %}{{ missing.name }}", 1));
}

/// Templates made of pieces in any order.
fn templates() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec!["items", "text", "x", "n", "'a'", "2", "[]", "map"]).prop_map(str::to_owned);
    let expression = leaf.prop_recursive(12, 60, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            (two.clone(), prop::sample::select(vec!["+", "~", "*", "==", "in", "<", "and", "-"]))
                .prop_map(|((a, b), op)| format!("({a} {op} {b})")),
            (
                inner.clone(),
                prop::sample::select(vec!["sort", "list", "join", "upper", "tojson", "pprint", "length", "unique"])
            )
                .prop_map(|(a, filter)| format!("({a}|{filter})")),
            (
                two.clone(),
                prop::sample::select(vec!["join", "replace('a', ", "indent", "batch", "map", "format", "select"])
            )
                .prop_map(|((a, b), filter)| match filter.strip_suffix(' ') {
                    Some(open) => format!("({a}|{open} {b}))"),
                    None => format!("({a}|{filter}({b}))"),
                }),
            two.prop_map(|(a, b)| format!("[{a}, {b}, {a}]")),
            inner.prop_map(|a| format!("{a}[0]")),
        ]
    });
    (expression.clone(), expression).prop_map(|(a, b)| {
        format!(
            "{{% set x = {a} %}}{{% for y in range(9) %}}{{% set x = {b} %}}{{{{ x }}}}{{% endfor %}}{{{{ x ~ x }}}}"
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_template_ends(template in templates()) {
        let items: Vec<u32> = (0..1000).collect();
        let scope = json!({ "items": items, "text": "a b\n".repeat(5000), "x": "x", "n": 1_000_000_000, "map": { "a": 1 } });
        let small = std::thread::Builder::new().stack_size(256 * 1024);
        let rendered = small.spawn(move || render(&template, &scope)).unwrap().join().unwrap();
        prop_assert!(rendered.is_err() || rendered.is_ok_and(|text| text.len() <= MAX_RENDERED));
    }
}
