//! Checks timers: how long a review waits, and what happens then.
//!
//! **Escalations.** A role that occurs twice in a chain is an error, and so is a role that the same node or gate asks
//! from the start: the review would only wait longer in silence. If a chain of the defaults meets such a node, this is
//! a warning.

use std::collections::BTreeSet;

use shared::access::REVIEWER;
use shared::definition::{ActionKind, ChoiceKind, Gate, Human, OnTimeout, Reviewers, Tool};
use shared::id::NodeId;
use shared::time::Span;

use super::{Checker, values};

/// Checks the timer of the defaults.
pub fn of_defaults(checker: &mut Checker<'_>) {
    let defaults = &checker.flow.defaults;
    values::wait(checker, "/defaults/timeout", defaults.timeout);
    chain(checker, "/defaults/on_timeout", defaults.on_timeout.as_ref());
}

/// Checks the timer of a human node.
pub fn of_human<'a>(checker: &mut Checker<'a>, base: &str, id: &NodeId, human: &'a Human) {
    let asked = checker.flow.reviewers_at(id.as_str(), &human.reviewers);
    let Some(happens) = timer(checker, base, human.timeout, human.on_timeout.as_ref(), Some(&asked)) else { return };
    if *happens.last() == OnTimeout::Approve && !human.may_offer(ChoiceKind::Accept) {
        let path = if human.on_timeout.is_some() { format!("{base}/on_timeout") } else { base.to_owned() };
        let message = "a timer that approves takes the first option of kind `accept`, but there is none here";
        checker.invalid(&path, message);
    }
}

/// Checks the timer of a gate.
pub fn of_gate<'a>(checker: &mut Checker<'a>, base: &str, gate: &'a Gate) {
    if let Some(own) = &gate.on_timeout
        && let OnTimeout::Follow | OnTimeout::Goto { .. } = own.last()
    {
        let path = format!("{base}/on_timeout{}", "/then".repeat(own.escalations().count()));
        let message = "`follow` and `goto` are for human nodes: a call either runs or does not; expected reject, \
                       approve or error";
        checker.invalid(&path, message);
    }
    // With `routing`, a gate that names no one may ask others at each node.
    let is_known = gate.reviewers.names_somebody() || checker.flow.routing.is_empty();
    let asked = is_known.then(|| checker.flow.reviewers_at("", &gate.reviewers));
    let Some(happens) = timer(checker, base, gate.timeout, gate.on_timeout.as_ref(), asked.as_ref()) else { return };
    if *happens.last() == OnTimeout::Approve && !gate.allowed_decisions().contains(&ActionKind::Approve) {
        let path = if gate.on_timeout.is_some() { format!("{base}/on_timeout") } else { base.to_owned() };
        checker.invalid(&path, "the timer approves, but `approve` is not among `allowed_decisions`");
    }
}

/// Checks the timer of a tool that asks people.
pub fn of_tool<'a>(checker: &mut Checker<'a>, base: &str, tool: &'a Tool) {
    if let Some(own) = &tool.on_timeout
        && let OnTimeout::Goto { .. } = own.last()
    {
        let path = format!("{base}/on_timeout{}", "/then".repeat(own.escalations().count()));
        checker.invalid(&path, "an agent that asks cannot go to a node; expected reject, approve, error or follow");
    }
    // The agent may set the timeout, so `on_timeout` without `timeout` is allowed.
    chain(checker, &format!("{base}/on_timeout"), tool.on_timeout.as_ref());
}

/// Checks what the timers of human nodes and gates have in common. `asked`: who is asked from the start; `None` if that
/// depends on the node. Returns what happens at the timeout, if there is one.
fn timer<'a>(
    checker: &mut Checker<'a>,
    base: &str,
    timeout: Option<Span>,
    own: Option<&'a OnTimeout>,
    asked: Option<&Reviewers>,
) -> Option<&'a OnTimeout> {
    let flow = checker.flow;
    values::wait(checker, &format!("{base}/timeout"), timeout);
    let path = format!("{base}/on_timeout");
    let timeout = timeout.or(flow.defaults.timeout);
    chain(checker, &path, own);
    if own.is_some() && timeout.is_none() {
        checker.invalid(&path, "`on_timeout` has no effect without `timeout`; add a timeout");
    }
    let happens = own.or(flow.defaults.on_timeout.as_ref()).filter(|_| timeout.is_some())?;
    for (depth, next) in happens.escalations().enumerate() {
        let role = &next.escalate;
        let is_asked = asked.is_some_and(|asked| {
            let nobody_named = asked.roles.is_empty() && asked.users.is_empty();
            asked.roles.contains(role) || (nobody_named && role == REVIEWER)
        });
        if !is_asked {
            continue;
        }
        let message = format!("`{role}` is asked from the start, so this escalates to no one; name another role");
        if own.is_some() {
            checker.invalid(&format!("{path}{}/escalate", "/then".repeat(depth)), message);
        } else {
            checker.warn(base, format!("{message} than that of `defaults.on_timeout`"));
        }
    }
    Some(happens)
}

/// Checks a chain of escalations on its own.
fn chain(checker: &mut Checker<'_>, path: &str, on_timeout: Option<&OnTimeout>) {
    let mut roles = BTreeSet::new();
    let mut path = path.to_owned();
    for (depth, next) in on_timeout.into_iter().flat_map(OnTimeout::escalations).enumerate() {
        let role = &next.escalate;
        if role.trim().is_empty() {
            checker.invalid(&format!("{path}/escalate"), "expected the name of a role");
        } else if !roles.insert(role) {
            let message = format!("`{role}` is already in this chain; escalating in a circle asks no one new");
            checker.invalid(&format!("{path}/escalate"), message);
        }
        values::wait(checker, &format!("{path}/extend"), Some(next.extend));
        if depth == OnTimeout::MAX_ESCALATIONS {
            let message = format!("a review escalates at most {} times", OnTimeout::MAX_ESCALATIONS);
            checker.invalid(&path, message);
        }
        path.push_str("/then");
    }
}
