//! Targets for flow files, and for the templates, conditions and JSON Schemas in them.

use backend::flow::{Compiled, Scope, Templates, check, check_value, graph};
use backend::fuzzing;
use serde_json::{Value, json};

use crate::text;

/// Reads and checks a flow file. A flow without mistakes must also compile, and survive being drawn and stored.
pub fn flow_file(data: &[u8]) {
    let Some(source) = text(data) else { return };
    let checked = check(source);
    let Some(flow) = checked.flow.filter(|_| checked.errors.is_empty()) else { return };
    let stored = serde_json::to_string(&flow).expect("a flow can be stored");
    let read = serde_json::from_str(&stored).expect("a stored flow can be read");
    assert_eq!(flow, read, "a stored flow is the same when it is read");
    graph(&flow);
    // The only mistakes left are calls of other flows: they need a library, which is missing here.
    if let Err(mistakes) = Compiled::new(flow, 1) {
        assert!(
            mistakes.iter().all(|mistake| mistake.message.contains("flow")),
            "a flow without mistakes is made ready: {mistakes:?}"
        );
    }
}

/// The values that templates and conditions can refer to.
fn scope() -> Scope {
    let scope = json!({
        "input": { "topic": "the ocean", "count": 3, "tags": ["a", "b", "c"], "nothing": null },
        "items": (0..200).collect::<Vec<_>>(),
        "draft": "A text with \"quotes\", ünïcode and\nlines.",
        "arguments": { "to": "acme", "amount": 100.5 },
        "context": { "user": "ana", "metadata": { "tier": "guest" } },
        "decisions": { "review": { "outcome": "accepted", "by": ["ana"] } },
    });
    match scope {
        Value::Object(scope) => Scope(scope),
        _ => unreachable!("an object"),
    }
}

/// Compiles a template, and renders it as text and as a value.
pub fn template(data: &[u8]) {
    let Some(template) = text(data) else { return };
    let scope = scope();
    let mut templates = Templates::default();
    if templates.add(template).is_ok() {
        let _ = templates.render(template, &scope);
        let _ = templates.render_value(&Value::String(template.to_owned()), &scope);
    }
}

/// Compiles and evaluates a condition.
pub fn condition(data: &[u8]) {
    let Some(condition) = text(data) else { return };
    let _ = fuzzing::condition(condition, &scope());
}

/// Checks a value (all lines after the first) against a JSON Schema (the first line).
pub fn schema(data: &[u8]) {
    let Some((schema, value)) = text(data).and_then(|text| text.split_once('\n')) else { return };
    let (Ok(schema), Ok(value)) = (serde_json::from_str::<Value>(schema), serde_json::from_str::<Value>(value)) else {
        return;
    };
    check_value(&schema, &value, "");
}
