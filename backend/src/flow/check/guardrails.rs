//! Checks guardrails: that each exists once, has exactly one kind of check, and can have its effect.

use std::collections::BTreeSet;

use shared::definition::{Effect, Guardrail, GuardrailSetting, GuardrailWebhook, Guardrails};
use shared::error::pointer;

use super::{Checker, values};
use crate::flow::guardrail::{BUILT_IN, compile};
use crate::flow::limits::MAX_GUARDRAILS;

/// The names that conditions of guardrails may use.
const NAMES: [&str; 5] = ["action", "arguments", "text", "context", "run"];

pub fn check(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    switches(checker);
    let settings = match &flow.guardrails {
        None | Some(Guardrails::Switch(false)) => return,
        Some(Guardrails::Switch(true)) => {
            return checker.invalid("/guardrails", "expected a list of guardrails, or false for none");
        }
        Some(Guardrails::List(settings)) => settings,
    };
    if settings.len() > MAX_GUARDRAILS {
        let message = format!("a flow has at most {MAX_GUARDRAILS} guardrails; this one has {}", settings.len());
        checker.invalid("/guardrails", message);
    }
    let mut names = BTreeSet::new();
    for (index, setting) in settings.iter().take(MAX_GUARDRAILS).enumerate() {
        let base = format!("/guardrails/{index}");
        let place = match setting {
            GuardrailSetting::Name(_) => base.clone(),
            GuardrailSetting::Settings(_) => format!("{base}/name"),
        };
        let name = setting.name();
        if !names.insert(name) {
            checker.invalid(&place, format!("the guardrail `{name}` is listed twice; it runs once"));
        }
        match setting {
            GuardrailSetting::Name(name) if !BUILT_IN.contains(&name.as_str()) => unknown(checker, &place, name),
            GuardrailSetting::Name(_) => {}
            GuardrailSetting::Settings(guardrail) => self::guardrail(checker, &base, &place, guardrail),
        }
    }
}

fn guardrail(checker: &mut Checker<'_>, base: &str, place: &str, guardrail: &Guardrail) {
    let name = guardrail.name.as_str();
    let own = [
        ("when", guardrail.when.is_some()),
        ("pattern", guardrail.pattern.is_some()),
        ("webhook", guardrail.webhook.is_some()),
    ];
    let own: Vec<&str> = own.into_iter().filter_map(|(key, is_written)| is_written.then_some(key)).collect();
    match own.as_slice() {
        [] if BUILT_IN.contains(&name) => {}
        [] => unknown(checker, place, name),
        [key, ..] if BUILT_IN.contains(&name) => {
            let message = format!("`{name}` is built in and has no `{key}`; give your own guardrail another name");
            checker.invalid(&format!("{base}/{key}"), message);
        }
        [_] => {}
        [.., key] => {
            let message = format!(
                "a guardrail has exactly one of `when`, `pattern` and `webhook`; this one has {}",
                own.join(" and ")
            );
            checker.invalid(&format!("{base}/{key}"), message);
        }
    }
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(good) {
        checker.invalid(place, format!("`{name}` is not a name for a guardrail: 1 to 64 letters, digits, _ and -"));
    }
    if guardrail.on.as_ref().is_some_and(Vec::is_empty) {
        checker.invalid(&format!("{base}/on"), "it would check nothing; leave `on` out to check everything");
    }
    if guardrail.message.as_ref().is_some_and(|message| message.trim().is_empty()) {
        checker.invalid(&format!("{base}/message"), "write what people and agents are told, or leave it out");
    }
    if guardrail.effect == Some(Effect::Redact) {
        let finds_no_text =
            own.first().copied().filter(|key| *key != "pattern").or((name == "code-safety").then_some(name));
        if let Some(what) = finds_no_text {
            let message = format!("`{what}` finds no text to redact; use `block` or `warn`");
            checker.invalid(&format!("{base}/effect"), message);
        }
    }
    if guardrail.on_error.is_some() && guardrail.when.is_none() {
        let message = "only a condition (`when`) can fail like this; a webhook has its own `on_error`";
        checker.invalid(&format!("{base}/on_error"), message);
    }
    if let Some(Err(why)) = guardrail.pattern.as_ref().map(|pattern| compile(pattern)) {
        checker.invalid(&format!("{base}/pattern"), why);
    }
    if let Some(webhook) = &guardrail.webhook {
        self::webhook(checker, &format!("{base}/webhook"), webhook);
    }
}

fn webhook(checker: &mut Checker<'_>, path: &str, webhook: &GuardrailWebhook) {
    values::url(checker, &format!("{path}/url"), &webhook.url);
    let most = GuardrailWebhook::MAX_TIMEOUT;
    if webhook.timeout().0.is_zero() {
        let message = "the program would have no time to answer; leave it out for the default of 5 seconds";
        checker.invalid(&format!("{path}/timeout"), message);
    } else if webhook.timeout() > most {
        let message = format!("the person who decides waits for the answer: at most {most}");
        checker.invalid(&format!("{path}/timeout"), message);
    }
}

fn unknown(checker: &mut Checker<'_>, place: &str, name: &str) {
    let guess = checker.guess(name, BUILT_IN);
    let message = format!(
        "there is no guardrail `{name}`: {} are built in, and your own need `when`, `pattern` or `webhook`{guess}",
        BUILT_IN.join(", ")
    );
    checker.invalid(place, message);
}

/// Checks the switches of human nodes. Guardrails are on by default, so `true` is refused.
fn switches(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    for (id, human) in flow.humans() {
        switch(checker, &pointer(["nodes", id.as_str(), "human"]), human.guardrails);
    }
}

/// Checks the switch of a human node or a gate.
pub fn switch(checker: &mut Checker<'_>, base: &str, guardrails: Option<bool>) {
    if guardrails == Some(true) {
        let message = "the flow's guardrails apply here anyway; leave this out, or write false";
        checker.invalid(&format!("{base}/guardrails"), message);
    }
}

/// Checks that a condition uses only names that guardrails know. Others could never be evaluated.
pub fn names(checker: &mut Checker<'_>, path: &str, names: &[String]) {
    for name in names.iter().filter(|name| !NAMES.contains(&name.as_str())) {
        let guess = checker.guess(name, NAMES);
        checker.invalid(path, format!("a guardrail sees {}, but not `{name}`{guess}", NAMES.join(", ")));
    }
}
