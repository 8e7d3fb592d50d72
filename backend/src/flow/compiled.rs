//! A compiled flow, which is ready to run.

mod gates;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;
use shared::JsonMap;
use shared::definition::{Flow, Gate, GateSetting, Guardrails, Handler, MapNode, Node, NodeKind};
use shared::error::{FlowCode, Mistake};
use shared::id::{FlowId, NodeId};

use super::audience;
use super::condition::Conditions;
use super::environment::Environment;
use super::expressions::{ExpressionKind, expressions_of, schemas_of};
use super::guardrail::{Answered, GuardrailRules, GuardrailVerdict, Matter};
use super::json_schema::{Schema, check_value, compile_stored};
use super::keys::{refused, writes_any};
use super::parallel;
use super::reachability::{Reachability, mapped};
use super::template::Templates;
use super::{EvalError, Scope};

/// The prefix of the tools with which the lead of a team calls members; the member's name follows.
pub const DELEGATE: &str = "delegate_to_";

/// A flow that is ready to run: its templates and conditions are compiled, and its graph is analysed.
#[derive(Debug)]
pub struct Compiled {
    /// The flow, with a fixed version in each call.
    pub flow: Flow,
    /// The version of the flow; 0 for the unsaved flow of a carrier.
    pub version: u32,
    templates: Templates,
    conditions: Conditions,
    guardrails: GuardrailRules,
    reachability: Reachability,
    /// The map of each mapped node.
    mapped: HashMap<NodeId, NodeId>,
    /// The compiled JSON Schemas of [`schemas_of`], by their content.
    schemas: HashMap<Value, Schema>,
    /// The handlers that judge the specialists of a team, for each team with a judge.
    vetting: HashMap<String, Vec<Handler>>,
    /// The gate of `ask_permission`, for each tool that restricts the answers to it.
    asking: HashMap<String, Gate>,
    /// The gate of `true` and `ask_permission: true`.
    plain_gate: Gate,
    /// For each node that may write any key: the keys that others may write while it runs.
    written_beside: HashMap<NodeId, BTreeSet<String>>,
    needs_people: bool,
    /// The nodes named by a `not_same_as`.
    checked: BTreeSet<NodeId>,
    /// The flow that each flow node calls.
    called: HashMap<NodeId, Arc<Compiled>>,
    /// The ids of all flows that this one calls, directly or indirectly.
    calls: BTreeSet<FlowId>,
    /// The depth of nested calls; 0 without calls.
    depth: usize,
    environment: Arc<Environment>,
}

impl Compiled {
    /// Compiles a checked flow. `called` has the flow of each call, or the mistakes of calls. Returns the mistakes,
    /// which the [check](mod@super::check) finds too.
    pub(super) fn with_calls(
        mut flow: Flow,
        version: u32,
        called: Result<HashMap<NodeId, Arc<Self>>, Vec<Mistake>>,
    ) -> Result<Self, Vec<Mistake>> {
        let mut templates = Templates::default();
        let mut conditions = Conditions::default();
        let mut mistakes = Vec::new();
        if let Some(model) = &flow.defaults.model {
            flow.agents
                .values_mut()
                .filter(|agent| agent.model.is_empty())
                .for_each(|agent| agent.model.clone_from(model));
        }
        let called = called.unwrap_or_else(|found| {
            mistakes.extend(found);
            HashMap::new()
        });
        for (path, kind, text) in expressions_of(&flow) {
            let added = match kind {
                ExpressionKind::Template => templates.add(text),
                ExpressionKind::Condition => conditions.add(text),
            };
            if let Err(EvalError(message)) = added {
                mistakes.push(Mistake::new(path, FlowCode::FlowInvalid.as_str(), message));
            }
        }
        let mut schemas = HashMap::new();
        for (path, schema) in schemas_of(&flow) {
            if schemas.contains_key(schema) {
                continue;
            }
            match compile_stored(schema) {
                Ok(compiled) => {
                    schemas.insert(schema.clone(), compiled);
                }
                Err(mistake) => mistakes.push(Mistake { path: path + &mistake.path, ..mistake }),
            }
        }
        let guardrails = GuardrailRules::new(&flow).unwrap_or_else(|(place, message)| {
            mistakes.push(Mistake::new(format!("/guardrails{place}"), FlowCode::FlowInvalid.as_str(), message));
            GuardrailRules::default()
        });
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let reachability = Reachability::new(&flow);
        let mapped = mapped(&flow).into_iter().map(|(node, map)| (node.clone(), map.clone())).collect();
        let below = || called.values();
        let needs_people = audience::needs(&flow) || below().any(|flow| flow.needs_people);
        let depth = below().map(|flow| flow.depth + 1).max().unwrap_or(0);
        let own = below().map(|flow| flow.flow.id.clone());
        let calls = own.chain(below().flat_map(|flow| flow.calls.clone())).collect();
        let checked = audience::reviewers(&flow).filter_map(|reviewers| reviewers.not_same_as.clone()).collect();
        let written_beside = parallel::written_beside(&flow);
        let (vetting, asking) = (gates::vetting(&flow), gates::asking(&flow));
        Ok(Self {
            flow,
            vetting,
            asking,
            version,
            templates,
            conditions,
            guardrails,
            reachability,
            mapped,
            schemas,
            plain_gate: Gate::default(),
            written_beside,
            needs_people,
            checked,
            called,
            calls,
            depth,
            environment: Arc::default(),
        })
    }

    /// Creates a stand-in, without nodes, for a flow that cannot be read.
    pub fn without_nodes(id: FlowId, version: u32) -> Self {
        // Not even the guardrails that are on by default: nobody knows whether the flow has them.
        let flow = Flow { guardrails: Some(Guardrails::Switch(false)), ..Flow::new(id) };
        Self::with_calls(flow, version, Ok(HashMap::new())).expect("nothing in it can be wrong")
    }

    /// Returns the flow that a node belongs to: this one, or one that it calls.
    pub fn of(&self, node: &NodeId) -> &Self {
        let mut flow = self;
        for call in node.frame().split('/') {
            let name = call.split_once(':').map_or(call, |(name, _)| name);
            let Some(called) = flow.called.get(name) else { break };
            flow = called;
        }
        flow
    }

    /// Returns the flow that a flow node calls.
    pub fn called(&self, node: &NodeId) -> Option<&Self> {
        self.of(node).called.get(node.own()).map(Arc::as_ref)
    }

    /// Whether this flow calls another one, directly or indirectly.
    pub(super) fn calls(&self, id: &FlowId) -> bool {
        self.calls.contains(id)
    }

    /// Returns the depth of nested calls; 0 without calls.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Whether the engine needs to know the existing people: the flow counts votes, or its reviewers may be excluded or
    /// need tags.
    pub fn needs_people(&self) -> bool {
        self.needs_people
    }

    /// Whether any reviewers exclude the people who decide at this node.
    pub fn is_checked_by_others(&self, node: &NodeId) -> bool {
        self.of(node).checked.contains(node.own())
    }

    /// Sets what the flow uses of the server's environment.
    pub fn with_environment(self, environment: Arc<Environment>) -> Self {
        Self { environment, ..self }
    }

    /// Returns the compiled templates of this flow, without those of called flows.
    pub fn templates(&self) -> &Templates {
        &self.templates
    }

    /// Returns the value of `env` in templates and conditions.
    pub fn env(&self) -> &JsonMap {
        &self.environment.env
    }

    /// Returns a node of this flow, or of one that it calls.
    pub fn node(&self, id: &NodeId) -> Option<&Node> {
        self.of(id).flow.nodes.get(id.own())
    }

    /// Whether a node that may write any key may write this one: it is a valid state key, and no other node writes it
    /// meanwhile.
    pub fn may_write_any(&self, id: &NodeId, key: &str) -> bool {
        let beside = self.of(id).written_beside.get(id.own());
        self.node(id).is_some_and(writes_any)
            && refused(key).is_none()
            && !beside.is_some_and(|keys| keys.contains(key))
    }

    /// Renders a template (minijinja, strict). Fails if a name is not in the scope.
    pub fn render(&self, template: &str, scope: &Scope) -> Result<String, EvalError> {
        self.templates.render(template, scope)
    }

    /// Renders every string in a value. A string that consists of one `{{ expression }}` keeps its JSON type.
    pub fn render_value(&self, value: &Value, scope: &Scope) -> Result<Value, EvalError> {
        self.templates.render_value(value, scope)
    }

    /// Evaluates a condition (CEL). A missing field, or a field of null, makes it false.
    pub fn holds(&self, condition: &str, scope: &Scope) -> Result<bool, EvalError> {
        self.conditions.answer(condition, scope).map(Option::unwrap_or_default)
    }

    /// Whether a gate lets a call pass: only if its condition is evaluated to false. If a field is missing, or the
    /// condition cannot be evaluated, the gate stays closed.
    pub fn opens(&self, condition: &str, scope: &Scope) -> bool {
        self.conditions.answer(condition, scope) == Ok(Some(false))
    }

    /// Applies the guardrails. `scope` returns the values that conditions see in addition to the matter; it is called
    /// only if guardrails have conditions. `answered` has the answers of programs so far.
    pub fn check_matter(
        &self,
        matter: &Matter<'_>,
        scope: impl FnOnce() -> Scope,
        answered: Answered<'_>,
    ) -> GuardrailVerdict {
        if self.guardrails.is_empty() {
            return GuardrailVerdict::default();
        }
        self.guardrails.check(matter, &self.conditions, &self.environment.secrets, scope, answered)
    }

    /// Whether any guardrail asks a program.
    pub fn asks_programs(&self) -> bool {
        self.guardrails.asks_programs()
    }

    /// Returns the node that a correction at this human node runs again: `corrects`, otherwise the nearest step before
    /// it with a result. `None` if there is no such step, or several.
    pub fn source_of(&self, human: &NodeId) -> Option<NodeId> {
        self.of(human).reachability.source_of(human.own()).map(|source| human.beside(source))
    }

    /// Returns the map that runs this node for each item of a list.
    pub fn map_of(&self, node: &NodeId) -> Option<(NodeId, &MapNode)> {
        let flow = self.of(node);
        let map = flow.mapped.get(node.own())?;
        match &flow.flow.nodes.get(map)?.kind {
            NodeKind::Map(settings) => Some((node.beside(map), settings)),
            _ => None,
        }
    }

    /// Whether a branch at `from` can still come to `to`, in one step or more: along `next`, `on_reject`,
    /// `on_visit_limit`, the `goto` of a timer or failure, or back by a correction. No node inside a call leads
    /// outside; the calling branch does.
    pub fn reaches(&self, from: &NodeId, to: &NodeId) -> bool {
        from.frame() == to.frame() && self.of(from).reachability.reaches(from.own(), to.own())
    }

    /// Iterates over this flow and all flows that it calls.
    pub fn with_called(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        Box::new(std::iter::once(self).chain(self.called.values().flat_map(|flow| flow.with_called())))
    }

    /// Returns the agents that get feedback, including those of called flows: the flow, the agent, and the number of
    /// entries.
    pub fn wanted_feedback(&self) -> impl Iterator<Item = (FlowId, String, u32)> {
        self.with_called().flat_map(|flow| {
            let agents = flow.flow.agents.iter();
            agents.filter_map(|(name, agent)| Some((flow.flow.id.clone(), name.clone(), agent.feedback?)))
        })
    }

    /// Whether any tool call may be gated, including those of called flows. Only then can grants apply.
    pub fn has_gates(&self) -> bool {
        !self.flow.gates.before_tool.is_empty()
            || self.flow.agents.values().any(|agent| !agent.gates.before_tool.is_empty())
            || self.flow.tools.values().any(|tool| !tool.ask_permission.is_no())
            || self.called.values().any(|flow| flow.has_gates())
    }

    /// Returns all mistakes of an input against the flow's `input`, with paths below `/input`.
    pub fn check_input(&self, input: &JsonMap) -> Vec<Mistake> {
        let schema = self.flow.input.as_ref();
        schema.map_or_else(Vec::new, |schema| self.check(schema, &Value::Object(input.clone()), "/input"))
    }

    /// Returns all mistakes of an output against the flow's `output_schema`, with paths below `base`.
    pub fn check_output(&self, output: &JsonMap, base: &str) -> Vec<Mistake> {
        let schema = self.flow.output_schema.as_ref();
        schema.map_or_else(Vec::new, |schema| self.check(schema, &Value::Object(output.clone()), base))
    }

    /// Returns all mistakes of a value against a JSON Schema of this flow, with paths below `base`.
    pub fn check(&self, schema: &Value, value: &Value, base: &str) -> Vec<Mistake> {
        match self.schemas.get(schema) {
            Some(compiled) => compiled.check(value, base),
            None => check_value(schema, value, base),
        }
    }
}

/// Returns the gate setting for a tool or an agent, with the matching name or pattern.
pub(super) fn setting_of<'a>(
    gates: &'a IndexMap<String, GateSetting>,
    name: &str,
) -> Option<(&'a str, &'a GateSetting)> {
    let exact = gates.get_key_value(name);
    let by_pattern = || {
        gates.iter().filter(|(pattern, _)| matches(pattern, name)).max_by_key(|(pattern, _)| pattern.chars().count())
    };
    exact.or_else(by_pattern).map(|(name, setting)| (name.as_str(), setting))
}

/// Whether a name matches a pattern, in which `*` stands for any text, including none.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut middle: Vec<&str> = parts.collect();
    let Some(last) = middle.pop() else { return rest.is_empty() };
    let mut rest = rest;
    for part in middle {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests;
