//! Handlers: which are supported, and modes that cannot be. An `auto` handler resolves a review at once, so nothing else
//! may want to resolve it too.

use shared::definition::{ActionKind, AutoHandler, ChoiceKind, Gate, Handler, Human};

use super::Checker;
use super::human::has;

/// A list of handlers for itself.
pub fn check(checker: &mut Checker<'_>, path: &str, handlers: Option<&[Handler]>) {
    let Some(handlers) = handlers else { return };
    if handlers.is_empty() {
        checker.invalid(path, "nobody could resolve the review; leave `handlers` out for people");
    }
    if handlers.len() > 1 && handlers.iter().any(|handler| matches!(handler, Handler::Auto(_))) {
        checker.invalid(path, "an `auto` handler stands alone: it would resolve the review before anybody else");
    }
    for (index, handler) in handlers.iter().enumerate() {
        let path = format!("{path}/{index}");
        match handler {
            Handler::Auto(AutoHandler::Reject(reason)) if reason.trim().is_empty() => {
                checker
                    .invalid(&format!("{path}/auto/reject"), "say why it is rejected: the run ends with this reason");
            }
            Handler::Human | Handler::Auto(_) => {}
            _ => checker.unsupported(&path, "a handler other than `human` and `auto`"),
        }
    }
    let people = handlers.iter().filter(|handler| matches!(handler, Handler::Human)).count();
    if people > 1 {
        checker.invalid(path, "`human` stands here twice");
    }
}

/// Those of a human node.
pub fn of_human<'a>(checker: &mut Checker<'a>, base: &str, human: &'a Human) {
    check(checker, &format!("{base}/handlers"), human.handlers.as_deref());
    let Some(auto) = auto(checker, human.handlers.as_deref()) else { return };
    if *auto == AutoHandler::Approve && !has(human, ChoiceKind::Accept) {
        let path = place(base, human.handlers.is_some());
        checker.invalid(
            &path,
            "`auto: approve` takes the first option of kind `accept`, and there is none here; add one, or let a person \
             answer with `handlers: [human]`",
        );
    }
    if !human.policy.is_first() {
        checker.invalid(&format!("{base}/policy"), "nobody votes where an `auto` handler decides; keep one of them");
    }
    idle(checker, base, human.timeout.is_some(), human.on_timeout.is_some());
}

/// Those of a gate.
pub fn of_gate<'a>(checker: &mut Checker<'a>, base: &str, gate: &'a Gate) {
    check(checker, &format!("{base}/handlers"), gate.handlers.as_deref());
    let Some(auto) = auto(checker, gate.handlers.as_deref()) else { return };
    if *auto == AutoHandler::Approve && !gate.allowed_decisions().contains(&ActionKind::Approve) {
        let path = place(base, gate.handlers.is_some());
        checker.invalid(&path, "the handler approves, but `approve` is not among `allowed_decisions`");
    }
    idle(checker, base, gate.timeout.is_some(), gate.on_timeout.is_some());
}

fn auto<'a>(checker: &Checker<'a>, own: Option<&'a [Handler]>) -> Option<&'a AutoHandler> {
    let flow = checker.flow;
    own.or(flow.defaults.handlers.as_deref())?.iter().find_map(|handler| match handler {
        Handler::Auto(auto) => Some(auto),
        _ => None,
    })
}

/// Where the handler is written; what the defaults say is noted at what they cannot fit.
fn place(base: &str, own: bool) -> String {
    if own { format!("{base}/handlers") } else { base.to_owned() }
}

fn idle(checker: &mut Checker<'_>, base: &str, timeout: bool, on_timeout: bool) {
    for (key, is_written) in [("timeout", timeout), ("on_timeout", on_timeout)] {
        if is_written {
            let message = "the `auto` handler decides at once, so this never happens; keep one of them";
            checker.invalid(&format!("{base}/{key}"), message);
        }
    }
}
