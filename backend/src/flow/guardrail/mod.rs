//! Compiled guardrails: what they find in a matter, and the effect. They are applied in their order, each to what
//! earlier ones left, and the first that blocks ends the check.

mod code_safety;
mod inquiry;
mod pii;
mod search;
mod secrets;
mod text_values;

use std::cell::{LazyCell, RefCell};

use serde_json::{Value, json};
use shared::JsonMap;
use shared::definition::{
    Effect, Flow, Guardrail, GuardrailScope, GuardrailSetting, GuardrailWebhook, Guardrails, OnError,
};
use shared::request::Request;

use super::condition::Conditions;
use super::pattern::{BadPattern, Pattern, Work};
use super::{Scope, work_limit};
use crate::mask::Mask;

use search::{SEARCHING, Search};
use text_values::Texts;

pub use inquiry::{Answered, GuardrailAnswer, GuardrailPrograms, Inquiry, ask_all};

/// The names of the built-in guardrails. Without settings in the flow, the first two apply.
pub const BUILT_IN: [&str; 3] = ["pii-redaction", "code-safety", "secrets"];
/// The number of guardrails that apply without settings in the flow.
const BY_DEFAULT: usize = 2;
/// The maximum length of a pattern, in bytes.
const MAX_PATTERN: usize = 8 * 1024;
/// The maximum size of a compiled pattern, in bytes.
const MAX_COMPILED: usize = 1024 * 1024;
/// The units of work of one step of a search.
const PER_SEARCH_STEP: u64 = 2;

/// The matter that guardrails check: an action, edits or an output.
#[derive(Debug)]
pub struct Matter<'a> {
    /// An id that distinguishes the matter from all others, for programs.
    pub id: String,
    /// The kind of matter.
    pub subject: GuardrailScope,
    /// The value of `action` in conditions: type, name and agent.
    pub action: Value,
    /// The arguments of an action, or edits or outputs by their keys.
    pub values: JsonMap,
    /// The request that a call sends in addition to its arguments.
    pub request: Option<&'a Request>,
}

/// A finding of a guardrail.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The name of the guardrail.
    pub guardrail: String,
    /// The effect: block, redact or only warn.
    pub effect: Effect,
    /// The key of the value concerned. `None` for actions, and for findings about all keys together.
    pub key: Option<String>,
    /// The reason in words, without the content that was found.
    pub reason: String,
    /// The question that a program has to answer first. Until then, the finding is a veto.
    pub inquiry: Option<Box<Inquiry>>,
}

/// The findings of all guardrails.
#[derive(Debug, Default, PartialEq)]
pub struct GuardrailVerdict {
    /// The findings, in the order of the guardrails.
    pub findings: Vec<Finding>,
    /// The redacted values. `None` if nothing was redacted.
    pub redacted: Option<JsonMap>,
}

impl GuardrailVerdict {
    /// Returns the findings that block.
    pub fn vetoes(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.effect == Effect::Block)
    }
}

/// The guardrails of a flow, in their order.
#[derive(Debug, Default)]
pub struct GuardrailRules(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    name: String,
    check: Check,
    on: Option<Vec<GuardrailScope>>,
    effect: Option<Effect>,
    message: Option<String>,
    on_error: OnError,
}

#[derive(Debug)]
enum Check {
    Code,
    Personal,
    Secrets,
    Pattern(Box<Pattern>),
    When(String),
    Program(Box<GuardrailWebhook>),
}

impl GuardrailRules {
    /// Compiles the guardrails of a flow, or the default ones. A mistake has its place below `/guardrails`.
    pub fn new(flow: &Flow) -> Result<Self, (String, String)> {
        let by_default =
            || BUILT_IN[..BY_DEFAULT].iter().map(|name| GuardrailSetting::Name((*name).to_owned())).collect();
        let settings: Vec<GuardrailSetting> = match &flow.guardrails {
            None => by_default(),
            Some(Guardrails::Switch(_)) => Vec::new(),
            Some(Guardrails::List(settings)) => settings.clone(),
        };
        let rules = settings
            .iter()
            .enumerate()
            .map(|(index, setting)| rule(setting).map_err(|(place, message)| (format!("/{index}{place}"), message)));
        rules.collect::<Result<_, _>>().map(Self)
    }

    /// Whether there are no guardrails.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether any guardrail asks a program.
    pub fn asks_programs(&self) -> bool {
        self.0.iter().any(|rule| matches!(rule.check, Check::Program(_)))
    }

    /// Applies the guardrails. `secrets` finds the values of the server's secrets. `scope` returns the values that
    /// conditions see in addition to the matter; it is called only if there are conditions.
    pub fn check(
        &self,
        matter: &Matter<'_>,
        conditions: &Conditions,
        secrets: &Mask,
        scope: impl FnOnce() -> Scope,
        answered: Answered<'_>,
    ) -> GuardrailVerdict {
        let scope = LazyCell::new(scope);
        let mut verdict = GuardrailVerdict::default();
        let work = RefCell::new(Work::new(SEARCHING));
        for rule in self.0.iter().filter(|rule| rule.applies_to(matter.subject)) {
            let values = verdict.redacted.as_ref().unwrap_or(&matter.values);
            let (findings, redacted) = match &rule.check {
                Check::When(when) => (rule.answer(when, matter, values, conditions, &scope), None),
                // A redacted request is rendered and checked again, so the program is asked then.
                Check::Program(_) if verdict.redacted.is_some() && matter.request.is_some() => continue,
                Check::Program(webhook) => (rule.ask(webhook, matter, values, answered).into_iter().collect(), None),
                _ => rule.search(matter, values, secrets, &work),
            };
            verdict.findings.extend(findings);
            verdict.redacted = redacted.or(verdict.redacted);
            // A pending inquiry must not hide what later guardrails find.
            if verdict.vetoes().any(|veto| veto.inquiry.is_none()) {
                break;
            }
        }
        work_limit::count((SEARCHING - work.borrow().left()) * PER_SEARCH_STEP);
        verdict
    }
}

fn rule(setting: &GuardrailSetting) -> Result<Rule, (String, String)> {
    let name = setting.name();
    let default = Guardrail::default();
    let settings = setting.settings().unwrap_or(&default);
    let check = match (&settings.pattern, &settings.when, &settings.webhook, name) {
        (Some(pattern), ..) => Check::Pattern(Box::new(compile(pattern).map_err(|why| ("/pattern".to_owned(), why))?)),
        (None, Some(when), ..) => Check::When(when.clone()),
        (None, None, Some(webhook), _) => Check::Program(Box::new(webhook.clone())),
        (None, None, None, "pii-redaction") => Check::Personal,
        (None, None, None, "code-safety") => Check::Code,
        (None, None, None, "secrets") => Check::Secrets,
        _ => return Err((String::new(), format!("there is no guardrail `{name}`"))),
    };
    Ok(Rule {
        name: name.to_owned(),
        check,
        on: settings.on.clone(),
        effect: settings.effect,
        message: settings.message.clone(),
        on_error: settings.on_error.unwrap_or_default(),
    })
}

/// Compiles a pattern. The error is one line.
pub fn compile(pattern: &str) -> Result<Pattern, String> {
    if pattern.len() > MAX_PATTERN {
        return Err(format!("a pattern has at most {MAX_PATTERN} bytes"));
    }
    let compiled = Pattern::with_places(pattern, MAX_COMPILED).map_err(|error| match error {
        BadPattern::TooLarge => "the pattern becomes too large when it is compiled; repeat less".to_owned(),
        BadPattern::Syntax(text) => {
            let reason = text.lines().rev().find_map(|line| line.trim().strip_prefix("error: "));
            format!("this is no valid regular expression: {}", reason.unwrap_or(&text))
        }
    })?;
    if compiled.is_match(&mut compiled.scratch(), "", &mut Work::new(SEARCHING)) != Ok(false) {
        return Err("this matches empty text, and so every text; make the pattern stricter".to_owned());
    }
    Ok(compiled)
}

impl Rule {
    fn applies_to(&self, subject: GuardrailScope) -> bool {
        match (&self.on, &self.check) {
            (Some(on), _) => on.contains(&subject),
            (None, Check::Code) => subject == GuardrailScope::Actions,
            (None, _) => true,
        }
    }

    fn effect(&self, subject: GuardrailScope) -> Effect {
        let own = match (&self.check, subject) {
            (Check::Personal, GuardrailScope::Edits | GuardrailScope::Outputs) => Effect::Redact,
            _ => Effect::Block,
        };
        self.effect.unwrap_or(own)
    }

    fn finding(&self, effect: Effect, key: Option<&str>, found: impl Into<String>) -> Finding {
        let reason = self.message.clone().unwrap_or_else(|| found.into());
        Finding { guardrail: self.name.clone(), effect, key: key.map(str::to_owned), reason, inquiry: None }
    }

    /// The finding about something that was to be redacted and cannot be: it is blocked.
    fn unredactable(&self, key: Option<&str>, found: &str) -> Finding {
        self.finding(Effect::Block, key, format!("{found}, but nothing can be redacted here"))
    }

    /// Evaluates a condition. An error blocks, unless `on_error` says otherwise, and so does a missing argument of an
    /// action. In edits and outputs, the keys depend on the flow, so a missing key means nothing.
    fn answer(
        &self,
        when: &str,
        matter: &Matter<'_>,
        values: &JsonMap,
        conditions: &Conditions,
        scope: &Scope,
    ) -> Vec<Finding> {
        let whole = Value::Object(values.clone());
        let texts = Texts::of(None, &whole);
        let texts = matter.request.map_or_else(|| Texts::of(None, &whole), |request| texts.with_request(request));
        let mut names = scope.0.clone();
        names.extend([
            ("action".to_owned(), matter.action.clone()),
            ("text".to_owned(), Value::from(texts.0.join("\n"))),
            ("arguments".to_owned(), whole.clone()),
        ]);
        let effect = self.effect(matter.subject);
        let blocks = |why: String| match self.on_error {
            OnError::Block => vec![Finding { reason: why, ..self.finding(Effect::Block, None, "") }],
            OnError::Allow => Vec::new(),
        };
        match conditions.answer(when, &Scope(names)) {
            Ok(Some(true)) => vec![self.finding(effect, None, "its condition holds")],
            Ok(None) if matter.subject == GuardrailScope::Actions => {
                blocks("its condition reads a value that does not exist".to_owned())
            }
            // A key that is missing in edits or outputs means nothing.
            Ok(Some(false) | None) => Vec::new(),
            Err(error) => blocks(error.to_string()),
        }
    }

    /// Searches the texts: those of an action together, those of edits and outputs key by key. If the search runs out
    /// of work, the matter is blocked.
    fn search(
        &self,
        matter: &Matter<'_>,
        values: &JsonMap,
        secrets: &Mask,
        work: &RefCell<Work>,
    ) -> (Vec<Finding>, Option<JsonMap>) {
        let effect = self.effect(matter.subject);
        let search = Search::new(&self.check, secrets, work);
        let first = |texts: &Texts<'_>| texts.0.iter().find_map(|text| search.found(text));
        let cut_short = |key: Option<&str>| {
            let reason = search.is_cut_short()?;
            Some(Finding { reason, ..self.finding(Effect::Block, key, "") })
        };
        if matter.subject == GuardrailScope::Actions {
            let whole = Value::Object(values.clone());
            let name = matter.action["name"].as_str();
            let mut texts = Texts::of(name, &whole);
            if let Some(request) = matter.request {
                texts = texts.with_request(request);
            }
            let found = first(&texts);
            let redacted = (found.is_some() && effect == Effect::Redact)
                .then(|| text_values::redact(&whole, &|text| search.places(text)));
            let finding = match (cut_short(None), found, &redacted) {
                (Some(finding), ..) => return (vec![finding], None),
                (None, None, _) => return (Vec::new(), None),
                (None, Some(found), Some(None)) => self.unredactable(None, &found),
                (None, Some(found), _) => self.finding(effect, None, found),
            };
            let redacted = match redacted.flatten() {
                Some(Value::Object(redacted)) => Some(redacted),
                _ => None,
            };
            return (vec![finding], redacted);
        }
        let (mut findings, mut redacted) = (Vec::new(), JsonMap::new());
        for (key, value) in values {
            let new = match effect {
                Effect::Redact => text_values::redact(value, &|text| search.places(text)),
                Effect::Block | Effect::Warn => None,
            };
            let found = if effect == Effect::Redact && new.is_none() {
                first(&Texts::fixed(value)).map(|found| self.unredactable(Some(key), &found))
            } else {
                first(&Texts::of(None, value)).map(|found| self.finding(effect, Some(key), found))
            };
            redacted.extend(new.map(|new| (key.clone(), new)));
            if let Some(finding) = cut_short(Some(key)) {
                findings.push(finding);
                return (findings, None);
            }
            findings.extend(found);
        }
        let changed = values.iter().map(|(key, value)| (key.clone(), redacted.get(key).unwrap_or(value).clone()));
        let changed = (!redacted.is_empty()).then(|| changed.collect());
        (findings, changed)
    }
}

/// Builds the value of `action` in conditions.
pub fn action(kind: &str, name: &str, agent: Option<&str>) -> Value {
    json!({ "type": kind, "name": name, "agent": agent })
}

#[cfg(test)]
mod tests;
