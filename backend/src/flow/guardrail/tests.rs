//! Guardrails as written in flows: their findings and order, and what is refused when a flow is saved.

use std::sync::Arc;

use serde_json::{Value, json};
use shared::JsonMap;
use shared::definition::GuardrailScope;

use super::{GuardrailVerdict, Matter, action};
use crate::flow::{Compiled, Environment, Scope, check, work_limit};
use crate::mask::Mask;

fn flow(guardrails: &str) -> Compiled {
    let source = format!("id: f\n{guardrails}\nnodes: {{ a: {{ set: {{ x: 1 }} }} }}\n");
    let checked = check(&source);
    assert_eq!(checked.errors, [], "{source}");
    Compiled::new(checked.flow.expect("a flow"), 1).expect("a sound flow")
}

fn look(guardrails: &str, subject: GuardrailScope, values: &Value) -> GuardrailVerdict {
    look_with(&flow(guardrails), subject, values)
}

fn look_with(flow: &Compiled, subject: GuardrailScope, values: &Value) -> GuardrailVerdict {
    let values = values.as_object().cloned().unwrap_or_default();
    let kind = if subject == GuardrailScope::Actions { "tool" } else { "output" };
    let matter =
        Matter { id: String::new(), subject, action: action(kind, "shell", Some("clerk")), values, request: None };
    let scope =
        || Scope(JsonMap::from_iter([("run".to_owned(), json!({ "flow": "f" })), ("context".to_owned(), json!({}))]));
    flow.check_matter(&matter, scope, &|_| None)
}

#[test]
fn the_server_s_own_secrets_are_found_in_any_form() {
    let environment =
        Environment { secrets: Arc::new(Mask::new(["s3cr3t/value", "4815162342"])), ..Default::default() };
    let environment = Arc::new(environment);
    let seen = |guardrails: &str, subject, values: &Value| {
        look_with(&flow(guardrails).with_environment(Arc::clone(&environment)), subject, values)
    };
    for values in [
        json!({ "note": "Use s3cr3t/value." }),
        json!({ "url": "https://x/?key=s3cr3t%2Fvalue" }),
        json!({ "deep": [{ "body": "{\"key\": \"s3cr3t\\/value\"}" }] }),
        json!({ "pin": 4_815_162_342_u64 }),
    ] {
        let actions = seen("guardrails: [secrets]", GuardrailScope::Actions, &values);
        assert_eq!(found(&actions), ["secrets block -"], "{values}");
        assert!(actions.findings[0].reason.contains("a secret of this server"), "{actions:?}");
        assert!(blocks(&seen("guardrails: [secrets]", GuardrailScope::Edits, &values)), "{values}");
        assert!(!blocks(&look("guardrails: [secrets]", GuardrailScope::Edits, &values)), "a server without it");
    }
    let redacts = "guardrails: [{ name: secrets, effect: redact }]";
    let verdict = seen(redacts, GuardrailScope::Outputs, &json!({ "note": "Use s3cr3t/value." }));
    assert_eq!(verdict.redacted.map(Value::Object), Some(json!({ "note": "Use [redacted]." })));
}

/// Formats each finding as `guardrail effect key`.
fn found(verdict: &GuardrailVerdict) -> Vec<String> {
    let words = |finding: &super::Finding| {
        format!("{} {} {}", finding.guardrail, finding.effect.as_str(), finding.key.as_deref().unwrap_or("-"))
    };
    verdict.findings.iter().map(words).collect()
}

const CARD: &str = "Card 4111 1111 1111 1111, please.";

fn blocks(verdict: &GuardrailVerdict) -> bool {
    verdict.vetoes().next().is_some()
}

#[test]
fn without_a_word_of_the_flow_the_first_two_look_and_false_is_none() {
    let command = json!({ "command": "rm -rf /" });
    assert_eq!(found(&look("", GuardrailScope::Actions, &command)), ["code-safety block -"]);
    assert_eq!(found(&look("", GuardrailScope::Actions, &json!({ "text": CARD }))), ["pii-redaction block -"]);
    assert_eq!(found(&look("", GuardrailScope::Actions, &json!({ "command": "ls" }))), [""; 0]);
    for none in ["guardrails: false", "guardrails: []"] {
        assert_eq!(look(none, GuardrailScope::Actions, &command), GuardrailVerdict::default());
    }
}

#[test]
fn personal_data_is_redacted_in_edits_and_outputs_and_an_article_may_speak_of_commands() {
    let values = json!({ "a": CARD, "b": { "deep": ["SSN 078-05-1120", 7] }, "c": "kill -9" });
    for subject in [GuardrailScope::Edits, GuardrailScope::Outputs] {
        let verdict = look("", subject, &values);
        assert_eq!(found(&verdict), ["pii-redaction redact a", "pii-redaction redact b"]);
        let expected =
            json!({ "a": "Card [redacted], please.", "b": { "deep": ["SSN [redacted]", 7] }, "c": "kill -9" });
        assert_eq!(verdict.redacted.map(Value::Object), Some(expected));
    }
    let reasons: Vec<_> =
        look("", GuardrailScope::Outputs, &values).findings.into_iter().map(|one| one.reason).collect();
    assert_eq!(reasons, ["it holds a card number", "it holds a social security number"]);
    assert!(
        blocks(&look("", GuardrailScope::Actions, &json!({ "n": 4_111_111_111_111_111_u64 }))),
        "a number in a call"
    );
    assert!(blocks(&look("", GuardrailScope::Actions, &json!({ "4111111111111111": 1 }))), "a name in a call");
}

#[test]
fn what_cannot_be_redacted_in_edits_and_outputs_is_blocked() {
    let values = json!({
        "card": { "number": 4_111_111_111_111_111_u64 }, "names": [{ "4111111111111111": true }],
        "sizes": [4_111, 1_111, 1_111, 1_111], "fine": 17,
    });
    for subject in [GuardrailScope::Edits, GuardrailScope::Outputs] {
        let verdict = look("", subject, &values);
        assert_eq!(found(&verdict), ["pii-redaction block card", "pii-redaction block names"], "{verdict:?}");
        assert_eq!(verdict.findings[0].reason, "it holds a card number, but nothing can be redacted here");
    }
}

#[test]
fn the_first_that_blocks_ends_it_and_each_sees_what_the_ones_before_left() {
    let rules = "guardrails:
  - { name: soft, pattern: falcon, effect: warn }
  - { name: names, pattern: 'project\\s+falcon', effect: redact }
  - { name: again, pattern: falcon }
  - { name: never, pattern: please }
  - { name: end, pattern: 'the end' }";
    let verdict = look(rules, GuardrailScope::Outputs, &json!({ "x": "project falcon, please" }));
    assert_eq!(found(&verdict), ["soft warn x", "names redact x", "never block x"], "`again` sees it redacted");
    let verdict = look(rules, GuardrailScope::Outputs, &json!({ "x": "the falcon, please, the end" }));
    assert_eq!(found(&verdict), ["soft warn x", "again block x"]);
    assert!(verdict.redacted.is_none());
}

#[test]
fn a_text_that_takes_too_long_to_search_is_blocked_and_says_so() {
    // Each match is short, but looks ahead to the end of the digits.
    let rules = |more: &str| {
        format!("guardrails: [{{ name: own, pattern: '\\d+ *EUR\\b|\\d{{4}}'{more}, message: No sums. }}]")
    };
    let long = json!({ "a": "short", "b": format!("{} ä", "1".repeat(8_000)), "c": "1234" });
    for (effect, subject) in [
        (", effect: redact", GuardrailScope::Edits),
        (", effect: redact", GuardrailScope::Actions),
        (", effect: redact", GuardrailScope::Outputs),
    ] {
        let verdict = look(&rules(effect), subject, &long);
        let key = if subject == GuardrailScope::Actions { "-" } else { "b" };
        assert_eq!(found(&verdict), [format!("own block {key}")]);
        assert!(verdict.findings[0].reason.contains("takes more than 16777216 steps"), "{verdict:?}");
        assert_eq!(verdict.redacted, None, "nothing is half redacted");
    }
    let verdict = look(&rules(""), GuardrailScope::Outputs, &long);
    assert_eq!(found(&verdict), ["own block b", "own block c"], "one match is enough to block");
    assert_eq!(verdict.findings[0].reason, "No sums.");
}

#[test]
fn settings_say_where_it_looks_what_it_does_and_what_it_says() {
    let rules = "guardrails: [{ name: code-safety, on: [outputs], effect: warn, message: Mind this. }, { name: pii-redaction, effect: redact }, secrets]";
    assert_eq!(found(&look(rules, GuardrailScope::Actions, &json!({ "c": "rm -rf /" }))), [""; 0]);
    let verdict = look(rules, GuardrailScope::Outputs, &json!({ "c": "rm -rf /" }));
    assert_eq!(
        (found(&verdict), verdict.findings[0].reason.as_str()),
        (vec!["code-safety warn c".to_owned()], "Mind this.")
    );
    let verdict = look(rules, GuardrailScope::Actions, &json!({ "c": CARD, "k": "AKIAABCDEFGHIJKLMNOP" }));
    assert_eq!(found(&verdict), ["pii-redaction redact -", "secrets block -"]);
    let verdict = look(rules, GuardrailScope::Actions, &json!({ "c": 4_111_111_111_111_111_u64 }));
    assert_eq!(found(&verdict), ["pii-redaction block -"], "what cannot be redacted in a call is blocked");
}

#[test]
fn a_condition_sees_the_action_its_arguments_and_all_texts() {
    let rule = |when: &str| format!("guardrails: [{{ name: own, when: \"{when}\", message: Ask finance first. }}]");
    let refund = rule("action.name == 'shell' && action.agent == 'clerk' && arguments.amount > 1000");
    let verdict = look(&refund, GuardrailScope::Actions, &json!({ "amount": 2000 }));
    assert_eq!(verdict.findings[0].reason, "Ask finance first.");
    assert_eq!(found(&look(&refund, GuardrailScope::Actions, &json!({ "amount": 10 }))), [""; 0]);
    assert!(blocks(&look(&refund, GuardrailScope::Actions, &json!({}))), "what is not there cannot be judged");
    assert!(!blocks(&look(&refund, GuardrailScope::Outputs, &json!({ "x": 1 }))), "an output has no such name");
    let text = rule("text.contains('falcon')");
    assert!(blocks(&look(&text, GuardrailScope::Outputs, &json!({ "a": [{ "b": "the falcon" }] }))));
    assert!(blocks(&look(&rule("run.flow == 'f'"), GuardrailScope::Edits, &json!({}))));
}

#[test]
fn built_in_guardrails_read_many_ordinary_texts_and_block_once_the_work_of_a_transition_is_spent() {
    let flow = flow("guardrails: [code-safety, pii-redaction, secrets]");
    let look = |text: String| look_with(&flow, GuardrailScope::Actions, &json!({ "text": text }));
    work_limit::within(work_limit::MAX_AT_ONCE / 16, || {
        for _ in 0..50 {
            let text = "Please call +1 (555) 010-9999 about order 4711.\n".repeat(120);
            assert_eq!(look(text), GuardrailVerdict::default());
        }
    });
    let digits = || "1 ".repeat(4096);
    assert_eq!(look(digits()), GuardrailVerdict::default());
    let verdict = work_limit::within(900_000, || look(digits()));
    assert_eq!(found(&verdict), ["pii-redaction block -"]);
    assert!(verdict.findings[0].reason.contains("too much work together"), "{verdict:?}");
}

#[test]
fn a_condition_that_cannot_be_answered_blocks_unless_the_flow_says_otherwise() {
    let rule =
        |more: &str| format!("guardrails: [{{ name: own, when: \"arguments.n + 1 > 2\", on: [actions]{more} }}]");
    let verdict = look(&rule(""), GuardrailScope::Actions, &json!({ "n": "text" }));
    assert_eq!(found(&verdict), ["own block -"]);
    assert!(verdict.findings[0].reason.contains("cannot be evaluated"), "{verdict:?}");
    assert_eq!(found(&look(&rule(", effect: warn"), GuardrailScope::Actions, &json!({}))), ["own block -"]);
    for value in [json!({ "n": "text" }), json!({})] {
        assert_eq!(look(&rule(", on_error: allow"), GuardrailScope::Actions, &value), GuardrailVerdict::default());
    }
}

#[test]
fn a_name_that_is_not_there_is_refused_and_never_passed() {
    let expect = |guardrails: &str, expected: &[(&str, &str)]| {
        let checked = check(&format!("id: f\nguardrails: {guardrails}\nnodes: {{ a: {{ set: {{ x: 1 }} }} }}\n"));
        let found: Vec<_> = checked
            .errors
            .iter()
            .map(|one| (format!("{}:{}", one.line.unwrap_or(0), one.column.unwrap_or(0)), one.message.clone()))
            .collect();
        assert_eq!(found.len(), expected.len(), "{guardrails}: {found:#?}");
        for ((place, message), (line, words)) in found.iter().zip(expected) {
            assert!(place == line && message.contains(words), "{guardrails}: {place} {message}");
        }
    };
    expect("[pii-redactoin]", &[("2:14", "there is no guardrail `pii-redactoin`")]);
    expect("[pii-redactoin]", &[("2:14", "did you mean `pii-redaction`?")]);
    expect("[{ name: house-rules }]", &[("2:22", "there is no guardrail `house-rules`")]);
    expect("[code-safety, { name: code-safety, effect: warn }]", &[("2:35", "is listed twice")]);
    expect("[{ name: x, pattern: '(a' }]", &[("2:34", "unclosed group")]);
    expect("[{ name: x, pattern: 'a*' }]", &[("2:34", "matches empty text")]);
    expect("[{ name: x, when: 'a ==' }]", &[("2:31", "the condition `a ==` cannot be read")]);
    expect("[{ name: x, when: 'argumens.a == 1' }]", &[("2:31", "but not `argumens`; did you mean `arguments`?")]);
    expect("[{ name: x, when: 'true', pattern: b }]", &[("2:48", "exactly one of")]);
    expect("[{ name: secrets, pattern: b }]", &[("2:40", "`secrets` is built in")]);
    expect("[{ name: x, when: 'true', effect: redact }]", &[("2:47", "finds no text to redact")]);
    expect("[{ name: code-safety, effect: redact }]", &[("2:43", "finds no text to redact")]);
    expect("[{ name: x, pattern: b, effect: redcat }]", &[("2:45", "did you mean `redact`?")]);
    expect("[{ name: x, pattern: b, on: [] }]", &[("2:37", "check nothing")]);
    expect("[{ name: x, pattern: b, on_error: allow }]", &[("2:47", "only a condition")]);
    expect(
        "[{ name: x, patern: b }]",
        &[("2:22", "there is no guardrail `x`"), ("2:25", "unknown key `patern`; did you mean `pattern`?")],
    );
    expect("[{ name: x, webhook: { url: nowhere } }]", &[("2:41", "expected a literal URL")]);
    expect("[{ name: x, webhook: { url: 'https://x', timeout: 0s } }]", &[("2:63", "no time to answer")]);
    expect("[{ name: x, webhook: { url: 'https://x', timeout: 1m } }]", &[("2:63", "at most 20s")]);
    expect("[{ name: x, webhook: { url: 'https://x' }, effect: redact }]", &[("2:64", "finds no text to redact")]);
    expect("[{ name: x, webhook: { url: 'https://x' }, on_error: allow }]", &[("2:66", "a webhook has its own")]);
    expect("[{ name: 'a b', pattern: b }]", &[("2:22", "is not a name for a guardrail")]);
    expect("true", &[("2:13", "expected a list of guardrails, or false for none")]);
    expect("7", &[("2:13", "expected")]);
    let switched = check(
        "id: f\ntools: { t: { builtin: demo_publish } }\ngates: { before_tool: { t: { guardrails: true } } }\n\
         nodes: { a: { tool: t, next: b }, b: { human: { prompt: x, guardrails: true } } }\n",
    );
    let places: Vec<_> = switched.errors.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(places, ["/gates/before_tool/t/guardrails", "/nodes/b/human/guardrails"]);
}
