//! Checks each part of a flow on its own: limits, models, tool names, and unsupported settings.

use shared::definition::{Agent, Builtin, Failure, GateSetting, Node, Tool, ToolKind};
use shared::error::pointer;

use super::{Checker, gates, guardrails, handlers, policy, timers, values};
use crate::flow::compiled::setting_of;
use crate::flow::limits::{MAX_AGENTS, MAX_NODES, MAX_TOOLS};

/// The maximum number of retries of a failing step.
const MAX_RETRIES: u32 = 100;

pub fn check(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    let sizes = [
        ("/nodes", "nodes", flow.nodes.len(), MAX_NODES),
        ("/agents", "agents", flow.agents.len(), MAX_AGENTS),
        ("/tools", "tools", flow.tools.len(), MAX_TOOLS),
    ];
    for (path, what, size, most) in sizes {
        if size > most {
            checker.invalid(path, format!("a flow has at most {most} {what}; this one has {size}"));
        }
    }
    for (name, agent) in &flow.agents {
        self::agent(checker, name, agent);
    }
    for (name, tool) in &flow.tools {
        self::tool(checker, name, &tool.kind);
        let allowed = tool.ask_permission.allowed_decisions();
        gates::answers(checker, &pointer(["tools", name, "ask_permission"]), allowed);
        let has_gate = matches!(setting_of(&flow.gates.before_tool, name), Some((_, GateSetting::Gate(_))));
        if let Some(allowed) = allowed.filter(|allowed| !allowed.is_empty() && !has_gate) {
            handlers::approves(checker, &pointer(["tools", name, "ask_permission"]), None, allowed);
        }
        asks(checker, &pointer(["tools", name]), tool);
        values::wait(checker, &pointer(["tools", name, "timeout"]), tool.timeout);
    }
    guardrails::check(checker);
    handlers::check(checker, "/defaults/handlers", flow.defaults.handlers.as_deref());
    timers::of_defaults(checker);
    policy::reviewers(checker, "/defaults/reviewers", None, &flow.defaults.reviewers);
    if let Some(named) = &flow.defaults.model {
        values::model(checker, "/defaults/model", named);
    }
    for (index, route) in flow.routing.iter().enumerate() {
        policy::reviewers(checker, &format!("/routing/{index}/reviewers"), None, &route.reviewers);
        if !flow.nodes.values().any(|node| route.tags.iter().any(|tag| node.tags.contains(tag))) {
            checker.warn(&format!("/routing/{index}/tags"), "no node has one of these tags");
        }
    }
    if let Some(failure) = &flow.defaults.failure {
        self::failure(checker, "/defaults/failure", failure);
    }
    for (id, node) in &flow.nodes {
        self::node(checker, &pointer(["nodes", id.as_str()]), node);
    }
}

fn agent(checker: &mut Checker<'_>, name: &str, agent: &Agent) {
    let base = pointer(["agents", name]);
    match checker.flow.defaults.model {
        Some(_) if agent.model.is_empty() => {}
        None if agent.model.is_empty() => {
            checker.invalid(&base, "`model` is missing: set one here, or for all agents in `defaults.model`");
        }
        _ => values::model(checker, &format!("{base}/model"), &agent.model),
    }
    let turns = agent.max_turns();
    if turns == 0 || turns > Agent::MAX_TURNS {
        checker.invalid(&format!("{base}/max_turns"), format!("expected 1 to {} turns", Agent::MAX_TURNS));
    }
    if agent.feedback.is_some_and(|most| most == 0 || most > Agent::MAX_FEEDBACK) {
        let why = format!("expected 1 to {}; leave it out for none", Agent::MAX_FEEDBACK);
        checker.invalid(&format!("{base}/feedback"), why);
    }
    if agent.max_tokens == Some(0) {
        checker.invalid(&format!("{base}/max_tokens"), "expected at least 1 token");
    }
    let budget = agent.budget.as_ref();
    if budget.is_some_and(|budget| budget.tokens == Some(0) || budget.cost_usd.is_some_and(|cost| cost <= 0.0)) {
        checker.invalid(&format!("{base}/budget"), "a budget must be more than zero");
    }
}

/// Checks the settings for asking people, which only tools that ask people may have.
fn asks<'a>(checker: &mut Checker<'a>, base: &str, tool: &'a Tool) {
    let asks = matches!(&tool.kind, ToolKind::Builtin(builtin) if builtin.asks_people());
    let written = [
        ("reviewers", !tool.reviewers.is_empty()),
        ("policy", !tool.policy.is_first()),
        ("severity", tool.severity.is_some()),
        ("on_timeout", tool.on_timeout.is_some()),
    ];
    if !asks {
        for (key, _) in written.iter().filter(|(_, is_written)| *is_written) {
            let message = format!("`{key}` is for tools that ask people; set it at a gate of this tool instead");
            checker.invalid(&format!("{base}/{key}"), message);
        }
        return;
    }
    if tool.parameters.is_some() {
        checker.invalid(
            &format!("{base}/parameters"),
            "the parameters of this builtin are fixed; use `description` instead",
        );
    }
    policy::reviewers(checker, &format!("{base}/reviewers"), None, &tool.reviewers);
    let path = format!("{base}/policy");
    policy::numbers(checker, &path, &tool.policy);
    let is_decided_by_one = matches!(
        tool.kind,
        ToolKind::Builtin(Builtin::ReviewCalls | Builtin::Escalate | Builtin::Checkpoint | Builtin::Handoff)
    );
    if is_decided_by_one && !tool.policy.is_first() {
        let message = "calls, escalations, checkpoints and hand-offs are decided by one person: leave `policy` out";
        checker.invalid(&path, message);
    }
    timers::of_tool(checker, base, tool);
}

fn tool(checker: &mut Checker<'_>, name: &str, kind: &ToolKind) {
    let base = pointer(["tools", name]);
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(good) {
        checker.invalid(
            &base,
            format!("`{name}` is not a tool name: 1 to 64 letters, digits, _ and - (models require this)"),
        );
    }
    if let ToolKind::Http(http) = kind {
        let path = format!("{base}/http/method");
        if !["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"].contains(&http.method.as_str()) {
            checker.invalid(&path, "expected GET, POST, PUT, PATCH, DELETE or HEAD");
        }
    }
}

fn node(checker: &mut Checker<'_>, base: &str, node: &Node) {
    let visits = node.max_visits();
    if visits == 0 || visits > Node::MAX_VISITS {
        checker.invalid(&format!("{base}/max_visits"), format!("expected 1 to {} visits", Node::MAX_VISITS));
    }
    if let Some(failure) = &node.failure {
        self::failure(checker, &format!("{base}/failure"), failure);
    }
}

fn failure(checker: &mut Checker<'_>, base: &str, failure: &Failure) {
    if failure.retries > MAX_RETRIES {
        checker.invalid(&format!("{base}/retries"), format!("expected at most {MAX_RETRIES} retries"));
    }
    if let (Some(initial), Some(max)) = (failure.initial, failure.max)
        && initial > max
    {
        checker.invalid(&format!("{base}/initial"), "the first wait is longer than the longest (`max`)");
    }
}
