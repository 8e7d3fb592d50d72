//! Votes in any order, under any policy, with people who come and go: the review resolves exactly when that is certain.

use proptest::prelude::*;
use shared::decision::Decision;
use shared::definition::{ChoiceKind, Policy};
use shared::review::Outcome;

use super::*;

const NAMES: [&str; 5] = ["p0", "p1", "p2", "p3", "p4"];
const OPTIONS: [&str; 4] = ["yes", "also", "redo", "no"];

fn flow(policy: &Value, deny: Option<u32>) -> Compiled {
    let flow = json!({
        "id": "r",
        "agents": { "w": { "model": "demo/w" } },
        "nodes": {
            "draft": { "agent": "w", "prompt": "x", "next": "decide" },
            "decide": { "human": {
                "prompt": "?", "review_keys": ["draft"], "edit_keys": ["draft"], "policy": policy, "deny": deny,
                "options": [
                    { "id": "yes", "label": "Y" }, { "id": "also", "label": "A" },
                    { "id": "redo", "kind": "correct", "label": "R", "message": "m" },
                    { "id": "no", "kind": "stop", "label": "N" },
                ],
            } },
        },
    });
    compile(&flow.to_string())
}

fn roles(index: usize) -> Vec<&'static str> {
    let mut roles = vec!["reviewer"];
    roles.extend(index.is_multiple_of(2).then_some("editor"));
    roles.extend((index > 1).then_some("legal"));
    roles
}

/// Whether these accepting votes are enough, computed in the simplest way.
fn enough(policy: &Policy, all: &[usize], accepting: &BTreeSet<usize>) -> bool {
    let of = |role: &str| accepting.iter().filter(|index| roles(**index).contains(&role)).count();
    match policy {
        Policy::First => !accepting.is_empty(),
        Policy::Majority => accepting.len() * 2 > all.len(),
        Policy::Unanimous => !all.is_empty() && accepting.len() == all.len(),
        Policy::Quorum(needed) => accepting.len() >= *needed as usize,
        Policy::Groups(groups) => groups.iter().all(|(role, needed)| of(role) >= *needed as usize),
    }
}

/// Returns whether the review is accepted; `None` if it is still open.
fn expected(policy: &Policy, deny: Option<u32>, all: &[usize], votes: &BTreeMap<usize, bool>) -> Option<bool> {
    let accepting: BTreeSet<_> = votes.iter().filter(|(_, accepts)| **accepts).map(|(index, _)| *index).collect();
    if enough(policy, all, &accepting) {
        return Some(true);
    }
    let against = votes.len() - accepting.len();
    let open: BTreeSet<_> = all.iter().copied().filter(|index| !votes.contains_key(index)).collect();
    let everybody = all.iter().copied().collect();
    let can = enough(policy, all, &accepting.union(&open).copied().collect());
    let denied = deny.is_some_and(|deny| against >= deny as usize);
    let deniable = deny.is_some_and(|deny| against + open.len() >= deny as usize);
    (denied || (!can && !deniable && enough(policy, all, &everybody))).then_some(false)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_review_resolves_exactly_when_the_outcome_is_certain_and_never_twice(
        policy in prop_oneof![
            Just(json!("majority")), Just(json!("unanimous")), (1_u32..5).prop_map(|n| json!({ "quorum": n })),
            (1_u32..3, 1_u32..4).prop_map(|(e, l)| json!({ "groups": { "editor": e, "legal": l } })),
        ],
        deny in prop::option::of(1_u32..4),
        count in 1_usize..=5,
        moves in prop::collection::vec((0_usize..5, 0_usize..4, prop::bool::weighted(0.1), prop::bool::weighted(0.1)), 0..24),
    ) {
        let parsed: Policy = serde_json::from_value(policy.clone()).unwrap();
        let people: Vec<_> = (0..count).map(|index| person(NAMES[index], &roles(index))).collect();
        let mut all: Vec<usize> = (0..count).collect();
        let mut play = Play::try_start_among(flow(&policy, deny), json!({}), &people).unwrap();
        play.model("draft", text("x"));
        let id = play.review().id;
        let mut votes = BTreeMap::new();
        let mut over = false;
        for (step, (voter, option, edits, leaves)) in moves.into_iter().enumerate() {
            if over || voter >= count {
                break;
            }
            if leaves {
                all.retain(|index| *index != voter);
                votes.remove(&voter);
                let left: Vec<_> = all.iter().map(|index| person(NAMES[*index], &roles(*index))).collect();
                play.people = Some(left.into());
                let _ = play.try_apply(Input::Recount);
            } else {
                let review = play.past(id).clone();
                let mut request = request(&review, choose(OPTIONS[option]));
                let accepts = option < 2;
                if edits && accepts {
                    request.edits = object(json!({ "draft": format!("edit {step}") }));
                }
                let allowed = all.contains(&voter);
                let edited = allowed && !request.edits.is_empty();
                let done = play.try_decide(id, &person(NAMES[voter], &roles(voter)), request);
                prop_assert_eq!(done.is_ok(), allowed, "{:?}", done);
                if edited {
                    votes.clear();
                }
                if allowed {
                    votes.insert(voter, accepts);
                }
            }
            let review = play.past(id);
            let outcome = review.resolution.as_ref().map(|resolution| resolution.outcome == Outcome::Accepted);
            prop_assert_eq!(outcome, expected(&parsed, deny, &all, &votes), "{:?} {:?} {:?}", &policy, deny, &votes);
            over = outcome.is_some();
            if let Some(voting) = review.voting.as_ref().filter(|_| !over) {
                prop_assert_eq!(voting.votes as usize, votes.len());
                prop_assert!(review.decisions.iter().all(|vote: &Decision| vote.digest == review.digest));
                prop_assert_eq!(review.problem.is_some(), !enough(&parsed, &all, &all.iter().copied().collect()));
            }
            if let Some(resolution) = &review.resolution {
                let kind = resolution.decision.as_ref().map(|decision| match &decision.verdict {
                    Verdict::Choose { option, .. } => review.options.iter().find(|known| known.id == *option).unwrap().kind,
                    _ => ChoiceKind::Correct,
                });
                prop_assert_eq!(kind == Some(ChoiceKind::Accept), resolution.outcome == Outcome::Accepted);
                prop_assert!(!resolution.by.is_empty());
            }
        }
    }
}
