//! Gates: what is supported, and settings that contradict each other. (Gates that never fire are found with the names.)

use shared::definition::{ActionKind, Gate, GateSetting, OnTimeout};
use shared::error::pointer;

use super::Checker;
use super::parts::{handlers, on_timeout};

pub fn check(checker: &mut Checker<'_>) {
    let gates = &checker.flow.gates;
    for (name, setting) in &gates.before_tool {
        if let GateSetting::Gate(gate) = setting {
            self::gate(checker, &pointer(["gates", "before_tool", name]), gate);
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

fn gate(checker: &mut Checker<'_>, base: &str, gate: &Gate) {
    let defaults = &checker.flow.defaults;
    let timeout = gate.timeout.or(defaults.timeout);
    if gate.timeout.is_some_and(|timeout| timeout.0.is_zero()) {
        checker.invalid(&format!("{base}/timeout"), "a timeout must be longer than nothing");
    }
    if gate.on_timeout.is_some() && timeout.is_none() {
        checker.invalid(&format!("{base}/on_timeout"), "`on_timeout` without `timeout` never happens; add a timeout");
    }
    let happens = gate.on_timeout.as_ref().or(defaults.on_timeout.as_ref());
    let allowed = gate.allowed_decisions();
    if timeout.is_some() && happens == Some(&OnTimeout::Approve) && !allowed.contains(&ActionKind::Approve) {
        let path = if gate.on_timeout.is_some() { format!("{base}/on_timeout") } else { base.to_owned() };
        checker.invalid(&path, "the timer approves, but `approve` is not among `allowed_decisions`");
    }
    if let Some(happens) = &gate.on_timeout {
        on_timeout(checker, &format!("{base}/on_timeout"), happens);
    }
    if gate.reviewers.not_same_as.is_some() {
        checker.unsupported(&format!("{base}/reviewers/not_same_as"), "`not_same_as`");
    }
    handlers(checker, &format!("{base}/handlers"), gate.handlers.as_deref());
}
