//! Flow files: reading them with line and column, finding every mistake when they are saved, and making them ready to
//! run. Pure.
//!
//! Imports `shared` only.

mod agents;
mod audience;
pub mod builder;
mod calls;
mod cancellation;
mod check;
mod compiled;
mod condition;
mod expressions;
mod fixed_host;
mod graph;
pub mod guardrail;
mod json_schema;
mod keys;
pub mod limits;
mod parallel;
mod reachability;
mod read;
mod scalar;
mod schema_work;
mod source;
mod stack;
mod structure;
mod suggest;
mod template;
mod value_size;

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
pub use fixed_host::{has_fixed_host, host_of};
pub use graph::{graph, graph_of};
pub use json_schema::{check_value, is_of_object};
pub use keys::ANY;
pub use stack::SIZE as LARGE_STACK;
pub use template::{Templates, url_piece};

/// What checking a source found.
#[derive(Debug, Clone)]
pub struct CheckedFlow {
    /// The flow, where it could be read at all.
    pub flow: Option<Flow>,
    /// Every mistake, with line and column; a flow with mistakes cannot be saved.
    pub errors: Vec<Mistake>,
    /// What is allowed but doubtful.
    pub warnings: Vec<Mistake>,
}

/// Reads and checks a flow file (YAML or JSON). The flow is there only where nothing of it had to be left out.
pub fn check(source: &str) -> CheckedFlow {
    read(source).check(&Here::default())
}

/// Every mistake of a flow that was made by a program, with its place in the flow.
pub fn mistakes_of(flow: &Flow) -> Vec<Mistake> {
    check::check_flow(flow, None, &[], &Here::default(), &CancelFlag::default()).0
}

/// A flow file that has been read, and is still to be checked.
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
    /// What could be read.
    pub fn flow(&self) -> Option<&Flow> {
        self.flow.as_ref()
    }

    /// The same, to be saved under this id: that the file has another one is a mistake among its others.
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

    /// Finds every mistake; also what does not fit the place where it is to be saved, as far as that is known.
    pub fn check(self, here: &Here<'_>) -> CheckedFlow {
        self.check_unless(&CancelFlag::default(), here)
    }

    /// The same, which ends early where nobody waits for it any more; what it says is not whole then.
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

/// Leaves out what is more than anybody reads, and says so.
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

/// Reads a flow file, which must have no mistakes.
pub fn parse(source: &str) -> Result<Flow, builder::InvalidFlow> {
    let CheckedFlow { flow, errors, .. } = check(source);
    flow.filter(|_| errors.is_empty()).ok_or(builder::InvalidFlow(errors))
}

/// JSON Schema of the flow format, for editors.
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

/// What tells one source from another: `sha256:` of its bytes.
pub fn digest(source: &str) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(source)))
}

/// The names that templates and conditions see, as the flow format names them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scope(pub JsonMap);

/// A template or condition that could not be evaluated; in words for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EvalError(pub String);

#[cfg(test)]
mod tests;
