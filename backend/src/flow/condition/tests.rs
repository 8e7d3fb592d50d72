//! Budgets of conditions: what they change, and what they stop.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::flow::Scope;

fn ask(condition: &str, scope: Value) -> Result<Option<bool>, EvalError> {
    let Value::Object(names) = scope else { unreachable!() };
    let mut conditions = Conditions::default();
    conditions.add(condition)?;
    conditions.answer(condition, &Scope(names))
}

/// Runs work on a thread with a small stack.
fn on_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new().stack_size(256 * 1024).spawn(work).unwrap().join().unwrap()
}

#[test]
fn a_budget_changes_no_answer() {
    let scope = || {
        json!({
            "items": [{ "id": 1, "tags": ["a", "b"], "price": 2.5 }, { "id": 2, "tags": [], "price": 10 }],
            "user": { "name": "ana", "email": "ana@example.com" }, "none": null, "n": 3, "big": 18_446_744_073_709_551_615_u64,
        })
    };
    for holds in [
        "items.exists(i, i.price > 9.0) && items.all(i, i.id > 0)",
        "items.exists_one(i, size(i.tags) == 0)",
        "items.filter(i, i.price > 3.0).map(i, i.id) == [2]",
        "items.map(i, i.price > 3.0, i.id) == [2] && items.map(i, i.tags)[0][1] == 'b'",
        "user.email.matches('^[a-z]+@example[.]com$') && matches(user.name, 'n')",
        "'a' in items[0].tags && !('c' in items[0].tags) && has(user.name) && !has(user.age)",
        "user['name'] + '!' == 'ana!' && {'a': n}.a == 3 && [n, n + 1].size() == 2",
        "n > 2 ? user.name.startsWith('a') : none.what == 1",
        "items[1.0].id == 2 && type(n) == int && -n == 0 - 3 && big > 1u",
        "duration('1h') > duration('1m') && timestamp('2026-01-31T09:30:00Z').getFullYear() == 2026",
        "items.all(i, items.all(j, i.id == j.id || i.tags != j.tags))",
        "none.what == 1 || true",
    ] {
        assert_eq!(ask(holds, scope()), Ok(Some(true)), "{holds}");
    }
    for missing in ["items[5].id == 1", "user.age > 3", "none.what == 1", "nobody == 1", "items.all(i, i.no == 1)"] {
        assert_eq!(ask(missing, scope()), Ok(None), "{missing}");
    }
    for wrong in ["n", "n + user.name == 1", "items[0.5].id == 1", "n.matches('a')", "user.name.matches('(')"] {
        assert!(ask(wrong, scope()).is_err(), "{wrong}");
    }
}

#[test]
fn what_is_too_long_or_too_deep_is_refused_on_any_stack() {
    let chain = |begin: &str, link: &str, n: usize, end: &str| format!("{begin}{}{end}", link.repeat(n));
    let nested =
        |open: &str, middle: &str, close: &str, n: usize| format!("{}{middle}{}", open.repeat(n), close.repeat(n));
    let shapes = [
        chain("", "1+", 4000, "1"),
        chain("a", ".b", 4000, ""),
        chain("a", "[0]", 2600, ""),
        chain("a", ".size()", 1100, ""),
        chain("a", "==a", 2600, ""),
        chain("", "a?b:", 2000, "c"),
        nested("(", "1", ")", 4000),
        nested("[", "1", "]", 4000),
        nested("{1:", "1", "}", 1600),
        nested("a.all(a,", "true", ")", 900),
        nested("f(", "1", ")", 2700),
    ];
    for shape in shapes {
        assert!(shape.len() <= MAX_CONDITION, "it is not only too long");
        let start = shape[..20].to_owned();
        assert!(on_small_stack(move || ask(&shape, json!({ "a": 1, "b": 1 }))).is_err(), "{start}");
    }
    assert!(ask(&" ".repeat(MAX_CONDITION + 1), json!({})).unwrap_err().0.contains("longer than 8192 bytes"));
    // The deepest allowed nesting.
    let deepest = chain("", "1+", MAX_DEPTH - 3, "1 > 0");
    assert_eq!(on_small_stack(move || ask(&deepest, json!({}))), Ok(Some(true)));
    let many = (0..400).map(|n| format!("a == {n}")).collect::<Vec<_>>().join("||");
    assert_eq!(on_small_stack(move || ask(&many, json!({ "a": 399 }))), Ok(Some(true)));
}

#[test]
fn work_beyond_the_budget_is_an_error_and_never_an_answer() {
    let numbers: Vec<u32> = (0..5000).collect();
    let scope = || json!({ "xs": numbers, "text": "x".repeat(200_000), "deep": [[[[[[[[1]]]]]]]] });
    for fine in ["xs.all(x, x >= 0)", "xs.map(x, x * 2).exists(x, x == 9998)", "text.matches('x$')"] {
        assert_eq!(ask(fine, scope()), Ok(Some(true)), "{fine}");
    }
    for endless in [
        "xs.all(a, xs.all(b, xs.all(c, a + b + c >= 0)))",
        "xs.exists(a, xs.exists(b, a + b < 0)) || true",
        "!xs.all(a, xs.map(b, a + b).size() > 0)",
        "xs.map(x, x + x).map(x, xs.map(y, [x, y])).size() > 0",
        "[xs, xs, xs, xs].map(a, [a, a, a, a].map(b, [b, b, b, b].map(c, [c, c, c, c]))).size() > 0",
        "xs.all(x, (text + text).size() > 0)",
        "xs.all(x, text.contains('y') || x >= 0)",
        "xs.all(x, text.matches('x+y') || true)",
        "xs.all(x, string(x).matches('a{' + string(x) + '}') || true)",
        "xs.exists(x, xs == xs.map(y, y + 1))",
        "xs.exists(x, -1 in xs)",
        "xs.filter(x, xs.filter(y, y > x).size() > 6000).size() == 0",
        "xs.exists_one(x, xs.exists_one(y, y == x))",
    ] {
        let error = ask(endless, scope()).expect_err(endless);
        assert!(error.0.contains("takes more than 200000 steps"), "{endless}: {error}");
    }
}

#[test]
fn matching_costs_what_the_search_takes_and_not_only_the_text() {
    // The position of each `x` matters a thousand characters later, so every text leads to different states.
    let text: String = (0..50_000_u32)
        .map(|n| if (n.wrapping_mul(2_654_435_761) >> 16).count_ones() % 2 == 0 { 'x' } else { 'y' })
        .collect();
    let scope = || json!({ "text": text, "accents": format!("é{text}"), "words": "ein paar Wörter ".repeat(500) });
    for heavy in [
        "text.matches('^(x|y)*x(x|y){1000}z')",
        "accents.matches('\\\\B(x|y)*x(x|y){900}z')",
        "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all(n, text.matches('[xy]*x[xy]{' + string(n * 9) + '}z') || true)",
    ] {
        let error = ask(heavy, scope()).expect_err(heavy);
        assert!(error.0.contains("takes more than 200000 steps") && error.0.contains("simpler patterns"), "{error}");
    }
    for light in [
        "text.matches('^[xy]+$') && !text.matches('z')",
        "words.matches('\\\\bWörter\\\\b') && !words.matches('(?i)\\\\bproject\\\\s+falcon\\\\b')",
        "words.matches('^[\\\\w\\\\s]+$')",
    ] {
        assert_eq!(ask(light, scope()), Ok(Some(true)), "{light}");
    }
    let large = ask("text.matches('\\\\w{900}')", scope()).unwrap_err();
    assert!(large.0.contains("takes more than 524288 bytes when it is compiled; repeat less in it"), "{large}");
}

/// Conditions with any nesting, over long lists.
fn conditions() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("xs".to_owned()),
        Just("x".to_owned()),
        Just("text".to_owned()),
        Just("1".to_owned()),
        Just("'a'".to_owned()),
        Just("true".to_owned()),
        Just("missing.field".to_owned()),
    ];
    leaf.prop_recursive(24, 200, 4, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            (two.clone(), prop::sample::select(vec!["+", "==", "&&", "||", "<", "in", "*", "-"]))
                .prop_map(|((a, b), op)| format!("({a} {op} {b})")),
            (two.clone(), prop::sample::select(vec!["all", "exists", "exists_one", "map", "filter"]))
                .prop_map(|((a, b), fold)| format!("{a}.{fold}(x, {b})")),
            two.clone().prop_map(|(a, b)| format!("[{a}, {b}, {a}]")),
            two.clone().prop_map(|(a, b)| format!("{{'k': {a}, 'l': {b}}}")),
            two.clone().prop_map(|(a, b)| format!("{a}[{b}]")),
            (two, inner.clone()).prop_map(|((a, b), c)| format!("({a} ? {b} : {c})")),
            inner.clone().prop_map(|a| format!("string({a}).matches({a})")),
            inner.prop_map(|a| format!("!{a}.k.size()")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_condition_ends(condition in conditions()) {
        let xs: Vec<u32> = (0..300).collect();
        let scope = json!({ "xs": xs, "x": [xs, xs], "text": "a".repeat(10_000) });
        let _ = on_small_stack(move || ask(&condition, scope).is_ok());
    }
}
