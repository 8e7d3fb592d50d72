//! Checks what templates and conditions read of values whose members are known: a missing member makes a condition
//! false, and ends a run at a template. What may be missing on purpose (`has`, `default`) is not checked.

use std::collections::BTreeSet;

use shared::decision::Via;
use shared::definition::{Alternative, ChoiceKind, Human, Node};
use shared::error::pointer;
use shared::id::NodeId;
use strum::VariantArray as _;

use super::Checker;
use super::gates::properties;
use crate::flow::MemberPath;

/// The members of a decision of a human node.
const DECISION: [&str; 10] =
    ["option", "alternative", "kind", "text", "comment", "edits", "metadata", "by", "at", "via"];
const CONTEXT: [&str; 4] = ["user", "tenant", "session", "metadata"];
const RUN: [&str; 4] = ["id", "flow", "version", "requested_by"];
/// The members of what a validator checks.
const RESPONSE: [&str; 4] = ["option", "text", "edits", "metadata"];

/// Warns of members that an expression at `path` reads, and that do not exist.
pub fn read(checker: &mut Checker<'_>, path: &str, read: &BTreeSet<MemberPath>) {
    let flow = checker.flow;
    let asking: Vec<&str> = flow.humans().map(|(id, _)| id.as_str()).collect();
    // Of a longer path, the shorter ones are read too.
    for member in read {
        let parts: Vec<&str> = member.iter().map(String::as_str).collect();
        let (of, known, field) = match parts[..] {
            ["decisions", node] if checker.nodes_whole && !asking.contains(&node) => {
                let guess = checker.guess(node, asking.iter().copied());
                let message = format!("no person is asked at a node `{node}`, so `decisions.{node}` is missing{guess}");
                checker.warn(path, message);
                continue;
            }
            ["decisions", node, field] => (format!("decisions.{node}"), DECISION.to_vec(), field),
            ["decision", field] => ("decision".to_owned(), DECISION.to_vec(), field),
            ["context", field] => ("context".to_owned(), CONTEXT.to_vec(), field),
            ["run", field] => ("run".to_owned(), RUN.to_vec(), field),
            ["response", field] => ("response".to_owned(), RESPONSE.to_vec(), field),
            ["input", field] => match flow.input.as_ref().and_then(properties) {
                Some(known) => ("input".to_owned(), known, field),
                None => continue,
            },
            _ => continue,
        };
        if !known.contains(&field) {
            let guess = checker.guess(field, known.iter().copied());
            checker.warn(path, format!("`{of}` has no `{field}`{guess}"));
        }
    }
}

/// Warns of texts that a condition at `path` compares parts of a decision with, and that these never are.
pub fn compared(checker: &mut Checker<'_>, path: &str, compared: &BTreeSet<(MemberPath, String)>) {
    let flow = checker.flow;
    for (member, text) in compared {
        let parts: Vec<&str> = member.iter().map(String::as_str).collect();
        let (node, field) = match parts[..] {
            ["decision", field] => (node_at(checker, path).map(|(id, _)| id.as_str()), field),
            ["decisions", node, field] => (Some(node), field),
            _ => continue,
        };
        let known: Vec<&str> = match field {
            "kind" => ChoiceKind::VARIANTS.iter().map(Into::into).collect(),
            "via" => Via::VARIANTS.iter().map(Into::into).collect(),
            "option" | "alternative" => {
                let human = flow.humans().find(|(id, _)| Some(id.as_str()) == node);
                match human.and_then(|(_, human)| options(human)) {
                    Some(known) => known,
                    None => continue,
                }
            }
            _ => continue,
        };
        if !known.contains(&text.as_str()) {
            let guess = checker.guess(text, known.iter().copied());
            checker.warn(path, format!("`{}` is never `{text}`{guess}", parts.join(".")));
        }
    }
}

/// Returns the node that an expression belongs to.
pub fn node_at<'a>(checker: &Checker<'a>, path: &str) -> Option<(&'a NodeId, &'a Node)> {
    let is_at =
        |id: &NodeId| path.strip_prefix(&pointer(["nodes", id.as_str()])).is_some_and(|rest| rest.starts_with('/'));
    checker.flow.nodes.iter().find(|(id, _)| is_at(id))
}

/// Returns the ids of all options and alternatives of a node. `None` if a run can have others.
fn options(human: &Human) -> Option<Vec<&str>> {
    if human.options_key.is_some() {
        return None;
    }
    let own = human.options.iter().map(|option| option.id.as_str());
    let choices = human.alternatives.iter().filter_map(Alternative::choice);
    Some(own.chain(choices.map(|choice| choice.id.as_str())).collect())
}

#[cfg(test)]
mod tests {
    use shared::error::Mistake;

    use crate::flow::{CheckedFlow, check};

    const FLOW: &str = r#"
id: f
input: { type: object, properties: { amount: { type: number }, draft: { type: string } } }
nodes:
  ask:
    human:
      prompt: '{{ "Well?" }}'
      options: [{ id: approve, label: "Yes" }, { id: escalate, label: More }]
      alternatives: [{ id: later, description: Tomorrow }]
      validator: { when: 'response.text != "?"' }
    next: [{ to: second, when: 'decision.option == "approve"' }, { to: end, else: true }]
  second: { human: { title: '{{ decisions.ask.alternative }}', prompt: 'Sure?', options: [{ id: ok, label: OK }] }, read_keys: [draft] }
"#;

    /// The expressions of the flow that tests replace.
    const PROMPT: &str = r#"{{ "Well?" }}"#;
    const VALIDATOR: &str = r#"response.text != "?""#;
    const WHEN: &str = r#"decision.option == "approve""#;

    fn checked(place: &str, expression: &str) -> CheckedFlow {
        check(&FLOW.replace(place, &expression.replace('\'', "''")))
    }

    fn messages(mistakes: Vec<Mistake>) -> Vec<String> {
        mistakes.into_iter().map(|mistake| mistake.message).collect()
    }

    #[test]
    fn members_that_do_not_exist_are_named() {
        for (place, expression, expected) in [
            (WHEN, "decision.optoin == \"approve\"", "`decision` has no `optoin`; did you mean `option`?"),
            (
                WHEN,
                "decisions.secnd.option == \"ok\"",
                "no person is asked at a node `secnd`, so `decisions.secnd` is missing; did you mean `second`?",
            ),
            (
                WHEN,
                "decisions[\"second\"].optoin == \"ok\"",
                "`decisions.second` has no `optoin`; did you mean `option`?",
            ),
            (WHEN, "input.amuont > 5", "`input` has no `amuont`; did you mean `amount`?"),
            (WHEN, "context.usr == \"ana\"", "`context` has no `usr`; did you mean `user`?"),
            (WHEN, "run.flwo == \"f\"", "`run` has no `flwo`; did you mean `flow`?"),
            (WHEN, "decision.option == \"escalat\"", "`decision.option` is never `escalat`; did you mean `escalate`?"),
            (WHEN, "decision.option in [\"approve\", \"more\"]", "`decision.option` is never `more`"),
            (
                WHEN,
                "decisions.second.option != \"okk\"",
                "`decisions.second.option` is never `okk`; did you mean `ok`?",
            ),
            (WHEN, "decision.via == \"timout\"", "`decision.via` is never `timout`; did you mean `timeout`?"),
            (WHEN, "decision.kind == \"reject\"", "`decision.kind` is never `reject`"),
            (VALIDATOR, "response.txt != \"\"", "`response` has no `txt`; did you mean `text`?"),
            (PROMPT, "{{ input.amuont }}", "`input` has no `amuont`; did you mean `amount`?"),
        ] {
            assert_eq!(messages(checked(place, expression).warnings), [expected], "{expression}");
        }
    }

    #[test]
    fn what_a_node_may_not_read_is_named() {
        let expected = "`amount` is missing here: it is not among the node's `read_keys`";
        assert_eq!(messages(checked("Sure?", "{{ amount }} of {{ draft }}").warnings), [expected]);
    }

    #[test]
    fn filters_tests_and_functions_that_do_not_exist_are_errors() {
        for (template, expected) in [
            ("{{ draft | urlencod }}", Some("there is no filter `urlencod`")),
            ("{% filter nofilter %}x{% endfilter %}", Some("there is no filter `nofilter`")),
            ("{% if draft is notest %}x{% endif %}", Some("there is no test `notest`")),
            ("{{ upper(draft) }}", Some("`upper` is a filter, not a function: write `value | upper`")),
            ("{{ nofunction(draft) }}", Some("there is no function `nofunction`")),
            ("{% macro twice(x) %}{{ x }}{{ x }}{% endmacro %}{{ twice(draft) }}", None),
            ("{{ draft | urlencode | default('') | join(', ') | tojson | indent(2) }} {{ range(3) | list }}", None),
            ("{% if draft is defined and draft is string %}{{ dict(a=draft) | items | list }}{% endif %}", None),
        ] {
            let errors = check(&FLOW.replace(PROMPT, &template.replace('\'', "''"))).errors;
            let found: Vec<_> = errors.iter().map(|error| error.message.as_str()).collect();
            assert_eq!(found, Vec::from_iter(expected), "{template}");
        }
    }

    #[test]
    fn members_that_exist_or_may_be_missing_are_not() {
        for (place, expression) in [
            (
                WHEN,
                "decision.option == \"approve\" || decision.alternative == \"later\" || decision.option == \"later\"",
            ),
            (WHEN, "decisions.second.via == \"human\" && decision.metadata.anything == 1"),
            (WHEN, "has(decision.optoin) || input.amount > 5.0 || context.metadata.tier == \"gold\""),
            (PROMPT, "{{ input.amuont | default(5) }} {% if run.nope is defined %}x{% endif %}"),
            (PROMPT, "{% for run in input.draft %}{{ run.nope }}{% endfor %}"),
        ] {
            assert_eq!(messages(checked(place, expression).warnings), Vec::<String>::new(), "{expression}");
        }
    }
}
