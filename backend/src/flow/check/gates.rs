//! Gates: what is supported, and settings that contradict each other. (Gates that never fire are found with the names.)

use serde_json::Value;
use shared::definition::{Gate, GateSetting};
use shared::error::pointer;

use super::{Checker, handlers, policy, timers};
use crate::flow::compiled::matches;
use crate::flow::limits::MAX_GATES;

pub fn check(checker: &mut Checker<'_>) {
    let gates = &checker.flow.gates;
    for (name, setting) in gates.before_tool.iter().take(MAX_GATES) {
        if let GateSetting::Gate(gate) = setting {
            let base = pointer(["gates", "before_tool", name]);
            self::gate(checker, &base, gate);
            if let Some(when) = &gate.when {
                arguments(checker, &format!("{base}/when"), name, when);
                metadata(checker, &format!("{base}/when"), when);
            }
        }
    }
    let others = [
        ("before_agent", !gates.before_agent.is_empty()),
        ("before_emergent", gates.before_emergent.is_some()),
        ("before_return", gates.before_return.is_some()),
        ("before_strategy_override", gates.before_strategy_override.is_some()),
    ];
    for (trigger, is_written) in others {
        if is_written {
            checker.unsupported(&pointer(["gates", trigger]), &format!("the gate `{trigger}`"));
        }
    }
}

fn gate<'a>(checker: &mut Checker<'a>, base: &str, gate: &'a Gate) {
    timers::of_gate(checker, base, gate);
    handlers::of_gate(checker, base, gate);
    policy::reviewers(checker, &format!("{base}/reviewers"), None, &gate.reviewers);
}

/// A condition over an argument that is not there keeps the gate closed, whatever it says: a name that a tool does not
/// have is more likely a slip than a wish.
fn arguments(checker: &mut Checker<'_>, path: &str, pattern: &str, when: &str) {
    let fields = checker.conditions.fields(when, "arguments");
    let flow = checker.flow;
    let own = |name: &str| name == pattern || !flow.gates.before_tool.contains_key(name);
    for (name, tool) in flow.tools.iter().filter(|(name, _)| matches(pattern, name) && own(name)) {
        let Some(known) = tool.parameters.as_ref().and_then(properties) else { continue };
        for field in fields.iter().filter(|field| !known.contains(&field.as_str())) {
            let guess = checker.guess(field, known.iter().copied());
            let message = format!(
                "`{name}` has no parameter `{field}`: where an argument is missing the gate stays closed, whatever else \
                 this says{guess}"
            );
            checker.warn(path, message);
        }
    }
}

/// What the launch did not give, an earlier decision may: then a reviewer says whether the next one is asked at all.
fn metadata(checker: &mut Checker<'_>, path: &str, when: &str) {
    if checker.conditions.fields(when, "context").contains("metadata") {
        let message = "whoever decides a review may add to `context.metadata` what the launch did not give, and so open \
                       this gate; let it rest on a key of `input`";
        checker.warn(path, message);
    }
}

/// The names of an object's properties, where its schema names all of them.
fn properties(schema: &Value) -> Option<Vec<&str>> {
    let is_open = schema.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false));
    if is_open || ["patternProperties", "$ref", "allOf", "anyOf", "oneOf"].iter().any(|key| schema.get(key).is_some()) {
        return None;
    }
    Some(schema.get("properties")?.as_object()?.keys().map(String::as_str).collect())
}

#[cfg(test)]
mod tests {
    use crate::flow::check;

    #[test]
    fn a_condition_over_an_argument_that_the_tool_does_not_have_is_doubtful() {
        let warned = |gate: &str, when: &str| -> Vec<String> {
            let source = format!(
                "id: f\ntools:\n  pay: {{ builtin: demo_publish, parameters: {{ properties: {{ amount: {{}}, to: {{}} }} }} }}\n  \
                 any: {{ builtin: demo_publish }}\n\
                 gates:\n  before_tool:\n    \"{gate}\": {{ when: '{when}' }}\n\
                 nodes: {{ a: {{ tool: pay, next: b }}, b: {{ tool: any }} }}\n"
            );
            let checked = check(&source);
            assert_eq!(checked.errors, []);
            let at = |line: Option<u32>| line.map_or(0, |line| line);
            checked.warnings.iter().map(|warning| format!("{} {}", at(warning.line), warning.message)).collect()
        };
        for (gate, when) in
            [("pay", "arguments.amuont > 10"), ("*", "true && [1].exists(x, arguments[\"amuont\"] > x)")]
        {
            let found = warned(gate, when);
            let words = "7 `pay` has no parameter `amuont`: ";
            assert!(
                matches!(&found[..], [one] if one.starts_with(words) && one.ends_with("says; did you mean `amount`?")),
                "{gate} {when}: {found:?}"
            );
        }
        for fine in ["arguments.amount > 10 && arguments.to.iban == \"x\"", "has(arguments.more)", "visit > 1"] {
            assert_eq!(warned("pay", fine), [""; 0]);
        }
        assert_eq!(warned("any", "arguments.whatever"), [""; 0], "nothing is known of its arguments");
        for doubtful in ["context.metadata.trusted != true", "has(context[\"metadata\"].trusted)"] {
            let found = warned("pay", doubtful);
            let words = "whoever decides a review may add to `context.metadata`";
            assert!(matches!(&found[..], [one] if one.contains(words)), "{doubtful}: {found:?}");
        }
        assert_eq!(warned("pay", "context.tenant == \"x\" || input.metadata == 1"), [""; 0]);
    }
}
