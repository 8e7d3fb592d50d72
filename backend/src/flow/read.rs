//! Converts a file's value to the flow model, and reports every error on the way.

use serde_json::Value;
use serde_path_to_error::{Path, Segment};
use shared::definition::Flow;
use shared::error::{FlowCode, Mistake, pointer};

use super::limits::MAX_MISTAKES;
use super::source::{SourceText, mistake_at};
use super::structure::fit;

/// The result of reading a flow.
#[derive(Debug)]
pub struct ReadFlow {
    /// The flow without its invalid parts. `None` if it could not be read at all.
    pub flow: Option<Flow>,
    /// The mistakes in the parts that were removed.
    pub mistakes: Vec<Mistake>,
}

/// Reads the flow model from a file's value. Invalid parts are removed and reported, so that the rest can be checked
/// too.
pub fn read_flow(source: &SourceText) -> ReadFlow {
    let mut value = source.value.clone();
    let mut mistakes = Vec::new();
    if !fit(source, &mut value, &mut mistakes) && !value.is_object() {
        return ReadFlow { flow: None, mistakes };
    }
    if let Some(map) = value.as_object_mut() {
        // These two may be missing or invalid, which is reported above. The rest is checked all the same.
        map.entry("id").or_insert_with(|| Value::from("flow"));
        map.entry("nodes").or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    let flow = loop {
        match serde_path_to_error::deserialize::<_, Flow>(&value) {
            Ok(flow) => break Some(flow),
            Err(error) => {
                let path = to_pointer(error.path());
                let message = error.into_inner().to_string();
                if !follows(source, &mistakes, &path, &message) {
                    mistakes.push(mistake_at(
                        source.spot(&path),
                        source.nearest(&path),
                        FlowCode::FlowInvalid,
                        message,
                    ));
                }
                // Reading starts anew after each mistake, so the number of mistakes is limited.
                if mistakes.len() > MAX_MISTAKES || !remove(&mut value, &path) {
                    break None;
                }
            }
        }
    };
    ReadFlow { flow, mistakes }
}

/// Whether a mistake only results from the removal of a part below it that was reported already.
fn follows(source: &SourceText, noted: &[Mistake], path: &str, message: &str) -> bool {
    const KINDS: [&str; 11] =
        ["agent", "tool", "set", "router", "human", "team", "map", "flow", "http", "mcp", "builtin"];
    let below = format!("{path}/");
    if !noted.iter().any(|noted| noted.path.starts_with(&below)) {
        return false;
    }
    let one_kind = || {
        let written = source.value.pointer(path).and_then(Value::as_object);
        written.is_some_and(|map| map.keys().filter(|key| KINDS.contains(&key.as_str())).count() == 1)
    };
    message.starts_with("missing field") || (message.contains("has exactly one of") && one_kind())
}

fn to_pointer(path: &Path) -> String {
    path.iter().fold(String::new(), |path, segment| match segment {
        Segment::Seq { index } => format!("{path}/{index}"),
        Segment::Map { key } => path + &pointer([key]),
        Segment::Enum { variant } => path + &pointer([variant]),
        Segment::Unknown => path,
    })
}

/// Removes the value at a path, or the nearest one above it. Returns `false` if nothing is left.
fn remove(value: &mut Value, path: &str) -> bool {
    let Some((parent, key)) = path.rsplit_once('/') else { return false };
    let key = key.replace("~1", "/").replace("~0", "~");
    let removed = match value.pointer_mut(parent) {
        Some(Value::Object(map)) => map.shift_remove(&key).is_some(),
        Some(Value::Array(items)) => match key.parse::<usize>() {
            Ok(index) if index < items.len() => {
                items.remove(index);
                true
            }
            _ => false,
        },
        _ => false,
    };
    removed || remove(value, parent)
}
