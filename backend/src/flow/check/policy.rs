//! Who may decide, how their decisions become one, and what a response must fulfil: settings that contradict each other,
//! and, where the people who exist are known, what they could not do today.

use shared::access::{Principal, REVIEWER, is_named};
use shared::definition::{ChoiceKind, Human, NodeKind, Policy, Reviewers, Validator};
use shared::error::pointer;
use shared::id::NodeId;

use super::Checker;
use super::human::has;
use super::texts;
use crate::flow::suggest::did_you_mean;

pub fn check(checker: &mut Checker<'_>, base: &str, id: &NodeId, human: &Human) {
    reviewers(checker, &format!("{base}/reviewers"), Some(id), &human.reviewers);
    if human.policy.is_first() {
        if human.deny.is_some() || human.blind {
            let key = if human.deny.is_some() { "deny" } else { "blind" };
            let message = format!("`{key}` means nothing with the policy `first`: the first decision resolves");
            checker.warn(&format!("{base}/{key}"), message);
        }
    } else {
        votes(checker, base, human);
    }
    if let Some(Validator::Schema { schema }) = &human.validator {
        texts::schema(checker, &format!("{base}/validator/schema"), schema);
    }
    people(checker, base, human);
}

/// What a policy of several votes needs.
fn votes(checker: &mut Checker<'_>, base: &str, human: &Human) {
    let path = format!("{base}/policy");
    if human.options.is_empty() {
        let message = "several answers in free text cannot become one: give options, or leave `policy` out";
        checker.invalid(&path, message);
    } else if !has(human, ChoiceKind::Accept) {
        checker.invalid(&path, "nothing can be accepted here: give an option of kind `accept`, or leave `policy` out");
    }
    match &human.policy {
        Policy::Quorum(0) => checker.invalid(&format!("{path}/quorum"), "a quorum is at least 1"),
        Policy::Groups(groups) if groups.is_empty() => {
            checker.invalid(&format!("{path}/groups"), "name a role and how many votes of it are needed");
        }
        Policy::Groups(groups) => {
            for (role, _) in groups.iter().filter(|(_, needed)| **needed == 0) {
                checker.invalid(&format!("{path}/groups{}", pointer([role])), "a group needs at least 1 vote");
            }
        }
        _ => {}
    }
    if human.deny == Some(0) {
        checker.invalid(&format!("{base}/deny"), "`deny` is at least 1");
    }
}

/// `not_same_as` names a node at which somebody decides before.
pub fn reviewers(checker: &mut Checker<'_>, base: &str, own: Option<&NodeId>, reviewers: &Reviewers) {
    let Some(other) = &reviewers.not_same_as else { return };
    let path = format!("{base}/not_same_as");
    let written = checker.written("nodes", checker.flow.nodes.keys().map(NodeId::as_str));
    if !written.contains(other.as_str()) {
        let guess = did_you_mean(other, written.iter().map(String::as_str));
        checker.invalid(&path, format!("there is no node `{other}`{guess}"));
        return;
    }
    let Some(node) = checker.flow.nodes.get(other) else { return };
    if !matches!(node.kind, NodeKind::Human(_) | NodeKind::Agent { .. } | NodeKind::Tool { .. }) {
        let message = format!("nobody decides at `{other}`, a {} node; name a human node", node.kind.as_str());
        checker.invalid(&path, message);
    } else if let Some(own) = own
        && checker.nodes_whole
        && !checker.ways.reaches(other, own)
    {
        checker.warn(&path, format!("`{other}` never comes before `{own}`, so nobody is shut out"));
    }
}

/// Warns of what the people who exist could not resolve today.
fn people(checker: &mut Checker<'_>, base: &str, human: &Human) {
    let Some(people) = checker.people else { return };
    let mut reviewers = human.reviewers.clone();
    let mut groups = human.policy.groups().map(|(role, _)| role.clone()).peekable();
    if groups.peek().is_some() && reviewers.roles.is_empty() && reviewers.users.is_empty() {
        reviewers.roles.push(REVIEWER.to_owned());
    }
    reviewers.roles.extend(groups);
    let may: Vec<&Principal> = people.iter().filter(|person| is_named(person, &reviewers)).collect();
    let there = |count: usize| match count {
        0 => "nobody".to_owned(),
        1 => "only 1 person".to_owned(),
        many => format!("only {many} people"),
    };
    let least = usize::from(human.reviewers.shuts_out()) + 1;
    match &human.policy {
        Policy::Groups(groups) => {
            for (role, needed) in groups {
                let members = may.iter().filter(|person| person.has(role)).count();
                if members < usize::try_from(*needed).unwrap_or(usize::MAX) {
                    let message = format!("{needed} of `{role}` are needed, and {} has this role now", there(members));
                    checker.warn(&format!("{base}/policy/groups{}", pointer([role])), message);
                }
            }
        }
        Policy::Quorum(needed) if may.len() < usize::try_from(*needed).unwrap_or(usize::MAX) => {
            let message = format!("{needed} votes are needed, and {} may vote now", there(may.len()));
            checker.warn(&format!("{base}/policy/quorum"), message);
        }
        _ if may.len() < least => {
            let path = if human.reviewers.is_empty() { base.to_owned() } else { format!("{base}/reviewers") };
            let more = if least > 1 { ", who may be shut out" } else { "" };
            checker.warn(
                &path,
                format!("{} may decide this now{}", there(may.len()), if may.is_empty() { "" } else { more }),
            );
        }
        _ => {}
    }
    let voters = u32::try_from(may.len()).unwrap_or(u32::MAX);
    if !human.policy.is_first() && human.deny.is_some_and(|deny| deny > voters) && voters > 0 {
        let message = format!("{} may vote now: so many votes against cannot come", there(may.len()));
        checker.warn(&format!("{base}/deny"), message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{check, check_among};

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
            ("policy: majority".to_owned(), "policy", "in free text cannot become one"),
            ("policy: majority, options: [{ id: no, kind: stop, label: N }]".to_owned(), "policy", "kind `accept`"),
            (format!("{YES}, policy: {{ quorum: 0 }}"), "policy/quorum", "at least 1"),
            (format!("{YES}, policy: {{ groups: {{ legal: 0 }} }}"), "policy/groups/legal", "at least 1"),
            (format!("{YES}, policy: {{ groups: {{}} }}"), "policy/groups", "name a role"),
            (format!("{YES}, policy: majority, deny: 0"), "deny", "at least 1"),
            (format!("{YES}, reviewers: {{ not_same_as: b }}"), "reviewers/not_same_as", "no node `b`"),
            ("validator: { when: response.text }".to_owned(), "", ""),
            ("validator: { when: 'response.text ==' }".to_owned(), "validator/when", "cannot be read"),
            ("validator: { schema: { type: wrong } }".to_owned(), "validator/schema/type", "no valid JSON Schema"),
        ] {
            let found = found(&human);
            let fits =
                found.iter().all(|one| one.starts_with(&format!("/nodes/a/human/{path} ")) && one.contains(words));
            assert!(fits && found.is_empty() == path.is_empty(), "{human}: {found:?}");
        }
        assert!(check(&flow("validator: { when: 'response.text ==' }")).errors[0].line.is_some());
    }

    #[test]
    fn what_the_people_of_today_could_not_decide_is_a_warning() {
        let person = |name: &str, roles: &[&str]| {
            Principal::new(name.parse().expect("a name"), roles.iter().map(ToString::to_string).collect())
        };
        let people = [person("ana", &["reviewer", "editor"]), person("tom", &["reviewer"])];
        let warned = |more: &str| -> Vec<String> {
            let source = flow(&format!("options: [{{ id: yes, label: Y }}], {more}"));
            let warnings = check_among(&source, Some(&people)).warnings;
            warnings.iter().map(|warning| format!("{} {}", warning.path, warning.message)).collect()
        };
        for (more, words) in [
            ("policy: { quorum: 3 }", "quorum 3 votes are needed, and only 2 people may vote now"),
            (
                "policy: { groups: { editor: 1, legal: 1 } }",
                "legal 1 of `legal` are needed, and nobody has this role now",
            ),
            ("policy: majority, reviewers: { roles: [legal] }", "reviewers nobody may decide this now"),
            (
                "reviewers: { users: [ana], not_requester: true }",
                "only 1 person may decide this now, who may be shut out",
            ),
            ("policy: unanimous, deny: 3", "deny only 2 people may vote now"),
        ] {
            let found = warned(more);
            assert!(matches!(&found[..], [one] if one.contains(words)), "{more}: {found:?}");
        }
        assert_eq!(warned("policy: unanimous"), [""; 0]);
        assert_eq!(warned("policy: { groups: { editor: 1 } }, reviewers: { not_requester: true }"), [""; 0]);
    }
}
