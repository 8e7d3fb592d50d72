//! Headlines of reviews, for somebody who scans an inbox. A decision is bound to them too, so they follow from the flow
//! and its calls alone.

use shared::id::NodeId;
use shared::review::{Action, Item};

/// How many things are named; the others are counted.
const NAMED: usize = 2;

/// What a human node asks about: `Review: Draft, Sources and 2 more`.
pub(super) fn of_items(node: &NodeId, items: &[Item]) -> String {
    let node = readable(node.own());
    let names = items.iter().map(|item| item.label.clone().unwrap_or_else(|| readable(&item.key)));
    // What the node's name says already is not said again.
    let names: Vec<_> = names.filter(|name| !share_a_word(&node, name)).collect();
    if names.is_empty() { node } else { format!("{node}: {}", listed(&names)) }
}

/// What is to be called: `Draft: run publish and notify ×3`.
pub(super) fn of_calls(node: &NodeId, actions: &[Action]) -> String {
    let mut tools: Vec<(&str, u32)> = Vec::new();
    for action in actions {
        match tools.iter_mut().find(|(name, _)| *name == action.name) {
            Some((_, times)) => *times += 1,
            None => tools.push((&action.name, 1)),
        }
    }
    let node = readable(node.own());
    let says_it = tools.iter().any(|(name, _)| share_a_word(&node, name));
    let tools =
        tools.into_iter().map(|(name, times)| if times > 1 { format!("{name} ×{times}") } else { name.to_owned() });
    let tools = listed(&tools.collect::<Vec<_>>());
    if says_it { format!("Run {tools}") } else { format!("{node}: run {tools}") }
}

fn listed(names: &[String]) -> String {
    match names {
        [one, other] => format!("{one} and {other}"),
        names if names.len() > NAMED => format!("{} and {} more", names[..NAMED].join(", "), names.len() - NAMED),
        names => names.concat(),
    }
}

fn share_a_word(one: &str, other: &str) -> bool {
    words(one).any(|word| words(other).any(|same| same.to_lowercase() == word.to_lowercase()))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// A name as a headline: `legal-check` is "Legal check".
fn readable(name: &str) -> String {
    let words = name.replace(['-', '_'], " ");
    let mut chars = words.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn items(keys: &[(&str, Option<&str>)]) -> Vec<Item> {
        let item = |(key, label): &(&str, Option<&str>)| json!({ "key": key, "label": label, "content_type": "text", "value": Value::Null, "editable": false });
        keys.iter().map(|key| serde_json::from_value(item(key)).unwrap()).collect()
    }

    fn calls(tools: &[&str]) -> Vec<Action> {
        let action =
            |tool| json!({ "id": "c", "type": "tool", "name": tool, "arguments": {}, "allowed_decisions": [] });
        tools.iter().map(|tool| serde_json::from_value(action(tool)).unwrap()).collect()
    }

    #[test]
    fn a_human_nodes_headline_says_what_is_shown() {
        for (node, keys, title) in [
            ("ask", &[][..], "Ask"),
            ("review", &[("draft", None)], "Review: Draft"),
            (
                "legal-check",
                &[("contract_text", None), ("sum", Some("Sum in €"))],
                "Legal check: Contract text and Sum in €",
            ),
            ("check", &[("a", None), ("b", None), ("c", None), ("d", None)], "Check: A, B and 2 more"),
            ("review", &[("review", None)], "Review"),
            ("review_draft", &[("draft", None), ("price", None)], "Review draft: Price"),
        ] {
            assert_eq!(of_items(&node.parse().unwrap(), &items(keys)), title);
        }
    }

    #[test]
    fn a_gates_headline_says_what_would_run() {
        for (node, tools, title) in [
            ("draft", &["publish"][..], "Draft: run publish"),
            ("publish", &["publish"], "Run publish"),
            ("publish-page", &["publish", "notify"], "Run publish and notify"),
            ("serve", &["delete_order", "refund", "delete_order"], "Serve: run delete_order ×2 and refund"),
            ("serve", &["a", "b", "c"], "Serve: run a, b and 1 more"),
        ] {
            assert_eq!(of_calls(&node.parse().unwrap(), &calls(tools)), title);
        }
    }
}
