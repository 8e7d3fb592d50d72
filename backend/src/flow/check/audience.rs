//! Checks against the existing users, if they are known: decisions that would not be possible today. All findings are
//! warnings: people come and go, and a flow may be written before them.

use shared::access::{Principal, REVIEWER, is_named};
use shared::definition::{Gate, Human, OnTimeout, Policy, Reviewers};
use shared::error::pointer;
use shared::id::Username;

use super::Checker;
use crate::flow::expressions::gates;
use crate::flow::limits::MAX_MISTAKES;

pub fn check(checker: &mut Checker<'_>) {
    let Some(people) = checker.people else { return };
    let flow = checker.flow;
    escalations(checker, people, "/defaults/on_timeout", flow.defaults.on_timeout.as_ref());
    // Checked once at their own place, however many nodes they apply to.
    for (index, route) in flow.routing.iter().enumerate() {
        somebody(checker, people, &format!("/routing/{index}"), &route.reviewers);
    }
    if !flow.defaults.reviewers.is_empty() {
        somebody(checker, people, "/defaults", &flow.defaults.reviewers);
    }
    for (id, human) in flow.humans() {
        let reviewers = flow.reviewers_at(id.as_str(), &human.reviewers);
        of_human(checker, people, &pointer(["nodes", id.as_str(), "human"]), human, reviewers);
    }
    for (path, gate) in gates(flow) {
        of_gate(checker, people, &path, gate);
    }
    for (name, tool) in flow.tools.iter().filter(|(_, tool)| !tool.reviewers.is_empty()) {
        somebody(checker, people, &pointer(["tools", name]), &tool.reviewers);
    }
}

fn of_human(checker: &mut Checker<'_>, people: &[Principal], base: &str, human: &Human, mut reviewers: Reviewers) {
    let mut groups = human.policy.groups().map(|(role, _)| role.clone()).peekable();
    if groups.peek().is_some() && reviewers.roles.is_empty() && reviewers.users.is_empty() {
        reviewers.roles.push(REVIEWER.to_owned());
    }
    reviewers.roles.extend(groups);
    let may: Vec<&Principal> = people.iter().filter(|person| is_named(person, &reviewers)).collect();
    match &human.policy {
        Policy::Groups(groups) => {
            names(checker, people, base, &human.reviewers);
            for (role, needed) in groups {
                let members = may.iter().filter(|person| person.has(role)).count();
                if members < usize::try_from(*needed).unwrap_or(usize::MAX) {
                    let votes = if *needed == 1 { "vote" } else { "votes" };
                    let message = format!("`{role}` needs {needed} {votes}, but {} has this role now", only(members));
                    checker.warn(&format!("{base}/policy/groups{}", pointer([role])), message);
                }
            }
        }
        Policy::Quorum(needed) if may.len() < usize::try_from(*needed).unwrap_or(usize::MAX) => {
            names(checker, people, base, &human.reviewers);
            let message = format!("{needed} votes are needed, but {} may vote now", only(may.len()));
            checker.warn(&format!("{base}/policy/quorum"), message);
        }
        _ => own(checker, people, base, &human.reviewers),
    }
    let voters = u32::try_from(may.len()).unwrap_or(u32::MAX);
    if !human.policy.is_first() && human.deny.is_some_and(|deny| deny > voters) && voters > 0 {
        let message = format!("{} may vote now, so this many votes against are not possible", only(may.len()));
        checker.warn(&format!("{base}/deny"), message);
    }
    escalations(checker, people, &format!("{base}/on_timeout"), human.on_timeout.as_ref());
}

fn of_gate(checker: &mut Checker<'_>, people: &[Principal], base: &str, gate: &Gate) {
    own(checker, people, base, &gate.reviewers);
    escalations(checker, people, &format!("{base}/on_timeout"), gate.on_timeout.as_ref());
}

/// Checks the reviewers that a node, a gate or a tool names itself. If it names none, they come from routes and
/// defaults, which are checked elsewhere, or are all who may review.
fn own(checker: &mut Checker<'_>, people: &[Principal], base: &str, reviewers: &Reviewers) {
    let flow = checker.flow;
    if !reviewers.is_empty() || (flow.routing.is_empty() && flow.defaults.reviewers.is_empty()) {
        somebody(checker, people, base, reviewers);
    }
}

/// Warns if nobody may decide, or if only one person may and could be excluded. Otherwise, warns of each name that does
/// not exist.
fn somebody(checker: &mut Checker<'_>, people: &[Principal], base: &str, reviewers: &Reviewers) {
    let may = people.iter().filter(|person| is_named(person, reviewers)).count();
    let path = if reviewers.is_empty() { base.to_owned() } else { format!("{base}/reviewers") };
    if may == 0 {
        let why: Vec<_> = nobodys(checker, people, reviewers).into_iter().map(|(_, why)| why).collect();
        let why = if why.is_empty() { String::new() } else { format!(": {}", why.join("; ")) };
        return checker.warn(&path, format!("nobody may decide this now{why}"));
    }
    names(checker, people, base, reviewers);
    if may == 1 && reviewers.shuts_out() {
        checker.warn(&path, format!("{} may decide this now, and may be excluded", only(may)));
    }
}

/// Warns of each role, tag and user among the reviewers that does not exist.
fn names(checker: &mut Checker<'_>, people: &[Principal], base: &str, reviewers: &Reviewers) {
    for (place, why) in nobodys(checker, people, reviewers) {
        checker.warn(&format!("{base}/reviewers/{place}"), why);
    }
}

/// Returns the roles and tags that nobody has and the users that do not exist, each with its place below `reviewers`
/// and a message.
fn nobodys(checker: &Checker<'_>, people: &[Principal], reviewers: &Reviewers) -> Vec<(String, String)> {
    let missing = |kind: &'static str| {
        move |(index, role): (usize, &String)| Some((format!("{kind}/{index}"), nobody_has(checker, people, role)?))
    };
    let roles = reviewers.roles.iter().enumerate().filter_map(missing("roles"));
    let known = |name: &Username| people.iter().any(|person| person.username == *name);
    let users = reviewers.users.iter().enumerate().filter(|(_, name)| !known(name)).map(|(index, name)| {
        let guess = checker.guess(name, people.iter().map(|person| person.username.as_str()));
        (format!("users/{index}"), format!("there is no active user `{name}` now{guess}"))
    });
    let tags = reviewers.tags.iter().enumerate().filter_map(missing("tags"));
    roles.chain(users).chain(tags).take(MAX_MISTAKES).collect()
}

/// Returns a message if nobody has a role.
fn nobody_has(checker: &Checker<'_>, people: &[Principal], role: &str) -> Option<String> {
    if people.iter().any(|person| person.has(role)) {
        return None;
    }
    let known = people.iter().flat_map(|person| &person.roles).map(String::as_str);
    Some(format!("nobody has the role `{role}` now{}", checker.guess(role, known)))
}

/// Warns of each role of a chain of escalations that nobody has.
fn escalations(checker: &mut Checker<'_>, people: &[Principal], path: &str, on_timeout: Option<&OnTimeout>) {
    for (depth, next) in on_timeout.into_iter().flat_map(OnTimeout::escalations).enumerate() {
        if let Some(why) = nobody_has(checker, people, &next.escalate) {
            let path = format!("{path}{}/escalate", "/then".repeat(depth));
            checker.warn(&path, format!("nobody would be asked here: {why}"));
        }
    }
}

fn only(count: usize) -> String {
    match count {
        0 => "nobody".to_owned(),
        1 => "only 1 person".to_owned(),
        many => format!("only {many} people"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::read;

    fn person(name: &str, roles: &[&str]) -> Principal {
        Principal::new(name.parse().expect("a name"), roles.iter().map(ToString::to_string).collect())
    }

    fn warned(source: &str) -> Vec<String> {
        let people = [person("ana", &["reviewer", "editor"]), person("tom", &["reviewer"])];
        let checked = read(source).check(&crate::flow::Here { people: Some(&people), ..Default::default() });
        assert_eq!(checked.errors, []);
        assert!(checked.warnings.iter().all(|warning| warning.line.is_some() && warning.column.is_some()));
        checked.warnings.iter().map(|warning| format!("{} {}", warning.path, warning.message)).collect()
    }

    fn human(more: &str) -> String {
        let human = format!("prompt: x, options: [{{ id: yes, label: Y }}], {more}");
        format!("id: f\nnodes:\n  a: {{ human: {{ {human} }} }}\n")
    }

    #[test]
    fn what_the_people_of_today_could_not_decide_is_a_warning_at_its_place() {
        for (more, words) in [
            ("policy: { quorum: 3 }", "quorum 3 votes are needed, but only 2 people may vote now"),
            ("policy: { groups: { editor: 1, legal: 1 } }", "legal `legal` needs 1 vote, but nobody has this role now"),
            ("policy: majority, reviewers: { roles: [legal] }", "reviewers nobody may decide this now"),
            ("reviewers: { roles: [editors] }", "now: nobody has the role `editors` now; did you mean `editor`?"),
            (
                "reviewers: { users: [nobody] }",
                "reviewers nobody may decide this now: there is no active user `nobody` now",
            ),
            ("reviewers: { users: [anna, tom] }", "users/0 there is no active user `anna` now; did you mean `ana`?"),
            ("reviewers: { roles: [editor, legal] }", "reviewers/roles/1 nobody has the role `legal` now"),
            ("reviewers: { tags: [editor, eu] }", "now: nobody has the role `eu` now"),
            (
                "reviewers: { users: [ana], not_requester: true }",
                "only 1 person may decide this now, and may be excluded",
            ),
            ("policy: unanimous, deny: 3", "deny only 2 people may vote now"),
            (
                "timeout: 1h, on_timeout: { escalate: editor, extend: 1h, then: { escalate: lead, extend: 1h, then: reject } }",
                "on_timeout/then/escalate nobody would be asked here: nobody has the role `lead` now",
            ),
        ] {
            let found = warned(&human(more));
            assert!(matches!(&found[..], [one] if one.contains(words)), "{more}: {found:?}");
        }
        for fine in [
            "policy: unanimous",
            "policy: { groups: { editor: 1 } }, reviewers: { not_requester: true }",
            "reviewers: { roles: [editor], users: [tom] }",
            "reviewers: { tags: [editor] }",
        ] {
            assert_eq!(warned(&human(fine)), [""; 0]);
        }
    }

    #[test]
    fn gates_and_the_defaults_are_looked_at_too() {
        let source = |gate: &str, defaults: &str| {
            format!(
                "id: f\ndefaults: {{ timeout: 1h{defaults} }}\ntools: {{ t: {{ builtin: demo_publish }} }}\n\
                 gates: {{ before_tool: {{ t: {{ {gate} }} }} }}\nnodes: {{ a: {{ tool: t }} }}\n"
            )
        };
        for (gate, defaults, words) in [
            ("reviewers: { roles: [legal] }", "", "/gates/before_tool/t/reviewers nobody may decide this now"),
            ("reviewers: { not_requester: true, users: [tom] }", "", "and may be excluded"),
            (
                "on_timeout: { escalate: lead, extend: 1h, then: reject }",
                "",
                "/gates/before_tool/t/on_timeout/escalate",
            ),
            (
                "",
                ", on_timeout: { escalate: lead, extend: 1h, then: reject }",
                "/defaults/on_timeout/escalate nobody would be asked",
            ),
        ] {
            let found = warned(&source(gate, defaults));
            assert!(matches!(&found[..], [one] if one.contains(words)), "{gate}{defaults}: {found:?}");
        }
        assert_eq!(warned(&source("severity: high", "")), [""; 0]);
    }

    #[test]
    fn routes_and_defaults_are_looked_at_at_their_own_place() {
        let source = |more: &str, node: &str| {
            let human = "human: { prompt: x, options: [{ id: yes, label: Y }], policy: { quorum: 2 } }";
            format!("id: f\n{more}nodes:\n  a: {{ tags: [x], {human}, next: b }}\n  b: {{ {node}, {human} }}\n")
        };
        let route = |role: &str| format!("routing: [{{ tags: [x], reviewers: {{ roles: [{role}] }} }}]\n");
        for (more, node, words) in [
            (
                route("legal"),
                "tags: [x]",
                vec!["/routing/0/reviewers nobody may", "/nodes/a/human/policy/quorum", "/nodes/b"],
            ),
            (route("editor"), "tags: [y]", vec!["/nodes/a/human/policy/quorum 2 votes are needed, but only 1 person"]),
            (
                "defaults: { reviewers: { users: [nobody] } }\n".to_owned(),
                "tags: [y]",
                vec!["/defaults/reviewers nobody may", "/nodes/a", "/nodes/b"],
            ),
            (route("reviewer"), "tags: [y]", vec![]),
        ] {
            let found = warned(&source(&more, node));
            assert_eq!(found.len(), words.len(), "{more}: {found:?}");
            assert!(found.iter().zip(&words).all(|(found, words)| found.starts_with(words)), "{more}: {found:?}");
        }
    }
}
