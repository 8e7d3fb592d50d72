//! Flow files: reading them with line and column, finding every mistake when they are saved, and making them ready to
//! run. Pure.
//!
//! Imports `shared` only.

use serde_json::Value;
use shared::JsonMap;
use shared::api::Graph;
use shared::definition::{Flow, Gate, Node};
use shared::error::Mistake;
use shared::id::NodeId;

/// What checking a source found.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The flow, where it could be read at all.
    pub flow: Option<Flow>,
    /// Every mistake, with line and column; a flow with mistakes cannot be saved.
    pub errors: Vec<Mistake>,
    /// What is allowed but doubtful.
    pub warnings: Vec<Mistake>,
}

/// Reads and checks a flow file (YAML or JSON).
pub fn check(_source: &str) -> Checked {
    unreachable!("written by its own part")
}

/// JSON Schema of the flow format, for editors.
pub fn schema() -> Value {
    unreachable!("written by its own part")
}

/// The picture of a flow, laid out.
pub fn graph(_flow: &Flow) -> Graph {
    unreachable!("written by its own part")
}

/// The names that templates and conditions see, as FLOWS.md lists them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scope(pub JsonMap);

/// A template or condition that could not be evaluated; in words for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EvalError(pub String);

/// A flow made ready to run: templates and conditions compiled, the graph analysed.
#[derive(Debug)]
pub struct Compiled {
    /// The flow.
    pub flow: Flow,
    /// Its version.
    pub version: u32,
}

impl Compiled {
    /// Makes a checked flow ready. The mistakes are those that [`check`] finds too.
    pub fn new(flow: Flow, version: u32) -> Result<Self, Vec<Mistake>> {
        Ok(Self { flow, version })
    }

    /// A node by id.
    pub fn node(&self, id: &NodeId) -> Option<&Node> {
        self.flow.nodes.get(id)
    }

    /// Renders a template (minijinja, strict).
    pub fn render(&self, _template: &str, _scope: &Scope) -> Result<String, EvalError> {
        unreachable!("written by its own part")
    }

    /// Renders every string in a value; a string that is one whole `{{ expression }}` keeps its JSON type.
    pub fn render_value(&self, _value: &Value, _scope: &Scope) -> Result<Value, EvalError> {
        unreachable!("written by its own part")
    }

    /// Whether a condition (CEL) holds; a missing field, or a field of null, is false.
    pub fn holds(&self, _condition: &str, _scope: &Scope) -> Result<bool, EvalError> {
        unreachable!("written by its own part")
    }

    /// The node that a correction at this human node runs again.
    pub fn source_of(&self, _human: &NodeId) -> Option<&NodeId> {
        unreachable!("written by its own part")
    }

    /// Whether a branch that is at `from` can still come to `to`, by any way but standing still.
    pub fn reaches(&self, _from: &NodeId, _to: &NodeId) -> bool {
        unreachable!("written by its own part")
    }

    /// The gate of a tool by its name, whatever its `when` says; `ask_permission` makes one too.
    pub fn tool_gate(&self, _tool: &str) -> Option<&Gate> {
        unreachable!("written by its own part")
    }

    /// Every mistake of an input against the flow's `input`, with paths below `/input`.
    pub fn check_input(&self, _input: &JsonMap) -> Vec<Mistake> {
        unreachable!("written by its own part")
    }
}

/// Every mistake of a value against a JSON Schema, with paths below `base`.
pub fn check_value(_schema: &Value, _value: &Value, _base: &str) -> Vec<Mistake> {
    unreachable!("written by its own part")
}
