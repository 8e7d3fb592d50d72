//! Checks calls of other flows: that they exist, and that their inputs are valid.

use std::collections::BTreeSet;

use serde_json::Value;
use shared::definition::FlowCall;
use shared::error::pointer;
use shared::id::NodeId;

use super::Checker;
use crate::flow::Compiled;
use crate::flow::calls::{calls, find};
use crate::flow::keys::{known, writes_any};

pub fn check(checker: &mut Checker<'_>) {
    let Some(library) = checker.library else { return };
    let flow = checker.flow;
    for (id, call) in calls(flow) {
        let base = pointer(["nodes", id.as_str(), "flow"]);
        match find(flow, call, library) {
            Ok(called) => {
                needed(checker, &base, call, called);
                unknown(checker, &base, call, called);
                output(checker, id, called);
            }
            Err((key, why)) => checker.invalid(&format!("{base}/{key}"), why),
        }
    }
}

/// Checks that the inputs which the called flow requires are passed.
fn needed(checker: &mut Checker<'_>, base: &str, call: &FlowCall, called: &Compiled) {
    let Some(schema) = &called.flow.input else { return };
    let has_default = |name: &str| schema.pointer(&pointer(["properties", name, "default"])).is_some();
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let required = required.filter(|name| !has_default(name));
    if call.input.is_empty() {
        // Without `input`, it gets the state keys named like its inputs.
        let Some(known) = known(checker.flow).filter(|_| checker.whole) else { return };
        for name in required.filter(|name| !known.contains(*name)) {
            let message =
                format!("`{}` needs the input `{name}`, but nothing writes that state key; set it in `input`", call.id);
            checker.invalid(base, message);
        }
    } else {
        for name in required.filter(|name| !call.input.contains_key(*name)) {
            checker.invalid(&format!("{base}/input"), format!("`{}` needs the input `{name}`", call.id));
        }
    }
}

/// Checks that the called flow has the inputs that are passed.
fn unknown(checker: &mut Checker<'_>, base: &str, call: &FlowCall, called: &Compiled) {
    let Some(schema) = &called.flow.input else { return };
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for name in call.input.keys().filter(|name| !properties.contains_key(*name)) {
        let guess = checker.guess(name, properties.keys().map(String::as_str));
        let path = format!("{base}/input{}", pointer([name]));
        let message = format!("`{}` has no input `{name}`{guess}", call.id);
        if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
            checker.invalid_key(&path, message);
        } else {
            checker.warn(&path, message);
        }
    }
}

/// Checks that the keys which the node writes are in the output of the called flow.
fn output(checker: &mut Checker<'_>, id: &NodeId, called: &Compiled) {
    let (Some(output), Some(node)) = (&called.flow.output, checker.flow.nodes.get(id)) else { return };
    let output: BTreeSet<&str> = output.iter().map(String::as_str).collect();
    let is_output = |key: &String| output.contains(key.as_str());
    let Some(named) = node.write_keys.as_ref().filter(|keys| keys.iter().any(is_output) && !writes_any(node)) else {
        return;
    };
    for (index, key) in named.iter().enumerate().filter(|(_, key)| !is_output(key)) {
        let path = format!("{}/{index}", pointer(["nodes", id.as_str(), "write_keys"]));
        let guess = checker.guess(key, output.iter().copied());
        checker.warn(&path, format!("`{key}` is not in the output of `{}`{guess}", called.flow.id));
    }
}
