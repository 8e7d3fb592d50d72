//! All templates, conditions and JSON Schemas of a flow, with their places. There is one list of them, so that exactly
//! what is compiled is checked when the flow is saved.

use indexmap::IndexMap;
use serde_json::Value;
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

/// Returns every template and condition of a flow, with its JSON pointer.
pub fn expressions_of(flow: &Flow) -> Vec<(String, ExpressionKind, &str)> {
    let mut found = FoundExpressions::default();
    for (name, agent) in &flow.agents {
        found.template(pointer(["agents", name, "instructions"]), agent.instructions.as_deref());
    }
    for (name, tool) in &flow.tools {
        if let ToolKind::Http(http) = &tool.kind {
            let base = pointer(["tools", name, "http"]);
            found.template(format!("{base}/method"), Some(&http.method));
            found.template(format!("{base}/url"), Some(&http.url));
            for (header, value) in &http.headers {
                found.template(base.clone() + &pointer(["headers", header]), Some(value));
            }
            if let Some(body) = &http.body {
                found.value(&format!("{base}/body"), body);
            }
        }
    }
    for (base, gate) in gates(flow) {
        found.condition(format!("{base}/when"), gate.when.as_deref());
        found.template(format!("{base}/title"), gate.title.as_deref());
        found.stakes(&base, gate.stakes());
    }
    if let Some(Guardrails::List(guardrails)) = &flow.guardrails {
        for (index, guardrail) in guardrails.iter().enumerate() {
            let when = guardrail.settings().and_then(|settings| settings.when.as_deref());
            found.condition(format!("/guardrails/{index}/when"), when);
        }
    }
    for (id, node) in &flow.nodes {
        let base = pointer(["nodes", id.as_str()]);
        found.kind(&base, &node.kind);
        for (index, edge) in node.next.0.iter().enumerate() {
            if let EdgeCondition::When(when) = &edge.condition {
                found.condition(format!("{base}/next/{index}/when"), Some(when));
            }
        }
    }
    found.0
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

/// Returns every JSON Schema that values of a run are checked against, with its JSON pointer.
pub fn schemas_of(flow: &Flow) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    found.extend(flow.input.iter().map(|input| ("/input".to_owned(), input)));
    found.extend(flow.output_schema.iter().map(|output| ("/output_schema".to_owned(), output)));
    for (name, agent) in &flow.agents {
        found.extend(agent.output_schema.iter().map(|output| (pointer(["agents", name, "output_schema"]), output)));
    }
    for (name, tool) in &flow.tools {
        found.extend(tool.parameters.iter().map(|parameters| (pointer(["tools", name, "parameters"]), parameters)));
    }
    for (id, human) in flow.humans() {
        let base = pointer(["nodes", id.as_str(), "human"]);
        if let Some(Validator::Schema { schema }) = &human.validator {
            found.push((format!("{base}/validator/schema"), schema));
        }
        for (index, edit) in human.edit_keys.iter().enumerate() {
            found.extend(edit.schema.iter().map(|schema| (format!("{base}/edit_keys/{index}/schema"), schema)));
        }
    }
    found
}

/// The templates and conditions that were found so far, each with its JSON pointer.
#[derive(Default)]
struct FoundExpressions<'a>(Vec<(String, ExpressionKind, &'a str)>);

impl<'a> FoundExpressions<'a> {
    fn template(&mut self, place: String, text: Option<&'a str>) {
        self.0.extend(text.map(|text| (place, ExpressionKind::Template, text)));
    }

    fn condition(&mut self, place: String, text: Option<&'a str>) {
        self.0.extend(text.map(|text| (place, ExpressionKind::Condition, text)));
    }

    fn kind(&mut self, base: &str, kind: &'a NodeKind) {
        match kind {
            NodeKind::Agent { prompt, .. } => self.template(format!("{base}/prompt"), prompt.as_deref()),
            NodeKind::Tool { arguments, .. } => self.members(&format!("{base}/arguments"), arguments.iter().flatten()),
            NodeKind::Set(values) => self.members(&format!("{base}/set"), values),
            NodeKind::Router(router) => self.template(format!("{base}/router/prompt"), router.prompt.as_deref()),
            NodeKind::Human(human) => {
                let base = format!("{base}/human");
                self.template(format!("{base}/title"), human.title.as_deref());
                self.template(format!("{base}/prompt"), human.prompt.as_deref());
                self.stakes(&base, human.stakes());
                if let Some(Validator::When { when, .. }) = &human.validator {
                    self.condition(format!("{base}/validator/when"), Some(when));
                }
            }
            NodeKind::Flow(call) => self.members(&format!("{base}/flow/input"), &call.input),
            NodeKind::Team(team) => self.template(format!("{base}/team/prompt"), team.prompt.as_deref()),
            NodeKind::Map(_) => {}
        }
    }

    fn stakes(&mut self, base: &str, stakes: StakesSetting<'a>) {
        self.template(format!("{base}/category"), stakes.category);
        self.template(format!("{base}/severity"), stakes.severity.template());
        let amount = stakes.estimated_cost.and_then(|cost| cost.amount.template());
        self.template(format!("{base}/estimated_cost/amount"), amount);
        for (index, text) in stakes.consequences.iter().enumerate() {
            self.template(format!("{base}/consequences/{index}"), Some(text));
        }
        for (index, alternative) in stakes.alternatives.iter().enumerate() {
            let place = format!("{base}/alternatives/{index}");
            match alternative {
                Alternative::Sentence(text) => self.template(place, Some(text)),
                Alternative::Choice(choice) => {
                    self.template(format!("{place}/description"), Some(&choice.description));
                    self.template(format!("{place}/tradeoffs"), choice.tradeoffs.as_deref());
                }
            }
        }
    }

    fn members(&mut self, base: &str, members: impl IntoIterator<Item = (&'a String, &'a Value)>) {
        for (key, value) in members {
            self.value(&(base.to_owned() + &pointer([key])), value);
        }
    }

    fn value(&mut self, base: &str, value: &'a Value) {
        match value {
            Value::String(text) => self.template(base.to_owned(), Some(text)),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.value(&format!("{base}/{index}"), item);
                }
            }
            Value::Object(members) => self.members(base, members),
            _ => {}
        }
    }
}
