//! Checks templates, conditions and JSON Schemas: that they compile, and that their names exist.

use std::collections::BTreeSet;

use shared::definition::ToolKind;
use shared::error::pointer;

use super::{Checker, guardrails, keys, members};
use crate::flow::EvalError;
use crate::flow::condition::Conditions;
use crate::flow::expressions::{ExpressionKind, expressions_of, schemas_of};
use crate::flow::json_schema::{compile, patterns};
use crate::flow::keys::{RESERVED, known};
use crate::flow::limits::{MAX_CONDITIONS, MAX_PATTERNS};
use crate::flow::template::Templates;
use crate::flow::{has_fixed_host, is_unencrypted};

pub fn check(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    let known = if checker.whole { known(flow) } else { None };
    let mut templates = Templates::default();
    let mut conditions = Conditions::default();
    let mut read = BTreeSet::new();
    let mut sends_secrets = BTreeSet::new();
    let mut left = MAX_CONDITIONS;
    for (path, kind, text) in expressions_of(flow) {
        if checker.abandoned.is_set() {
            return;
        }
        if kind == ExpressionKind::Condition && read.insert(text) {
            let Some(rest) = left.checked_sub(text.len()) else {
                let message = format!(
                    "the conditions of a flow may have at most {MAX_CONDITIONS} bytes in total; split them with `set` nodes"
                );
                checker.invalid(&path, message);
                break;
            };
            left = rest;
        }
        let names: Vec<String> = match kind {
            ExpressionKind::Template => templates.add(text).map(|()| templates.names(text)),
            ExpressionKind::Condition => conditions.add(text).map(|()| conditions.names(text)),
        }
        .unwrap_or_else(|EvalError(message)| {
            checker.invalid(&path, message);
            Vec::new()
        });
        match kind {
            ExpressionKind::Template => {
                templates.unknown(text).into_iter().for_each(|unknown| checker.invalid(&path, unknown));
                members::read(checker, &path, &templates.paths(text));
            }
            ExpressionKind::Condition => {
                members::read(checker, &path, &conditions.paths(text));
                members::compared(checker, &path, &conditions.compared(text));
            }
        }
        let node = members::node_at(checker, &path);
        if names.iter().any(|name| name == "secret") && path.starts_with("/tools/") {
            sends_secrets.extend(path.split_once("/http/").map(|(tool, _)| tool.to_owned()));
        }
        if path.starts_with("/guardrails/") {
            guardrails::names(checker, &path, &names);
            continue;
        }
        for name in names {
            if name == "secret" && !path.starts_with("/tools/") {
                checker.invalid(&path, "secrets can be used only in `http` tools: in their URL, headers and body");
            }
            let Some(known) = &known else { continue };
            if name == "agent" && path.contains("/gates/") {
                continue;
            }
            // Asking for a correction writes it.
            let is_written = name == "correction" || known.contains(&name);
            if !RESERVED.contains(&name.as_str()) && !is_written {
                let guess = checker.guess(&name, known.iter().map(String::as_str).chain(RESERVED));
                checker.warn(&path, format!("nothing writes the state key `{name}`{guess}"));
            } else if let Some((id, node)) = node
                && is_written
                && name != "correction"
                && !keys::may_read(flow, id, node, &name)
            {
                checker.warn(&path, format!("`{name}` is missing here: it is not among the node's `read_keys`"));
            }
        }
    }
    checker.conditions = conditions;
    hosts(checker, &sends_secrets);
    schemas(checker);
}

/// Warns of a tool that sends secrets to a host which a run can choose, or unencrypted, since it needs the server's
/// settings to name the host.
fn hosts(checker: &mut Checker<'_>, sends_secrets: &BTreeSet<String>) {
    for (name, tool) in &checker.flow.tools {
        let ToolKind::Http(http) = &tool.kind else { continue };
        if !sends_secrets.contains(&pointer(["tools", name])) {
            continue;
        }
        let place = pointer(["tools", name, "http", "url"]);
        if !has_fixed_host(&http.url) {
            let message = "the host of this url depends on what is filled in: secrets are sent there only where the \
                           server's settings bind them to that host";
            checker.warn(&place, message);
        }
        if is_unencrypted(&http.url) {
            let message = "this tool sends a secret, which is not sent unencrypted: use https, or have the server's \
                           settings allow the host ([tools] allowed_hosts)";
            checker.warn(&place, message);
        }
    }
}

fn schemas(checker: &mut Checker<'_>) {
    if let Some(input) = &checker.flow.input
        && (!input.is_object() || !input.get("type").is_none_or(|of| of == "object"))
    {
        checker.invalid("/input/type", "expected the JSON Schema of an object: its properties become state keys");
    }
    let mut left = MAX_PATTERNS;
    for (path, schema) in schemas_of(checker.flow) {
        let Some(rest) = left.checked_sub(patterns(schema)) else {
            checker.invalid(
                &path,
                format!("the JSON Schemas of a flow may have at most {MAX_PATTERNS} patterns in total"),
            );
            return;
        };
        left = rest;
        if checker.abandoned.is_set() {
            return;
        }
        if let Err(mistake) = compile(schema) {
            checker.invalid(&format!("{path}{}", mistake.path), mistake.message);
        }
    }
}
