//! Checks reviewers, policies and validators: settings that contradict each other. (`audience` checks them against the
//! existing users.)

use shared::definition::{ChoiceKind, Human, NodeKind, Policy, Reviewers};
use shared::error::pointer;
use shared::id::NodeId;

use super::{Checker, names};

pub fn check(checker: &mut Checker<'_>, base: &str, id: &NodeId, human: &Human) {
    reviewers(checker, &format!("{base}/reviewers"), Some(id), &human.reviewers);
    if human.policy.is_first() {
        if human.deny.is_some() || human.blind {
            let key = if human.deny.is_some() { "deny" } else { "blind" };
            let message = format!("`{key}` has no effect with the policy `first`: the first decision resolves");
            checker.warn(&format!("{base}/{key}"), message);
        }
    } else {
        votes(checker, base, human);
    }
}

/// Checks what a policy with several votes requires.
fn votes(checker: &mut Checker<'_>, base: &str, human: &Human) {
    let path = format!("{base}/policy");
    if !human.has_options() {
        let message = "free text cannot be decided by votes: add options, or leave `policy` out";
        checker.invalid(&path, message);
    } else if !human.may_offer(ChoiceKind::Accept) {
        checker.invalid(&path, "nothing can be accepted here: add an option of kind `accept`, or leave `policy` out");
    }
    numbers(checker, &path, &human.policy);
    if human.deny == Some(0) {
        checker.invalid(&format!("{base}/deny"), "`deny` is at least 1");
    }
}

/// Checks the numbers of required votes.
pub fn numbers(checker: &mut Checker<'_>, path: &str, policy: &Policy) {
    match policy {
        Policy::Quorum(0) => checker.invalid(&format!("{path}/quorum"), "a quorum is at least 1"),
        Policy::Groups(groups) if groups.is_empty() => {
            checker.invalid(&format!("{path}/groups"), "name a role, and how many of its votes are needed");
        }
        Policy::Groups(groups) => {
            for (role, _) in groups.iter().filter(|(_, needed)| **needed == 0) {
                checker.invalid(&format!("{path}/groups{}", pointer([role])), "a group needs at least 1 vote");
            }
        }
        _ => {}
    }
}

/// Checks that `not_same_as` names a node at which someone decides before this one.
pub fn reviewers(checker: &mut Checker<'_>, base: &str, own: Option<&NodeId>, reviewers: &Reviewers) {
    let Some(other) = &reviewers.not_same_as else { return };
    let path = format!("{base}/not_same_as");
    let written = checker.written("nodes", checker.flow.nodes.keys().map(NodeId::as_str));
    names::expect(checker, &path, "node", other, &written);
    let Some(node) = checker.flow.nodes.get(other) else { return };
    if !is_decided(&node.kind) {
        let message = format!("nobody decides at `{other}`, a {} node; name a human node", node.kind.as_str());
        checker.invalid(&path, message);
    } else if let Some(own) = own
        && checker.nodes_whole
        && !checker.reachability.reaches(other, own)
    {
        checker.warn(&path, format!("`{other}` never comes before `{own}`, so no one is excluded"));
    }
}

/// Whether people may decide something at a node: what it asks, or what a gate holds back there, such as the calls of an
/// agent.
fn is_decided(kind: &NodeKind) -> bool {
    match kind {
        NodeKind::Human(_) | NodeKind::Agent { .. } | NodeKind::Tool { .. } | NodeKind::Team(_) => true,
        NodeKind::Router(router) => router.agent.is_some(),
        NodeKind::Set(_) | NodeKind::Map(_) | NodeKind::Flow(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::flow::check;

    fn flow(human: &str) -> String {
        format!("id: f\nnodes:\n  a: {{ human: {{ prompt: x, {human} }} }}\n")
    }

    fn found(human: &str) -> Vec<String> {
        check(&flow(human)).errors.iter().map(|mistake| format!("{} {}", mistake.path, mistake.message)).collect()
    }

    #[test]
    fn a_policy_that_nothing_could_fulfil_is_refused_where_it_stands() {
        const YES: &str = "options: [{ id: yes, label: Y }]";
        for (human, path, words) in [
            ("policy: majority".to_owned(), "policy", "cannot be decided by votes"),
            ("policy: majority, options: [{ id: no, kind: stop, label: N }]".to_owned(), "policy", "kind `accept`"),
            (format!("{YES}, policy: {{ quorum: 0 }}"), "policy/quorum", "at least 1"),
            (format!("{YES}, policy: {{ groups: {{ legal: 0 }} }}"), "policy/groups/legal", "at least 1"),
            (format!("{YES}, policy: {{ groups: {{}} }}"), "policy/groups", "name a role"),
            (format!("{YES}, policy: majority, deny: 0"), "deny", "at least 1"),
            (format!("{YES}, reviewers: {{ not_same_as: b }}"), "reviewers/not_same_as", "no node `b`"),
            ("validator: { when: response.text }".to_owned(), "", ""),
            ("validator: { when: 'response.text ==' }".to_owned(), "validator/when", "cannot be read"),
            ("validator: { schema: { type: wrong } }".to_owned(), "validator/schema/type", "not a valid JSON Schema"),
        ] {
            let found = found(&human);
            let fits =
                found.iter().all(|one| one.starts_with(&format!("/nodes/a/human/{path} ")) && one.contains(words));
            assert!(fits && found.is_empty() == path.is_empty(), "{human}: {found:?}");
        }
        assert!(check(&flow("validator: { when: 'response.text ==' }")).errors[0].line.is_some());
    }

    #[test]
    fn a_node_at_which_nobody_can_decide_excludes_nobody() {
        let after = |node: &str| {
            let human = "human: { prompt: x, options: [{ id: yes, label: Y }], reviewers: { not_same_as: a } }";
            let agents = "agents: { w: { model: demo/w }, v: { model: demo/v } }";
            let errors =
                check(&format!("id: f\n{agents}\nnodes:\n  a: {{ {node}, next: b }}\n  b: {{ {human} }}\n")).errors;
            errors.into_iter().map(|mistake| mistake.message).collect::<Vec<_>>()
        };
        for fine in ["agent: w", "team: { agents: [w, v] }", "router: { agent: w }"] {
            assert_eq!(after(fine), [""; 0]);
        }
        for (node, kind) in [("router: {}", "router"), ("set: { x: 1 }", "set")] {
            assert_eq!(after(node), [format!("nobody decides at `a`, a {kind} node; name a human node")]);
        }
    }
}
