//! Gates: what is supported, and settings that contradict each other. (Gates that never fire are found with the names.)

use shared::definition::{Gate, GateSetting};
use shared::error::pointer;

use super::{Checker, handlers, policy, timers};

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

fn gate<'a>(checker: &mut Checker<'a>, base: &str, gate: &'a Gate) {
    timers::of_gate(checker, base, gate);
    handlers::of_gate(checker, base, gate);
    policy::reviewers(checker, &format!("{base}/reviewers"), None, &gate.reviewers);
}
