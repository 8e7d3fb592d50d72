//! All templates, conditions and JSON Schemas of a flow, with their places. There is one list of them, so that exactly
//! what is compiled is checked when the flow is saved.

use indexmap::IndexMap;
use serde_json::Value;
use shared::JsonMap;
use shared::definition::{
    Alternative, EdgeCondition, Flow, Gate, GateSetting, Guardrails, NodeKind, StakesSetting, ToolKind, Validator,
};
use shared::error::pointer;

/// The kind of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpressionKind {
    /// A minijinja template.
    Template,
    /// A CEL condition.
    Condition,
}

/// Calls `visit` with the JSON pointer, kind and text of every template and condition.
pub fn visit_expressions<'a>(flow: &'a Flow, visit: &mut dyn FnMut(String, ExpressionKind, &'a str)) {
    for (name, agent) in &flow.agents {
        if let Some(instructions) = &agent.instructions {
            visit(pointer(["agents", name, "instructions"]), ExpressionKind::Template, instructions);
        }
    }
    for (name, tool) in &flow.tools {
        if let ToolKind::Http(http) = &tool.kind {
            let base = pointer(["tools", name, "http"]);
            visit(format!("{base}/method"), ExpressionKind::Template, &http.method);
            visit(format!("{base}/url"), ExpressionKind::Template, &http.url);
            for (header, value) in &http.headers {
                visit(base.clone() + &pointer(["headers", header]), ExpressionKind::Template, value);
            }
            if let Some(body) = &http.body {
                visit_value(&format!("{base}/body"), body, visit);
            }
        }
    }
    for (base, gate) in gates(flow) {
        if let Some(when) = &gate.when {
            visit(format!("{base}/when"), ExpressionKind::Condition, when);
        }
        if let Some(title) = &gate.title {
            visit(format!("{base}/title"), ExpressionKind::Template, title);
        }
        visit_stakes(&base, gate.stakes(), visit);
    }
    if let Some(Guardrails::List(guardrails)) = &flow.guardrails {
        for (index, guardrail) in guardrails.iter().enumerate() {
            if let Some(when) = guardrail.settings().and_then(|settings| settings.when.as_ref()) {
                visit(format!("/guardrails/{index}/when"), ExpressionKind::Condition, when);
            }
        }
    }
    for (id, node) in &flow.nodes {
        let base = pointer(["nodes", id.as_str()]);
        visit_kind(&base, &node.kind, visit);
        for (index, edge) in node.next.0.iter().enumerate() {
            if let EdgeCondition::When(when) = &edge.condition {
                visit(format!("{base}/next/{index}/when"), ExpressionKind::Condition, when);
            }
        }
    }
}

/// Returns all gates with settings, with their JSON pointers.
pub fn gates(flow: &Flow) -> impl Iterator<Item = (String, &Gate)> {
    type Named<'a> = (Vec<&'a str>, &'a IndexMap<String, GateSetting>);
    let Flow { gates, agents, .. } = flow;
    let own: Named<'_> = (vec!["gates", "before_tool"], &gates.before_tool);
    let of_agents: Named<'_> = (vec!["gates", "before_agent"], &gates.before_agent);
    let by_agents = agents
        .iter()
        .map(|(name, agent)| -> Named<'_> { (vec!["agents", name, "gates", "before_tool"], &agent.gates.before_tool) });
    let named = [own, of_agents].into_iter().chain(by_agents).flat_map(|(place, gates)| {
        let base = pointer(place);
        gates.iter().map(move |(name, setting)| (format!("{base}{}", pointer([name])), setting))
    });
    let single = [
        ("before_return", &gates.before_return),
        ("before_emergent", &gates.before_emergent),
        ("before_strategy_override", &gates.before_strategy_override),
    ];
    let single =
        single.into_iter().filter_map(|(trigger, setting)| Some((pointer(["gates", trigger]), setting.as_ref()?)));
    named.chain(single).filter_map(|(base, setting)| match setting {
        GateSetting::Gate(gate) => Some((base, &**gate)),
        GateSetting::Switch(_) => None,
    })
}

/// Calls `visit` with every JSON Schema that values of a run are checked against, and its JSON pointer.
pub fn visit_schemas<'a>(flow: &'a Flow, visit: &mut dyn FnMut(String, &'a Value)) {
    if let Some(input) = &flow.input {
        visit("/input".to_owned(), input);
    }
    if let Some(output) = &flow.output_schema {
        visit("/output_schema".to_owned(), output);
    }
    for (name, agent) in &flow.agents {
        if let Some(output) = &agent.output_schema {
            visit(pointer(["agents", name, "output_schema"]), output);
        }
    }
    for (name, tool) in &flow.tools {
        if let Some(parameters) = &tool.parameters {
            visit(pointer(["tools", name, "parameters"]), parameters);
        }
    }
    for (id, human) in flow.humans() {
        let base = pointer(["nodes", id.as_str(), "human"]);
        if let Some(Validator::Schema { schema }) = &human.validator {
            visit(format!("{base}/validator/schema"), schema);
        }
        for (index, edit) in human.edit_keys.iter().enumerate() {
            if let Some(schema) = &edit.schema {
                visit(format!("{base}/edit_keys/{index}/schema"), schema);
            }
        }
    }
}

fn visit_kind<'a>(base: &str, kind: &'a NodeKind, visit: &mut dyn FnMut(String, ExpressionKind, &'a str)) {
    match kind {
        NodeKind::Agent { prompt: Some(prompt), .. } => {
            visit(format!("{base}/prompt"), ExpressionKind::Template, prompt);
        }
        NodeKind::Tool { arguments: Some(arguments), .. } => {
            visit_map(&format!("{base}/arguments"), arguments, visit);
        }
        NodeKind::Set(values) => {
            for (key, value) in values {
                visit_value(&(format!("{base}/set") + &pointer([key])), value, visit);
            }
        }
        NodeKind::Router(router) => {
            if let Some(prompt) = &router.prompt {
                visit(format!("{base}/router/prompt"), ExpressionKind::Template, prompt);
            }
        }
        NodeKind::Human(human) => {
            if let Some(title) = &human.title {
                visit(format!("{base}/human/title"), ExpressionKind::Template, title);
            }
            if let Some(prompt) = &human.prompt {
                visit(format!("{base}/human/prompt"), ExpressionKind::Template, prompt);
            }
            visit_stakes(&format!("{base}/human"), human.stakes(), visit);
            if let Some(Validator::When { when, .. }) = &human.validator {
                visit(format!("{base}/human/validator/when"), ExpressionKind::Condition, when);
            }
        }
        NodeKind::Flow(call) => visit_map(&format!("{base}/flow/input"), &call.input, visit),
        NodeKind::Team(team) => {
            if let Some(prompt) = &team.prompt {
                visit(format!("{base}/team/prompt"), ExpressionKind::Template, prompt);
            }
        }
        NodeKind::Agent { .. } | NodeKind::Tool { .. } | NodeKind::Map(_) => {}
    }
}

fn visit_stakes<'a>(base: &str, stakes: StakesSetting<'a>, visit: &mut dyn FnMut(String, ExpressionKind, &'a str)) {
    if let Some(category) = stakes.category {
        visit(format!("{base}/category"), ExpressionKind::Template, category);
    }
    if let Some(severity) = stakes.severity.template() {
        visit(format!("{base}/severity"), ExpressionKind::Template, severity);
    }
    if let Some(amount) = stakes.estimated_cost.and_then(|cost| cost.amount.template()) {
        visit(format!("{base}/estimated_cost/amount"), ExpressionKind::Template, amount);
    }
    for (index, text) in stakes.consequences.iter().enumerate() {
        visit(format!("{base}/consequences/{index}"), ExpressionKind::Template, text);
    }
    for (index, alternative) in stakes.alternatives.iter().enumerate() {
        let place = format!("{base}/alternatives/{index}");
        match alternative {
            Alternative::Sentence(text) => visit(place, ExpressionKind::Template, text),
            Alternative::Choice(choice) => {
                visit(format!("{place}/description"), ExpressionKind::Template, &choice.description);
                if let Some(tradeoffs) = &choice.tradeoffs {
                    visit(format!("{place}/tradeoffs"), ExpressionKind::Template, tradeoffs);
                }
            }
        }
    }
}

fn visit_map<'a>(base: &str, map: &'a JsonMap, visit: &mut dyn FnMut(String, ExpressionKind, &'a str)) {
    for (key, value) in map {
        visit_value(&(base.to_owned() + &pointer([key])), value, visit);
    }
}

fn visit_value<'a>(base: &str, value: &'a Value, visit: &mut dyn FnMut(String, ExpressionKind, &'a str)) {
    match value {
        Value::String(text) => visit(base.to_owned(), ExpressionKind::Template, text),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                visit_value(&format!("{base}/{index}"), item, visit);
            }
        }
        Value::Object(map) => visit_map(base, map, visit),
        _ => {}
    }
}
