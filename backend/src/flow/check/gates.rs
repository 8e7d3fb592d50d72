//! Checks gates: unsupported settings, and settings that contradict each other. (`names` finds gates that never apply.)

use indexmap::IndexMap;
use serde_json::Value;
use shared::definition::{ActionKind, Gate, GateSetting};
use shared::error::pointer;

use super::{Checker, guardrails, handlers, policy, stakes, timers};
use crate::flow::compiled::{matches, setting_of};
use crate::flow::limits::MAX_GATES;

/// The reason why gates of agents and of the output have no alternatives to choose.
const NO_CALL: &str = "only calls can have alternatives";

pub fn check(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    let gates = &flow.gates;
    before_tools(checker, "/gates/before_tool", &gates.before_tool);
    for (name, agent) in &flow.agents {
        let base = pointer(["agents", name, "gates", "before_tool"]);
        before_tools(checker, &base, &agent.gates.before_tool);
        let is_closed = |tool: &str| {
            setting_of(&gates.before_tool, tool).is_some_and(|(_, of_flow)| *of_flow != GateSetting::Switch(false))
        };
        for (pattern, _) in agent.gates.before_tool.iter().filter(|(_, own)| **own == GateSetting::Switch(false)) {
            let opens = |tool: &&String| {
                setting_of(&agent.gates.before_tool, tool).is_some_and(|(own, _)| own == pattern) && is_closed(tool)
            };
            if let Some(tool) = agent.tools.iter().find(opens) {
                let message =
                    format!("this lets the agent `{name}` call `{tool}`, which `gates.before_tool` holds back");
                checker.warn(&(base.clone() + &pointer([pattern])), message);
            }
        }
    }
    for (name, setting) in gates.before_agent.iter().take(MAX_GATES) {
        let base = pointer(["gates", "before_agent", name]);
        if let Some(gate) = gate(checker, &base, setting) {
            stakes::only_sentences(checker, &base, &gate.alternatives, NO_CALL);
        }
    }
    if let Some(setting) = &gates.before_return {
        let base = pointer(["gates", "before_return"]);
        let gate = gate(checker, &base, setting);
        if let Some(gate) = gate {
            stakes::only_sentences(checker, &base, &gate.alternatives, NO_CALL);
        }
        if gate.and_then(|gate| gate.allowed_decisions.as_ref()).is_some_and(|all| all.contains(&ActionKind::Respond)) {
            let message = "an output has no agent to respond to: leave `respond` out; `edit` changes the output";
            checker.invalid(&format!("{base}/allowed_decisions"), message);
        }
    }
    let of_teams =
        [("before_emergent", &gates.before_emergent), ("before_strategy_override", &gates.before_strategy_override)];
    for (trigger, setting) in of_teams {
        if let Some(setting) = setting {
            gate(checker, &pointer(["gates", trigger]), setting);
        }
    }
}

/// Checks the allowed answers of a gate or a tool.
pub fn answers(checker: &mut Checker<'_>, base: &str, allowed: Option<&[ActionKind]>) {
    if allowed.is_some_and(<[ActionKind]>::is_empty) {
        let message = "only reject would be left; write `false` to remove the gate";
        checker.invalid(&format!("{base}/allowed_decisions"), message);
    }
}

fn before_tools<'a>(checker: &mut Checker<'a>, base: &str, gates: &'a IndexMap<String, GateSetting>) {
    for (name, setting) in gates.iter().take(MAX_GATES) {
        let base = base.to_owned() + &pointer([name]);
        if let Some(gate) = gate(checker, &base, setting)
            && let Some(when) = &gate.when
        {
            arguments(checker, &format!("{base}/when"), name, gates, when);
        }
    }
}

/// Checks what all gates have in common. Returns the gate's settings, if it has any.
fn gate<'a>(checker: &mut Checker<'a>, base: &str, setting: &'a GateSetting) -> Option<&'a Gate> {
    let GateSetting::Gate(gate) = setting else { return None };
    timers::of_gate(checker, base, gate);
    handlers::of_gate(checker, base, gate);
    guardrails::switch(checker, base, gate.guardrails);
    policy::reviewers(checker, &format!("{base}/reviewers"), None, &gate.reviewers);
    answers(checker, base, gate.allowed_decisions.as_deref());
    stakes::alternatives(checker, base, &gate.alternatives, &[]);
    if let Some(when) = &gate.when {
        metadata(checker, &format!("{base}/when"), when);
    }
    Some(gate)
}

/// Warns of a condition on an argument that the tool does not have. Since the argument is missing, the gate always
/// stays closed, which is probably a mistake.
fn arguments(checker: &mut Checker<'_>, path: &str, pattern: &str, gates: &IndexMap<String, GateSetting>, when: &str) {
    let fields = checker.conditions.fields(when, "arguments");
    let flow = checker.flow;
    let own = |name: &str| name == pattern || !gates.contains_key(name);
    for (name, tool) in flow.tools.iter().filter(|(name, _)| matches(pattern, name) && own(name)) {
        let Some(known) = tool.parameters.as_ref().and_then(properties) else { continue };
        for field in fields.iter().filter(|field| !known.contains(&field.as_str())) {
            let guess = checker.guess(field, known.iter().copied());
            let message = format!(
                "`{name}` has no parameter `{field}`: if an argument is missing, the gate always asks, whatever else \
                 this says{guess}"
            );
            checker.warn(path, message);
        }
    }
}

/// Warns of a condition on metadata, which an earlier reviewer can add and so open the gate.
fn metadata(checker: &mut Checker<'_>, path: &str, when: &str) {
    if checker.conditions.fields(when, "context").contains("metadata") {
        let message = "reviewers may add to `context.metadata` what the launch did not set, and so open this gate; use \
                       a key of `input` instead";
        checker.warn(path, message);
    }
}

/// Returns the names of an object's properties. `None` if the schema does not list all of them.
pub(super) fn properties(schema: &Value) -> Option<Vec<&str>> {
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
            let words = "reviewers may add to `context.metadata`";
            assert!(matches!(&found[..], [one] if one.contains(words)), "{doubtful}: {found:?}");
        }
        assert_eq!(warned("pay", "context.tenant == \"x\" || input.metadata == 1"), [""; 0]);
    }
}
