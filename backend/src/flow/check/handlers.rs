//! Checks handlers: which are supported, and invalid lists. A judge passes on if it is not confident, and a program if
//! it does not decide, so others may follow them; people, `cli` and `auto` pass nothing on, so they come last.

use shared::definition::{
    ActionKind, AutoHandler, ChoiceKind, Gate, Handler, Human, Judge, SlackHandler, WebhookHandler,
};

use super::{Checker, values};

/// The maximum length of a channel's name, in characters; that of Slack.
const MAX_CHANNEL: usize = 80;

/// Checks a list of handlers on its own.
pub fn check(checker: &mut Checker<'_>, path: &str, handlers: Option<&[Handler]>) {
    let Some(handlers) = handlers else { return };
    if handlers.is_empty() {
        checker.invalid(path, "no one could resolve the review; leave `handlers` out to ask people");
    }
    for (index, handler) in handlers.iter().enumerate() {
        let path = format!("{path}/{index}");
        match handler {
            Handler::Auto(AutoHandler::Reject(reason)) if reason.trim().is_empty() => {
                checker.invalid(&format!("{path}/auto/reject"), "write the reason: the run ends with it");
            }
            Handler::Human | Handler::Cli | Handler::Auto(_) | Handler::Function(_) => {}
            Handler::Judge(judge) => self::judge(checker, &format!("{path}/judge"), judge),
            Handler::Webhook(webhook) => self::webhook(checker, &format!("{path}/webhook"), webhook),
            Handler::Slack(slack) => {
                let passes_on = handlers[index + 1..].iter().any(|after| !matches!(after, Handler::Human));
                self::slack(checker, &format!("{path}/slack"), slack, passes_on);
            }
        }
    }
    let last = handlers.iter().position(|handler| matches!(handler, Handler::Human | Handler::Cli | Handler::Auto(_)));
    if let Some(last) = last.filter(|last| last + 1 < handlers.len()) {
        let (who, why) = match handlers[last] {
            Handler::Human => ("human", "people pass a review on to no one"),
            Handler::Cli => ("cli", "the person at the terminal passes a review on to no one"),
            _ => ("auto", "it decides every review"),
        };
        let message = format!("no handler after `{who}` is asked, because {why}; put `{who}` last");
        checker.invalid(&format!("{path}/{}", last + 1), message);
    }
}

pub fn judge(checker: &mut Checker<'_>, path: &str, judge: &Judge) {
    values::model(checker, &format!("{path}/model"), &judge.model);
    if judge.criteria.trim().is_empty() {
        checker.invalid(&format!("{path}/criteria"), "write the criteria for the judge");
    }
    if !(0.0..=1.0).contains(&judge.threshold()) {
        checker.invalid(&format!("{path}/threshold"), "expected a confidence from 0 to 1, such as 0.7");
    }
    values::wait(checker, &format!("{path}/timeout"), judge.timeout);
}

fn webhook(checker: &mut Checker<'_>, path: &str, webhook: &WebhookHandler) {
    values::url(checker, &format!("{path}/url"), &webhook.url);
    values::wait(checker, &format!("{path}/timeout"), webhook.timeout);
}

/// A channel asks people, who answer there or in the console, so `human` after it needs no `timeout`.
fn slack(checker: &mut Checker<'_>, path: &str, slack: &SlackHandler, passes_on: bool) {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name = slack.channel.strip_prefix('#').unwrap_or(&slack.channel);
    if name.is_empty() || name.chars().count() > MAX_CHANNEL || !name.chars().all(is_name) {
        let message = "expected a channel, such as `#approvals`, or its id";
        checker.invalid(&format!("{path}/channel"), message);
    }
    values::wait(checker, &format!("{path}/timeout"), slack.timeout);
    if slack.timeout.is_none() && passes_on {
        checker.invalid(path, "without a `timeout`, no handler after the channel is asked; add one, or put it last");
    }
}

/// Checks the handlers of a human node.
pub fn of_human<'a>(checker: &mut Checker<'a>, base: &str, human: &'a Human) {
    check(checker, &format!("{base}/handlers"), human.handlers.as_deref());
    let accepts = named(checker, human.handlers.as_deref()).iter().find_map(|handler| match handler {
        Handler::Auto(AutoHandler::Approve) => Some("`auto: approve`"),
        Handler::Judge(_) => Some("a judge that approves"),
        _ => None,
    });
    if let Some(who) = accepts.filter(|_| !human.may_offer(ChoiceKind::Accept)) {
        let path = place(base, human.handlers.is_some());
        checker.invalid(
            &path,
            format!(
                "{who} takes the first option of kind `accept`, but there is none here; add one, or let a person \
                 answer with `handlers: [human]`"
            ),
        );
    }
    let named = named(checker, human.handlers.as_deref());
    if named.iter().any(decides_alone) && !human.policy.is_first() {
        let message = "a handler decides alone; several people decide only what it passes on";
        checker.warn(&format!("{base}/policy"), message);
    }
    let Some(_) = auto(checker, human.handlers.as_deref()) else { return };
    if !human.policy.is_first() && !named.iter().any(lets_people_decide) {
        checker.invalid(&format!("{base}/policy"), "no one votes if an `auto` handler decides; remove one of them");
    }
    idle(checker, base, human.timeout.is_some(), human.on_timeout.is_some());
}

/// Checks the handlers of a gate.
pub fn of_gate<'a>(checker: &mut Checker<'a>, base: &str, gate: &'a Gate) {
    check(checker, &format!("{base}/handlers"), gate.handlers.as_deref());
    approves(checker, base, gate.handlers.as_deref(), &gate.allowed_decisions());
    if auto(checker, gate.handlers.as_deref()).is_some() {
        idle(checker, base, gate.timeout.is_some(), gate.on_timeout.is_some());
    }
}

/// Checks that a handler which can only approve is asked only where `approve` is allowed. `own`: the handlers of the
/// gate; `None` for `ask_permission`.
pub fn approves<'a>(checker: &mut Checker<'a>, base: &str, own: Option<&'a [Handler]>, allowed: &[ActionKind]) {
    let approves = named(checker, own).iter().find_map(|handler| match handler {
        Handler::Auto(AutoHandler::Approve) => Some("`auto: approve`"),
        Handler::Judge(_) => Some("a judge"),
        _ => None,
    });
    if let Some(who) = approves.filter(|_| !allowed.contains(&ActionKind::Approve)) {
        let path = place(base, own.is_some());
        checker.invalid(&path, format!("{who} approves, but `approve` is not among `allowed_decisions`"));
    }
}

fn auto<'a>(checker: &Checker<'a>, own: Option<&'a [Handler]>) -> Option<&'a AutoHandler> {
    named(checker, own).iter().find_map(|handler| match handler {
        Handler::Auto(auto) => Some(auto),
        _ => None,
    })
}

/// Returns the handlers in effect: those of the node or gate, otherwise the defaults.
fn named<'a>(checker: &Checker<'a>, own: Option<&'a [Handler]>) -> &'a [Handler] {
    own.or(checker.flow.defaults.handlers.as_deref()).unwrap_or_default()
}

fn decides_alone(handler: &Handler) -> bool {
    matches!(handler, Handler::Judge(_) | Handler::Webhook(_) | Handler::Function(_))
}

/// Whether the review may be pending while the handler is asked: people decide in a channel, and while a webhook answers
/// later.
fn lets_people_decide(handler: &Handler) -> bool {
    matches!(handler, Handler::Slack(_) | Handler::Webhook(_))
}

/// Returns the place of a mistake: the handlers if they are written here, otherwise the node or gate that the defaults
/// do not fit.
fn place(base: &str, own: bool) -> String {
    if own { format!("{base}/handlers") } else { base.to_owned() }
}

fn idle(checker: &mut Checker<'_>, base: &str, timeout: bool, on_timeout: bool) {
    for (key, is_written) in [("timeout", timeout), ("on_timeout", on_timeout)] {
        if is_written {
            let message = "the `auto` handler decides, so this never happens; keep one of them";
            checker.invalid(&format!("{base}/{key}"), message);
        }
    }
}
