//! Starts tool calls: checks their arguments, and creates their task, or executes them at once in the engine.

use std::borrow::Cow;

use serde_json::{Value, json};
use shared::JsonMap;
use shared::definition::{Builtin, Reviewers, Team, TeamStrategy, Tool, ToolKind};
use shared::error::Mistake;
use shared::id::Username;
use shared::run::Step;
use shared::time::Span;

use super::ask_builtin::{self, Ask, Handoff};
use super::builder::Builder;
use super::conversation::{ToolCall, ToolCallState};
use super::digest;
use super::item;
use super::request::{self, Rendered};
use super::roster::CallOrigin;
use super::scope::{self, Visit};
use super::transition::TaskKind;
use crate::flow::Scope;
use crate::limits;

/// The effect of starting a call.
pub(super) enum Started {
    /// It has a task.
    Due,
    /// It asks people.
    Asks,
    /// It hands something over to somebody, and is done.
    HandsOver,
    /// An agent is to work on it.
    Delegated,
    /// A judge is to be asked about it.
    Vetting,
    /// The engine executed it: its result, and the state keys that it writes.
    Done { result: Value, writes: JsonMap },
}

impl Builder<'_> {
    /// Creates a call: checks its arguments, and renders its request. `Err` is a message to whoever made the call.
    pub(super) fn new_call(
        &self,
        step: &Step,
        caller: CallOrigin<'_>,
        correction: Option<&str>,
        id: String,
        tool: &str,
        arguments: &Value,
    ) -> Result<ToolCall, String> {
        let flow = self.flow.of(&step.node);
        let Some(definition) = flow.tool(tool) else {
            return Err(format!("there is no tool `{tool}`"));
        };
        let arguments = match arguments {
            Value::Object(arguments) => arguments.clone(),
            Value::Null => JsonMap::new(),
            // A string is what the model wrote, if it could not be parsed.
            Value::String(written) if limits::long_integer(written.as_bytes()).is_some() => {
                return Err(limits::LONG_INTEGER.to_owned());
            }
            _ => return Err("the arguments are not a JSON object".to_owned()),
        };
        if let Some(schema) = parameters(&definition) {
            let mistakes = flow.check(&schema, &Value::Object(arguments.clone()), "");
            if !mistakes.is_empty() {
                return Err(format!("the arguments of `{tool}` are not valid: {}", listed(&mistakes)));
            }
        }
        let arguments = match definition.kind {
            ToolKind::Builtin(builtin @ (Builtin::SpawnSpecialist | Builtin::SetStrategy)) => {
                self.team_arguments(step, caller, builtin, arguments)?
            }
            _ => arguments,
        };
        let visit = Visit { number: step.visit, correction, arguments: Some(&arguments), ..Visit::default() };
        let scope = match &definition.kind {
            ToolKind::Http(_) => scope::of(self.flow, &self.state, &step.node, visit),
            _ => Scope::default(),
        };
        let Rendered { request, reads } = request::render(flow, &definition, &arguments, &scope)?;
        let digest = digest::of_call(tool, &arguments, Some(&request));
        Ok(ToolCall { request: Some(request), reads, digest, ..ToolCall::new(id, tool, arguments) })
    }

    /// Starts a call: creates its task, or executes it in the engine. `Err` says why it cannot start.
    pub(super) fn start_call(
        &mut self,
        step: &Step,
        caller: CallOrigin<'_>,
        call: &mut ToolCall,
    ) -> Result<Started, String> {
        call.reads.clear();
        let Some(tool) = self.flow.of(&step.node).tool(&call.tool) else {
            return Err(format!("there is no tool `{}`", call.tool));
        };
        let task = match tool.kind {
            ToolKind::Builtin(Builtin::SetState) => return self.set_state(step, &call.arguments),
            ToolKind::Builtin(Builtin::Sleep) => {
                let until = self.now.after(sleep_time(&call.arguments)?.0);
                self.add_task(step, TaskKind::Wake { call: call.id.clone() }, until, true)
            }
            ToolKind::Http(_) | ToolKind::Mcp(_) | ToolKind::Function | ToolKind::Builtin(Builtin::DemoPublish) => {
                self.add_task(step, TaskKind::Tool { call: call.id.clone() }, self.now, tool.idempotent)
            }
            ToolKind::Builtin(
                builtin @ (Builtin::AskHuman
                | Builtin::RequestEdit
                | Builtin::RequestApproval
                | Builtin::ReviewCalls
                | Builtin::Escalate
                | Builtin::Checkpoint
                | Builtin::Handoff),
            ) => {
                let ask = ask_builtin::read(builtin, &call.arguments)?;
                ask_builtin::can_wait(&ask)?;
                ask_builtin::can_be_named(&ask)?;
                ask_builtin::can_be_told_apart(&ask)?;
                ask_builtin::votable(&ask, &tool.policy)?;
                if let Ask::Handoff(handoff) = ask {
                    Self::may_hand_over(&handoff, &tool.reviewers)?;
                    return Ok(Started::HandsOver);
                }
                call.state = ToolCallState::Asks;
                return Ok(Started::Asks);
            }
            ToolKind::Builtin(builtin @ (Builtin::SpawnSpecialist | Builtin::SetStrategy)) => {
                let vets = builtin == Builtin::SpawnSpecialist && self.flow.vetting(&step.node).is_some();
                if vets && call.state != ToolCallState::Vetted {
                    self.team_arguments(step, caller, builtin, call.arguments.clone())?;
                    call.state = ToolCallState::Vetting;
                    return Ok(Started::Vetting);
                }
                let result = if builtin == Builtin::SpawnSpecialist {
                    self.spawn(step, caller, &call.arguments)?
                } else {
                    self.change_strategy(step, caller, &call.arguments)?
                };
                return Ok(Started::Done { result, writes: JsonMap::new() });
            }
            ToolKind::Agent(_) => {
                call.state = ToolCallState::Delegated;
                return Ok(Started::Delegated);
            }
        };
        call.state = ToolCallState::Due { task, tries: 1 };
        Ok(Started::Due)
    }

    /// Checks that the tool allows a handoff to the person or role that it names.
    fn may_hand_over(handoff: &Handoff, to: &Reviewers) -> Result<(), String> {
        let users = to.users.iter().map(Username::as_str);
        let names: Vec<_> = to.roles.iter().map(String::as_str).chain(users).collect();
        if names.is_empty() || names.contains(&handoff.to.as_str()) {
            return Ok(());
        }
        Err(format!("`to`: you may hand off only to {}", names.join(", ")))
    }

    /// Checks that an edited call of `set_state` may write the state key that it names. Other calls pass.
    pub(in crate::engine) fn check_state_key(&self, step: &Step, call: &ToolCall) -> Result<(), String> {
        let tool = self.flow.of(&step.node).tool(&call.tool);
        if tool.is_some_and(|tool| matches!(tool.kind, ToolKind::Builtin(Builtin::SetState))) {
            self.set_state(step, &call.arguments)?;
        }
        Ok(())
    }

    fn set_state(&self, step: &Step, arguments: &JsonMap) -> Result<Started, String> {
        let Some(key) = arguments.get("key").and_then(Value::as_str) else {
            return Err("`key` names the state key to write".to_owned());
        };
        if item::map_item(self.flow, &self.state, step).is_some() {
            return Err("state keys cannot be written for a single item of a map; answer with the value".to_owned());
        }
        let node = self.flow.node(&step.node);
        if !node.is_some_and(|node| scope::may_write(self.flow, &step.node, node, key)) {
            let allowed = node.map(|node| scope::write_keys(self.flow, &step.node, node)).unwrap_or_default();
            return Err(format!("`{key}` may not be written here; allowed: {}", allowed.join(", ")));
        }
        let value = arguments.get("value").cloned().unwrap_or(Value::Null);
        let writes = JsonMap::from_iter([(key.to_owned(), value)]);
        Ok(Started::Done { result: json!({ "written": key }), writes })
    }
}

/// Returns the schema of a tool's arguments: its own, or that of the builtin; `None` if the tool has neither.
pub(super) fn parameters(tool: &Tool) -> Option<Cow<'_, Value>> {
    if let Some(own) = &tool.parameters {
        return Some(Cow::Borrowed(own));
    }
    let object = |required: &[&str], properties: Value| {
        Cow::Owned(json!({ "type": "object", "required": required, "properties": properties }))
    };
    let text = json!({ "type": "string" });
    match tool.kind {
        ToolKind::Builtin(Builtin::Sleep) => Some(object(&["duration"], json!({ "duration": text }))),
        ToolKind::Builtin(Builtin::SetState) => Some(object(&["key", "value"], json!({ "key": text, "value": {} }))),
        ToolKind::Builtin(Builtin::DemoPublish) => {
            Some(object(&["title", "text"], json!({ "title": text, "text": text })))
        }
        ToolKind::Builtin(Builtin::SpawnSpecialist) => Some(object(
            &["role", "instructions"],
            json!({
                "role": { "type": "string", "description": "The name of the new agent: a letter, then letters, digits, _ and -" },
                "instructions": { "type": "string", "minLength": 1, "description": "What it is told to be and to do" },
                "justification": { "type": "string", "description": "Why the team needs it" },
                "model": { "type": "string", "description": "One of the models of this flow; default: yours" },
                "tools": { "type": "array", "items": text, "description": "Those of your tools that it may call" },
            }),
        )),
        ToolKind::Builtin(Builtin::SetStrategy) => Some(object(
            &["strategy", "reason"],
            json!({
                "strategy": { "enum": TeamStrategy::ALL },
                "rounds": { "type": "integer", "minimum": 1, "maximum": Team::MAX_ROUNDS, "description": "Of a debate" },
                "reason": { "type": "string", "minLength": 1 },
            }),
        )),
        ToolKind::Agent(_) => {
            let task = json!({ "type": "string", "minLength": 1, "description": "What it is to do, with all that it needs to know" });
            Some(object(&["task"], json!({ "task": task })))
        }
        ToolKind::Builtin(builtin) => ask_builtin::parameters(builtin).map(Cow::Owned),
        ToolKind::Http(_) | ToolKind::Mcp(_) | ToolKind::Function => None,
    }
}

/// Returns the schema of a tool's arguments for models: without what is accepted, but has no effect.
pub(super) fn offered(tool: &Tool) -> Option<Value> {
    let mut schema = parameters(tool)?.into_owned();
    if tool.parameters.is_none()
        && tool.kind == ToolKind::Builtin(Builtin::Handoff)
        && let Some(properties) = schema["properties"].as_object_mut()
    {
        properties.remove("timeout");
    }
    Some(schema)
}

/// Whether a tool is the builtin `sleep`.
pub(super) fn is_sleep(tool: &Tool) -> bool {
    tool.kind == ToolKind::Builtin(Builtin::Sleep)
}

/// Formats mistakes in one line.
pub(super) fn listed(mistakes: &[Mistake]) -> String {
    mistakes.iter().map(Mistake::to_string).collect::<Vec<_>>().join("; ")
}

fn sleep_time(arguments: &JsonMap) -> Result<Span, String> {
    let duration = arguments.get("duration").and_then(Value::as_str).unwrap_or_default();
    let span: Span =
        duration.parse().map_err(|error| format!("`{duration}` is not a length of time such as 30s or 5m: {error}"))?;
    let longest = Span::LONGEST_WAIT;
    if span > longest { Err(format!("`duration`: at most {longest}")) } else { Ok(span) }
}
