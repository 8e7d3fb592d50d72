//! Templates, conditions and JSON Schemas: that they can be compiled, and that the names in them exist.

use std::collections::BTreeSet;

use serde_json::Value;
use shared::definition::ToolKind;
use shared::error::pointer;

use super::Checker;
use crate::flow::EvalError;
use crate::flow::condition::Conditions;
use crate::flow::has_fixed_host;
use crate::flow::json_schema::compile;
use crate::flow::keys::{RESERVED, known};
use crate::flow::template::Templates;
use crate::flow::texts::{TextKind, visit_texts};

pub fn check(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    let known = if checker.whole { known(flow) } else { None };
    let mut templates = Templates::default();
    let mut conditions = Conditions::default();
    let mut texts = Vec::new();
    let mut sends_secrets = BTreeSet::new();
    visit_texts(flow, &mut |path, kind, text| texts.push((path, kind, text)));
    for (path, kind, text) in texts {
        let names: Vec<String> = match kind {
            TextKind::Template => templates.add(text).map(|()| templates.names(text)),
            TextKind::Condition => conditions.add(text).map(|()| conditions.names(text)),
        }
        .unwrap_or_else(|EvalError(message)| {
            checker.invalid(&path, message);
            Vec::new()
        });
        if names.iter().any(|name| name == "secret") && path.starts_with("/tools/") {
            sends_secrets.extend(path.split_once("/http/").map(|(tool, _)| tool.to_owned()));
        }
        for name in names {
            if name == "secret" && !path.starts_with("/tools/") {
                checker.invalid(&path, "secrets can be used in `http` tools only: their URL, headers and body");
            }
            let Some(known) = &known else { continue };
            if !RESERVED.contains(&name.as_str()) && !known.contains(&name) {
                let guess = checker.guess(&name, known.iter().map(String::as_str).chain(RESERVED));
                checker.warn(&path, format!("nobody writes the state key `{name}`{guess}"));
            }
        }
    }
    hosts(checker, &sends_secrets);
    schemas(checker);
}

/// A secret goes nowhere that a run can choose, unless the server's settings name the host.
fn hosts(checker: &mut Checker<'_>, sends_secrets: &BTreeSet<String>) {
    for (name, tool) in &checker.flow.tools {
        let ToolKind::Http(http) = &tool.kind else { continue };
        if sends_secrets.contains(&pointer(["tools", name])) && !has_fixed_host(&http.url) {
            let message = "the host of this url depends on what is filled in: secrets are sent there only where the \
                           server's settings bind them to that host";
            checker.warn(&pointer(["tools", name, "http", "url"]), message);
        }
    }
}

fn schemas(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    if let Some(input) = &flow.input {
        schema(checker, "/input", input);
        if !input.is_object() || !input.get("type").is_none_or(|of| of == "object") {
            checker.invalid("/input/type", "expected the JSON Schema of an object: its properties become state keys");
        }
    }
    for (name, agent) in &flow.agents {
        if let Some(output) = &agent.output_schema {
            schema(checker, &pointer(["agents", name, "output_schema"]), output);
        }
    }
    for (name, tool) in &flow.tools {
        if let Some(parameters) = &tool.parameters {
            schema(checker, &pointer(["tools", name, "parameters"]), parameters);
        }
    }
}

/// Notes what is wrong with a JSON Schema.
pub(super) fn schema(checker: &mut Checker<'_>, path: &str, schema: &Value) {
    if let Err(mistake) = compile(schema) {
        checker.invalid(&format!("{path}{}", mistake.path), mistake.message);
    }
}
