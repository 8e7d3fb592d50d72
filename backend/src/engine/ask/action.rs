//! Actions other than calls: an agent's step that is about to begin, and a flow's output that is about to be returned.
//! Builds their reviews, and applies the outcome; guardrails check what was approved.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use shared::JsonMap;
use shared::decision::ActionDecision;
use shared::definition::{ActionKind, Gate, GuardrailScope};
use shared::error::{FlowCode, FlowError, Mistake, pointer};
use shared::id::NodeId;
use shared::review::{Action, ActionType, ReviewKind};
use shared::run::Step;

use super::content::title;
use super::content::{Content, schema_of};
use super::guardrails::apply::{apply_guardrails, fitting_output};
use crate::engine::answer::read_answer;
use crate::engine::builder::Builder;
use crate::engine::conversation::Conversation;
use crate::engine::next::QuestionAnswer;
use crate::engine::phase::Phase;
use crate::engine::question::Subject;
use crate::engine::ruling::{Findings, Ruling};
use crate::engine::{projection, scope};
use crate::flow::guardrail::{Finding, action};
use crate::flow::{Compiled, embed, has_references, reference};

/// The id of the action in the review of an agent that is about to begin.
pub(super) const AGENT: &str = "agent";

/// The name of a flow's `output_schema` in the schema of its output's action.
const OUTPUT: &str = "output";

/// An action that is about to happen and that is no call.
pub(in crate::engine) struct Proposed<'f> {
    name: String,
    arguments: JsonMap,
    action_type: ActionType,
    /// The schema of a flow's output, if it has one.
    schema: Option<&'f Value>,
}

impl<'f> Proposed<'f> {
    /// Proposes that an agent begins.
    pub(in crate::engine) fn of_agent(conversation: &Conversation) -> Self {
        let (name, arguments) = (conversation.agent.clone(), conversation.opening());
        Self { name, arguments, action_type: ActionType::Agent, schema: None }
    }

    pub(in crate::engine) fn of_output(flow: &'f Compiled, output: JsonMap) -> Self {
        let (name, schema) = (flow.flow.id.to_string(), flow.flow.output_schema.as_ref());
        Self { name, arguments: output, action_type: ActionType::Output, schema }
    }

    /// Whether an agent is about to begin; otherwise, a flow is about to return its output.
    fn is_agent(&self) -> bool {
        self.action_type == ActionType::Agent
    }

    /// Returns what the condition of a gate sees of the action.
    pub(in crate::engine) fn seen(&self) -> scope::Visit<'_> {
        let agent = self.is_agent().then_some(self.name.as_str());
        scope::Visit { arguments: Some(&self.arguments), agent, ..scope::Visit::default() }
    }

    /// Returns the id of the action, which is the only one of its review.
    fn id(&self) -> &'static str {
        if self.is_agent() { AGENT } else { OUTPUT }
    }

    /// Returns the schema that an edit must fit: the same keys (for an agent also the instructions), with values of the
    /// flow's schemas or of the current types.
    fn schema(&self) -> Value {
        let required: Vec<_> = self.arguments.keys().collect();
        let mut form =
            json!({ "type": "object", "properties": {}, "required": required, "additionalProperties": false });
        let known = self.schema.and_then(|own| own.get("properties")?.as_object());
        let known = |key: &str| known.and_then(|known| known.get(key));
        // References are relative to the whole schema, so it is needed, too.
        let refers = self.arguments.keys().filter_map(|key| known(key)).any(has_references);
        if let Some(whole) = self.schema.filter(|_| refers) {
            embed(&mut form, "$defs", OUTPUT, whole);
        }
        if self.is_agent() {
            // An agent without instructions can be given some.
            for name in ["prompt", "instructions"] {
                form["properties"][name] = agent_text();
            }
        }
        for (key, value) in &self.arguments {
            form["properties"][key] = match known(key) {
                _ if self.is_agent() => agent_text(),
                Some(_) if refers => json!({ "$ref": reference(&pointer(["$defs", OUTPUT, "properties", key])) }),
                Some(schema) => schema.clone(),
                None => schema_of(value),
            };
        }
        form
    }

    fn title(&self, action: &Action) -> String {
        let title = title::of_calls(std::slice::from_ref(action));
        if self.is_agent() { format!("Run {title}") } else { format!("Output of {title}") }
    }

    fn prompt(&self, node: &NodeId) -> String {
        let name = &self.name;
        match node.caller() {
            _ if self.is_agent() => format!("Agent `{name}` is about to begin its step `{}`.", node.place()),
            None => "The run is about to end and return its output.".to_owned(),
            Some((caller, _)) => {
                format!("The flow `{name}` is about to end and return its output to `{}`.", caller.place())
            }
        }
    }
}

/// The schema of a text for an agent, which may have many lines.
fn agent_text() -> Value {
    json!({ "type": "string", "format": "markdown" })
}

impl<'f> Builder<'f> {
    /// Returns the action that a subject is about; `None` if it is about something else.
    fn proposed(&self, subject: &Subject) -> Option<Proposed<'f>> {
        match (subject, self.state.phase_of(subject)?) {
            (Subject::Agent { .. }, Phase::Agent { conversation, .. }) => Some(Proposed::of_agent(conversation)),
            (Subject::Output { .. }, Phase::Returning { step }) => {
                let flow = self.flow.of(&step.node);
                let output = projection::output(flow, self.state.keys_of(&step.node));
                Some(Proposed::of_output(flow, output))
            }
            _ => None,
        }
    }

    /// Returns the opening of the agent that a subject is about; `None` if it is about something else.
    pub(super) fn proposed_agent(&self, subject: &Subject) -> Option<JsonMap> {
        self.proposed(subject).filter(Proposed::is_agent).map(|proposed| proposed.arguments)
    }

    /// Builds the content of a review about an action; `None` if there is no action, or no gate holds it back.
    pub(super) fn content_of_action(&self, step: &Step, subject: &Subject) -> Result<Option<Content>, FlowError> {
        let Some((proposed, gate)) = self.proposed(subject).zip(self.gate_of(subject)) else { return Ok(None) };
        let mut allowed_decisions = gate.allowed_decisions();
        let kind = if proposed.is_agent() { ReviewKind::Agent } else { ReviewKind::Output };
        if kind == ReviewKind::Output {
            allowed_decisions.retain(|kind| *kind != ActionKind::Respond);
        }
        let action = Action {
            id: proposed.id().to_owned(),
            action_type: proposed.action_type,
            name: proposed.name.clone(),
            agent: None,
            arguments: proposed.arguments.clone(),
            request: None,
            description: None,
            schema: Some(proposed.schema()),
            stakes: None,
            allowed_decisions,
            redacted: false,
        };
        let given = self.given_title(step, gate, proposed.seen());
        let findings = self.let_pass(step, gate, &proposed, proposed.arguments.clone()).1;
        let warnings = Findings::of(&action.id, findings).warnings();
        let (timeout, on_timeout) = self.time_at_gates(step, &[gate]);
        Ok(Some(Content {
            kind,
            title: given.unwrap_or_else(|| proposed.title(&action)),
            prompt: proposed.prompt(&step.node),
            stakes: self.stakes_of(step, gate.stakes(), proposed.seen())?,
            reviewers: self.reviewers_at(&step.node, &gate.reviewers),
            timeout,
            on_timeout,
            free_text: true,
            actions: vec![action],
            warnings,
            ..Content::default()
        }))
    }

    /// Returns the ruling on an action that was decided.
    pub(super) fn rule_action(
        &self,
        subject: &Subject,
        decisions: &BTreeMap<String, ActionDecision>,
    ) -> QuestionAnswer {
        let known = || Some((self.proposed(subject)?, self.state.step_of(subject)?, self.gate_of(subject)?));
        let Some((proposed, step, gate)) = known() else {
            let ruling = Ruling::Refused(FlowCode::FlowInvalid, "no gate holds it back any longer".to_owned());
            return QuestionAnswer::Action { ruling, findings: Findings::default() };
        };
        let (ruling, findings) = match decisions.get(proposed.id()) {
            Some(ActionDecision::Approve { .. }) => self.let_pass(step, gate, &proposed, proposed.arguments.clone()),
            Some(ActionDecision::Edit { arguments }) => self.let_pass(step, gate, &proposed, arguments.clone()),
            Some(ActionDecision::Respond { message }) => {
                let what = action(proposed.action_type.into(), &proposed.name, None);
                let about = format!("{}.{}", step.id, proposed.id());
                self.rule_response(&about, &step.node, gate.guardrails != Some(false), &what, message)
            }
            Some(ActionDecision::Reject { message: Some(message) }) if !message.trim().is_empty() => {
                (Ruling::Refused(FlowCode::FlowHumanRejected, message.clone()), Vec::new())
            }
            // No alternative is offered here.
            Some(ActionDecision::Reject { .. } | ActionDecision::Choose { .. }) | None => {
                (Ruling::Refused(FlowCode::FlowHumanRejected, "it was rejected".to_owned()), Vec::new())
            }
        };
        QuestionAnswer::Action { ruling, findings: Findings::of(proposed.id(), findings) }
    }

    /// Lets the action happen with these arguments, as guardrails leave them, unless one blocks it.
    fn let_pass(
        &self,
        step: &Step,
        gate: &'f Gate,
        proposed: &Proposed<'_>,
        arguments: JsonMap,
    ) -> (Ruling<JsonMap>, Vec<Finding>) {
        if gate.guardrails == Some(false) {
            return (Ruling::Proceeds(arguments), Vec::new());
        }
        let on = if proposed.is_agent() { GuardrailScope::Actions } else { GuardrailScope::Outputs };
        let about = format!("{}.{}", step.id, proposed.id());
        let check = |values: &JsonMap| {
            let what = action(proposed.action_type.into(), &proposed.name, None);
            self.check_matter(&about, &step.node, on, what, values.clone(), None)
        };
        let fits = |redacted: JsonMap| {
            if proposed.is_agent() { Ok(redacted) } else { fitting_output(self.flow.of(&step.node), redacted) }
        };
        let (passed, findings) = apply_guardrails(arguments, check, fits);
        (passed.map_or_else(Ruling::from, Ruling::Proceeds), findings)
    }

    /// Checks that a response of people can be the answer of the agent, and that their edit can be the output of the
    /// flow.
    pub(super) fn check_responses(
        &self,
        subject: &Subject,
        decisions: &BTreeMap<String, ActionDecision>,
    ) -> Result<(), Vec<Mistake>> {
        let phase = self.state.phase_of(subject);
        let check = |(id, decision): (&String, &ActionDecision)| {
            let place = |part| pointer(["verdict", "decisions", id, part]);
            match (subject, phase, decision) {
                (
                    Subject::Agent { .. },
                    Some(Phase::Agent { step, conversation }),
                    ActionDecision::Respond { message },
                ) => {
                    let why = read_answer(self.flow, &step.node, conversation, message).err();
                    let said = |why| format!("it replaces the agent's answer, but is not valid: {why}");
                    why.map(|why| Mistake::new(place("message"), "invalid", said(why))).into_iter().collect()
                }
                (Subject::Output { .. }, Some(Phase::Returning { step }), ActionDecision::Edit { arguments }) => {
                    self.flow.of(&step.node).check_output(arguments, &place("arguments"))
                }
                _ => Vec::new(),
            }
        };
        let mistakes: Vec<_> = decisions.iter().flat_map(check).collect();
        if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
    }
}
