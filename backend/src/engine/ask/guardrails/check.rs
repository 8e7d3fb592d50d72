//! Guardrails, which check what was approved before it takes effect, whoever approved it. Decided calls take only this
//! path ([`Builder::rule`]): the outcome of each is a [`Ruling`], and nothing else starts it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use shared::JsonMap;
use shared::decision::{ActionDecision, DecisionRequest, Verdict};
use shared::definition::{Effect, GuardrailScope};
use shared::error::{FlowCode, FlowError, Mistake, pointer};
use shared::id::{NodeId, ReviewId};
use shared::log::{EventData, GuardrailFired};
use shared::review::{Review, Warning};
use shared::run::Step;

use super::apply::{apply_guardrails, fitting_output};
use crate::engine::builder::Builder;
use crate::engine::conversation::{CallSite, ToolCall};
use crate::engine::guardrail_reply::answer_to;
use crate::engine::invoke::parameters;
use crate::engine::question::Subject;
use crate::engine::ruling::{Blocked, CallRulings, Findings, Ruling, inquiries, words};
use crate::engine::transition::Refusal;
use crate::engine::{carrier, projection, scope};
use crate::flow::guardrail::{Finding, GuardrailVerdict, Inquiry, Matter, action};

/// The values that a decision puts into the run.
#[derive(Debug, Default)]
pub(in crate::engine) struct PutIn {
    /// The edits by key, as guardrails have left them.
    pub edits: JsonMap,
    /// The free text, if there is one, as guardrails have left it.
    pub text: Option<String>,
    /// The fields of the option, as guardrails have left them.
    pub fields: JsonMap,
    /// The findings of guardrails, each with its place in the decision.
    findings: Vec<(String, Finding)>,
}

impl PutIn {
    pub(in crate::engine::ask) fn into_findings(self) -> impl Iterator<Item = Finding> {
        self.findings.into_iter().map(|(_, finding)| finding)
    }

    /// Creates the values from edits that were checked before.
    pub(in crate::engine) fn checked(edits: JsonMap) -> Self {
        Self { edits, ..Self::default() }
    }
}

impl Builder<'_> {
    /// Returns the rulings on calls that were decided. A redacted call is rendered and checked again: if it cannot be
    /// redacted, it does not happen.
    pub(in crate::engine::ask) fn rule_calls(
        &self,
        review: &Review,
        subject: &Subject,
        decisions: &BTreeMap<String, ActionDecision>,
    ) -> (CallRulings, Findings) {
        let (mut rulings, mut findings) = (CallRulings::new(), Findings::default());
        let Some(step) = self.state.step_of(subject) else { return (rulings, findings) };
        let (agent, calls) = self.state.calls_of(subject);
        let at = CallSite::new(step, agent);
        for call in calls {
            let Some(decision) = decisions.get(&call.id) else { continue };
            let (ruling, found) = self.rule_one(at, call, review, decision);
            rulings.insert(call.id.clone(), ruling);
            findings.0.extend(Findings::of(&call.id, found).0);
        }
        (rulings, findings)
    }

    fn rule_one(
        &self,
        at: CallSite<'_>,
        call: &ToolCall,
        review: &Review,
        decision: &ActionDecision,
    ) -> (Ruling<ToolCall>, Vec<Finding>) {
        let node = &at.step.node;
        let about = || format!("{}.{}", at.step.id, call.id);
        match decision {
            ActionDecision::Approve { .. } => self.rule_run(at, call.clone()),
            ActionDecision::Edit { arguments } => match self.edited(node, call, arguments) {
                Ok(edited) => self.rule_run(at, edited),
                Err(why) => (Ruling::Refused(FlowCode::ToolFailed, why), Vec::new()),
            },
            ActionDecision::Reject { message } => {
                let why = denial(message.as_deref(), &call.tool);
                (Ruling::Refused(FlowCode::ToolPermissionDenied, why), Vec::new())
            }
            ActionDecision::Respond { message } => {
                let what = self.seen_action(at, call);
                self.rule_response(&about(), node, self.is_guarded(at, call), &what, message)
            }
            ActionDecision::Choose { alternative, message } => {
                let Some(said) = chosen(review, &call.id, alternative, message.as_deref()) else {
                    let why = format!("`{alternative}` is not an alternative to `{}`", call.tool);
                    return (Ruling::Refused(FlowCode::ToolPermissionDenied, why), Vec::new());
                };
                let what = self.seen_action(at, call);
                let (said, findings) = self.rule_said(&about(), node, self.is_guarded(at, call), &what, said);
                (said.map_or_else(|refused| refused, |said| Ruling::Answered(Value::Object(said))), findings)
            }
        }
    }

    /// Returns the ruling on a text that somebody gives in place of a result.
    pub(in crate::engine::ask) fn rule_response<T>(
        &self,
        about: &str,
        node: &NodeId,
        is_guarded: bool,
        what: &Value,
        message: &str,
    ) -> (Ruling<T>, Vec<Finding>) {
        let (said, findings) = self.rule_said(about, node, is_guarded, what, of_text(message));
        let answered = |said: JsonMap| Ruling::Answered(text_of(&said).unwrap_or(message).into());
        (said.map_or_else(|refused| refused, answered), findings)
    }

    /// Returns what somebody said as guardrails leave it; `Err` has the refusal.
    fn rule_said<T>(
        &self,
        about: &str,
        node: &NodeId,
        is_guarded: bool,
        what: &Value,
        said: JsonMap,
    ) -> (Result<JsonMap, Ruling<T>>, Vec<Finding>) {
        if !is_guarded {
            return (Ok(said), Vec::new());
        }
        let check =
            |said: &JsonMap| self.check_matter(about, node, GuardrailScope::Edits, what.clone(), said.clone(), None);
        let (passed, mut findings) = apply_guardrails(said, check, Ok);
        for finding in &mut findings {
            finding.key = None;
        }
        (passed.map_err(Ruling::from), findings)
    }

    /// Returns the ruling on a call that is to happen. A redacted call is rendered again.
    fn rule_run(&self, at: CallSite<'_>, call: ToolCall) -> (Ruling<ToolCall>, Vec<Finding>) {
        let original = call.clone();
        let fits = |redacted| self.redacted(at.step, &original, &redacted);
        let (passed, findings) = apply_guardrails(call, |call| self.check_call(at, call), fits);
        (passed.map_or_else(Ruling::from, Ruling::Proceeds), findings)
    }

    /// Returns a call with redacted arguments, if they are valid for its tool.
    fn redacted(&self, step: &Step, call: &ToolCall, arguments: &JsonMap) -> Result<ToolCall, String> {
        let flow = self.flow.of(&step.node);
        let tool = flow.tool(&call.tool);
        let schema = tool.as_ref().and_then(|tool| parameters(tool));
        let arguments_fit = |schema: &Value| flow.check(schema, &Value::Object(arguments.clone()), "").is_empty();
        if !schema.is_none_or(|schema| arguments_fit(&schema)) {
            return Err("the redacted arguments are not valid for the tool".to_owned());
        }
        self.edited(&step.node, call, arguments)
    }

    fn check_call(&self, at: CallSite<'_>, call: &ToolCall) -> GuardrailVerdict {
        if !self.is_guarded(at, call) {
            return GuardrailVerdict::default();
        }
        let (what, arguments) = (self.seen_action(at, call), call.arguments.clone());
        let (about, node) = (format!("{}.{}", at.step.id, call.id), &at.step.node);
        self.check_matter(&about, node, GuardrailScope::Actions, what, arguments, call.request.as_ref())
    }

    /// Lets guardrails check values; `about` identifies them in the run.
    pub(in crate::engine::ask) fn check_matter(
        &self,
        about: &str,
        node: &NodeId,
        subject: GuardrailScope,
        action: Value,
        values: JsonMap,
        request: Option<&shared::request::Request>,
    ) -> GuardrailVerdict {
        let id = format!("{}.{about}", self.state.id);
        let matter = Matter { id, subject, action, values, request };
        let answered = |inquiry: &Inquiry| answer_to(&self.replies, inquiry);
        self.flow.of(node).check_matter(&matter, || scope::of_run(&self.state), &answered)
    }

    /// Returns what conditions of guardrails see of a call: the same as people.
    fn seen_action(&self, at: CallSite<'_>, call: &ToolCall) -> Value {
        let (kind, name) = self.kind_of(at.step, call);
        action(kind.into(), &name, at.agent.map(|agent| agent.name))
    }

    /// Returns what guardrails would find in calls as they stand.
    pub(in crate::engine) fn warnings<'c>(
        &self,
        at: CallSite<'_>,
        calls: impl IntoIterator<Item = &'c ToolCall>,
    ) -> Vec<Warning> {
        let of = |call: &'c ToolCall| Findings::of(&call.id, self.rule_run(at, call.clone()).1).warnings();
        calls.into_iter().flat_map(of).collect()
    }

    /// Returns the values that a decision puts in, as guardrails leave them. A blocked value is a mistake at its place:
    /// nothing has happened yet, so it can be changed.
    pub(in crate::engine) fn put_in(&self, review: &Review, request: &DecisionRequest) -> Result<PutIn, Refusal> {
        let put_in = self.check_put_in(review, request);
        let unasked = inquiries(put_in.findings.iter().map(|(_, finding)| finding));
        if !unasked.is_empty() {
            return Err(Refusal::unasked(unasked));
        }
        let vetoes = put_in.findings.iter().filter(|(_, finding)| finding.effect == Effect::Block);
        let mistake =
            |(place, veto): &(String, Finding)| Mistake::new(place, FlowCode::GuardrailBlocked.as_str(), words(veto));
        let mistakes: Vec<_> = vetoes.map(mistake).collect();
        if mistakes.is_empty() { Ok(put_in) } else { Err(Refusal::Invalid(mistakes)) }
    }

    pub(in crate::engine::ask) fn check_put_in(&self, review: &Review, request: &DecisionRequest) -> PutIn {
        let (text, fields) = match &request.verdict {
            Verdict::Text { text } if review.answers_in_words() => (Some(text.clone()), JsonMap::new()),
            Verdict::Choose { fields, .. } => (None, fields.clone()),
            _ => (None, JsonMap::new()),
        };
        let mut put_in = PutIn { edits: request.edits.clone(), text, fields, findings: Vec::new() };
        // A question of a carrier is checked like one that an agent asks.
        let Some(id) = &review.node.clone().or_else(carrier::node) else { return put_in };
        let human = self.flow.node(id).and_then(|node| node.kind.human());
        if !review.actions.is_empty() || human.is_some_and(|human| human.guardrails == Some(false)) {
            return put_in;
        }
        let about = review.id.to_string();
        let check = |values: &JsonMap| {
            let what = action("edit", id.own(), None);
            self.check_matter(&about, id, GuardrailScope::Edits, what, values.clone(), None)
        };
        for (at, values) in [("/edits", &mut put_in.edits), ("/verdict/fields", &mut put_in.fields)] {
            if values.is_empty() {
                continue;
            }
            let (passed, findings) = apply_guardrails(values.clone(), check, Ok);
            let place =
                |key: &Option<String>| key.as_ref().map_or(at.to_owned(), |key| at.to_owned() + &pointer([key]));
            for finding in findings {
                // A finding about all keys together is shown at each of them.
                let everywhere = finding.key.is_none() && finding.inquiry.is_none();
                let keys: Vec<_> =
                    if everywhere { values.keys().cloned().map(Some).collect() } else { vec![finding.key.clone()] };
                let at_key = |key: Option<String>| (place(&key), Finding { key, ..finding.clone() });
                put_in.findings.extend(keys.into_iter().map(at_key));
            }
            *values = passed.unwrap_or_default();
        }
        if let Some(text) = put_in.text.take() {
            let (passed, findings) = apply_guardrails(of_text(&text), check, Ok);
            let here = |finding| ("/verdict/text".to_owned(), Finding { key: None, ..finding });
            put_in.findings.extend(findings.into_iter().map(here));
            put_in.text = passed.ok().and_then(|said| text_of(&said).map(str::to_owned));
        }
        put_in
    }

    /// Returns the output of the run as guardrails leave it, or the block, and their findings.
    fn guard_output(&self) -> (Result<JsonMap, Blocked>, Vec<Finding>) {
        let check = |output: &JsonMap| {
            let what = action("output", self.state.flow.as_str(), None);
            self.check_matter("output", &NodeId::end_of(""), GuardrailScope::Outputs, what, output.clone(), None)
        };
        let fits = |redacted| fitting_output(self.flow, redacted);
        apply_guardrails(projection::output(self.flow, &self.state.keys), check, fits)
    }

    /// Returns what guardrails ask programs about the output of the run before it can be returned.
    pub(in crate::engine) fn inquiries_about_output(&self) -> Vec<Inquiry> {
        if self.flow.asks_programs() { inquiries(&self.guard_output().1) } else { Vec::new() }
    }

    /// Lets guardrails check the output of the run before it is returned. Returns the output as they leave it; `Err` if
    /// they block it.
    pub(in crate::engine) fn check_final_output(&mut self) -> Result<JsonMap, FlowError> {
        let (passed, findings) = self.guard_output();
        self.emit_findings(None, findings.iter().map(|finding| (None, finding)));
        passed.map_err(|blocked| FlowError {
            code: FlowCode::GuardrailBlocked,
            message: format!("the output may not be returned: {}", blocked.into_words()),
            node: Some(NodeId::end_of("")),
        })
    }

    /// Emits the findings of guardrails about decided actions.
    pub(in crate::engine) fn emit_decided_findings(&mut self, review: ReviewId, findings: &Findings) {
        let findings = findings.0.iter().map(|(action, finding)| (action.as_deref(), finding));
        self.emit_findings(Some(review), findings);
    }

    /// Emits the findings of guardrails about the values that a decision puts in.
    pub(in crate::engine) fn emit_edit_findings(&mut self, review: ReviewId, put_in: &PutIn) {
        self.emit_findings(Some(review), put_in.findings.iter().map(|(_, finding)| (None, finding)));
    }

    fn emit_findings<'a>(
        &mut self,
        review: Option<ReviewId>,
        findings: impl IntoIterator<Item = (Option<&'a str>, &'a Finding)>,
    ) {
        for (action, finding) in findings {
            let Finding { guardrail, effect, key, reason, inquiry: _ } = finding.clone();
            let action = action.map(str::to_owned);
            let fired = GuardrailFired { guardrail, effect, reason, review, action, key };
            self.emit(review, None, EventData::GuardrailFired(fired));
        }
    }
}

/// Wraps a text as a value that guardrails check.
fn of_text(text: &str) -> JsonMap {
    JsonMap::from_iter([("text".to_owned(), text.into())])
}

/// Returns the text from values that guardrails have checked.
fn text_of(said: &JsonMap) -> Option<&str> {
    said.get("text")?.as_str()
}

/// Returns the result of a call for which an alternative was chosen, in the form in which later steps see a decision at
/// a human node. `None` if the review does not offer the alternative.
fn chosen(review: &Review, call: &str, alternative: &str, message: Option<&str>) -> Option<JsonMap> {
    let action = review.actions.iter().find(|action| action.id == call)?;
    let choice = review.choices_for(action).find(|choice| choice.id == alternative)?;
    let mut decision = json!({ "alternative": choice.id, "description": choice.description });
    let message = message.map(str::trim).filter(|message| !message.is_empty());
    for (name, text) in [("tradeoffs", choice.tradeoffs.as_deref()), ("message", message)] {
        if let Some(text) = text {
            decision[name] = text.into();
        }
    }
    Some(JsonMap::from_iter([("decision".to_owned(), decision)]))
}

/// Returns the reason why a person rejected a call.
fn denial(message: Option<&str>, tool: &str) -> String {
    let message = message.map(str::trim).filter(|message| !message.is_empty());
    message.map_or_else(|| format!("a reviewer did not allow `{tool}`"), str::to_owned)
}
