//! Flow files: reading them with line and column, finding every mistake when they are saved, and making them ready to
//! run. Pure.
//!
//! Imports `shared` only.

mod check;
mod compiled;
mod condition;
mod json_schema;
mod keys;
pub mod limits;
mod read;
mod shape;
mod source;
mod suggest;
mod template;
mod texts;
mod ways;

use serde_json::Value;
use shared::JsonMap;
use shared::api::Graph;
use shared::definition::Flow;
use shared::error::Mistake;

pub use compiled::Compiled;
pub use json_schema::check_value;
pub use template::Templates;

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

/// Reads and checks a flow file (YAML or JSON). The flow is there only where nothing of it had to be left out.
pub fn check(source: &str) -> Checked {
    let (source, mut errors) = source::read(source);
    let Some(source) = source else { return Checked { flow: None, errors, warnings: Vec::new() } };
    let reading = read::read_flow(&source);
    errors.extend(reading.mistakes);
    let is_whole = errors.is_empty();
    // A mistake in the nodes hides edges: what depends on all of them would only say the same in other words.
    let nodes_whole = !errors.iter().any(|mistake| mistake.path.starts_with("/nodes") || mistake.path.is_empty());
    let mut warnings = Vec::new();
    if let Some(flow) = &reading.flow {
        let (found, doubtful) = check::check_flow(flow, Some(&source), nodes_whole);
        errors.extend(found);
        warnings = doubtful;
    }
    let place = |mistake: &Mistake| (mistake.line, mistake.column);
    errors.sort_by_key(place);
    warnings.sort_by_key(place);
    Checked { flow: reading.flow.filter(|_| is_whole), errors, warnings }
}

/// JSON Schema of the flow format, for editors.
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(Flow).to_value();
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".to_owned(), Value::from("Countersign flow"));
    }
    schema
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

#[cfg(test)]
mod tests {
    #[test]
    fn dump() {
        std::fs::write("/tmp/flow.schema.json", serde_json::to_string_pretty(&super::schema()).unwrap()).unwrap();
    }
}
