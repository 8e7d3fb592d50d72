//! Flow files: reads them with line and column, finds every error when they are saved, and compiles them. Pure.

mod agents;
mod audience;
pub mod builder;
mod calls;
mod cancellation;
mod check;
mod compiled;
mod condition;
mod environment;
mod expressions;
mod fixed_host;
mod graph;
pub mod guardrail;
mod json_schema;
mod keys;
pub mod limits;
mod parallel;
mod pattern;
mod reachability;
mod read;
mod scalar;
mod schema_embedding;
mod schema_work;
mod source;
mod stack;
mod structure;
mod suggest;
mod template;
mod value_size;
pub mod work_limit;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use shared::JsonMap;
use shared::definition::Flow;
use shared::error::{FlowCode, Mistake};
use shared::id::FlowId;

pub use calls::{Library, calls};
pub use cancellation::CancelFlag;
pub use check::{Here, Reach, handlers_of as handlers, unreachable};
pub use compiled::{Compiled, DELEGATE};
pub(crate) use condition::Conditions;
pub use environment::Environment;
pub use fixed_host::{has_fixed_host, host_of, is_loopback, is_unencrypted};
pub use graph::{graph, graph_of};
pub use json_schema::{check_value, is_of_object};
pub use keys::{ANY, own_key};
pub use schema_embedding::{embed, has_references, reference};
#[cfg(test)]
pub(crate) use stack::RESERVED;
pub use stack::{SIZE as LARGE_STACK, on_large_stack};
pub(crate) use template::is_plain;
pub use template::{Templates, url_piece};

/// The result of checking a source.
#[derive(Debug, Clone)]
pub struct CheckedFlow {
    /// The flow, if it could be read.
    pub flow: Option<Flow>,
    /// Every error, with line and column; a flow with errors cannot be saved.
    pub errors: Vec<Mistake>,
    /// Warnings about valid but doubtful parts.
    pub warnings: Vec<Mistake>,
}

/// Reads and checks a flow file (YAML or JSON). The flow is present only if no part had to be left out.
pub fn check(source: &str) -> CheckedFlow {
    read(source).check(&Here::default())
}

/// Finds every error of a flow that was made by a program, with its place in the flow.
pub fn mistakes_of(flow: &Flow) -> Vec<Mistake> {
    check::check_flow(flow, None, &[], &Here::default(), &CancelFlag::default()).0
}

/// A flow file that has been read, but not checked yet.
#[derive(Debug)]
pub struct ParsedFlow {
    source: Option<source::SourceText>,
    flow: Option<Flow>,
    errors: Vec<Mistake>,
}

/// Reads a flow file (YAML or JSON).
pub fn read(source: &str) -> ParsedFlow {
    let (source, mut errors) = source::read(source);
    let reading = source.as_ref().map(read::read_flow);
    let flow = reading.and_then(|reading| {
        errors.extend(reading.mistakes);
        reading.flow
    });
    ParsedFlow { source, flow, errors }
}

impl ParsedFlow {
    /// Returns the flow as far as it could be read.
    pub fn flow(&self) -> Option<&Flow> {
        self.flow.as_ref()
    }

    /// Sets the id under which the flow will be saved. Another id in the file is an error.
    #[must_use]
    pub fn saved_as(mut self, id: &FlowId) -> Self {
        if let Some(flow) = self.flow.as_ref().filter(|flow| flow.id != *id)
            && !self.errors.iter().any(|noted| noted.path == "/id")
        {
            let spot = self.source.as_ref().and_then(|source| source.spot("/id"));
            let message = format!("the flow's id is `{}`, but it is saved as `{id}`", flow.id);
            self.errors.push(source::mistake_at(spot, "/id", FlowCode::FlowInvalid, message));
        }
        self
    }

    /// Finds every error, including conflicts with the server on which the flow will be saved, as far as `here`
    /// describes it.
    pub fn check(self, here: &Here<'_>) -> CheckedFlow {
        self.check_unless(&CancelFlag::default(), here)
    }

    /// Does the same, but ends early, with an incomplete result, if no one waits for it any longer.
    pub fn check_unless(self, abandoned: &CancelFlag, here: &Here<'_>) -> CheckedFlow {
        let Self { source, flow, mut errors } = self;
        let is_whole = errors.is_empty();
        let mut warnings = Vec::new();
        if let Some(flow) = &flow {
            let (found, doubtful) = check::check_flow(flow, source.as_ref(), &errors, here, abandoned);
            errors.extend(found);
            warnings = doubtful;
        }
        for found in [&mut errors, &mut warnings] {
            found.sort_by_key(|mistake| (mistake.line, mistake.column));
            limit(found);
        }
        CheckedFlow { flow: flow.filter(|_| is_whole), errors, warnings }
    }
}

/// Limits the number of errors, and says so.
fn limit(found: &mut Vec<Mistake>) {
    if found.len() > limits::MAX_MISTAKES {
        found.truncate(limits::MAX_MISTAKES);
        found.extend(
            found
                .last()
                .cloned()
                .map(|last| Mistake { message: "there are more errors; correct these first".to_owned(), ..last }),
        );
    }
}

/// Reads a flow file, which must have no errors.
pub fn parse(source: &str) -> Result<Flow, builder::InvalidFlow> {
    let CheckedFlow { flow, errors, .. } = check(source);
    flow.filter(|_| errors.is_empty()).ok_or(builder::InvalidFlow(errors))
}

/// Returns the JSON Schema of the flow format, for editors.
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(Flow).to_value();
    schema["title"] = Value::from("Countersign flow");
    let names = "^[a-z][a-z0-9_-]{0,99}$";
    let patterns = [("FlowId", "^[a-z0-9-]{1,100}$"), ("NodeId", names), ("Target", names)];
    for (name, pattern) in patterns {
        if let Some(definition) = schema["$defs"].get_mut(name) {
            definition["pattern"] = Value::from(pattern);
        }
    }
    schema["properties"]["nodes"]["propertyNames"] = serde_json::json!({ "pattern": names });
    schema
}

/// Returns the digest of a source: `sha256:` of its bytes.
pub fn digest(source: &str) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(source)))
}

/// The members that an expression reads, from a name on: `decision`, `option`. Never empty.
pub type MemberPath = Vec<String>;

/// The names and values that templates and conditions see, with the names of the flow format.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scope(pub JsonMap);

/// The error of a template or condition that could not be evaluated, in words for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EvalError(pub String);

#[cfg(test)]
mod tests;
