//! Earlier values to compare with: on the revision that the person has read, before somebody changed the value with
//! their vote, or in the previous round; and what was asked for in that round.

use serde_json::Value;
use shared::decision::{Decision, Verdict};
use shared::id::Username;
use shared::review::{Outcome, Review};

use super::words;

/// The point since which a value differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Since {
    /// Since the revision that the person has read.
    Revision(u32),
    /// Since these people voted with changes.
    Vote(Vec<Username>),
    Round(u32),
}

impl Since {
    /// As the label of a tab.
    pub fn label(&self, me: Option<&str>) -> String {
        match self {
            Self::Revision(revision) => format!("Since revision {revision}"),
            Self::Vote(by) => format!("Changed by {}", words::people(by, me)),
            Self::Round(visit) => format!("Since visit {visit}"),
        }
    }
}

/// The earlier value of the item `key` and the point since which it differs; `None` if it is unchanged. `read`: the
/// review as the person has read it; `round`: the review of the previous round.
pub fn value(key: &str, now: &Review, read: Option<&Review>, round: Option<&Review>) -> Option<(Since, Value)> {
    let of = |review: &Review| review.items.iter().find(|item| item.key == key).map(|item| item.value.clone());
    let current = of(now)?;
    let read = read.and_then(|read| Some((Since::Revision(read.revision), of(read)?)));
    let changed = |vote: &Decision| vote.shown.as_ref()?.values.get(key).cloned();
    let voters = now.decisions.iter().filter(|vote| changed(vote).is_some()).map(|vote| vote.by.clone()).collect();
    let voted = now.decisions.iter().find_map(changed).map(|value| (Since::Vote(voters), value));
    let round = round.and_then(|round| Some((Since::Round(round.visit?), of(round)?)));
    [read, voted, round].into_iter().flatten().find(|(_, value)| *value != current)
}

/// The review of the previous round: the newest one that was resolved at the same place on an earlier visit.
pub fn round<'a>(now: &Review, others: &'a [Review]) -> Option<&'a Review> {
    let is_before = |other: &&Review| {
        other.node.is_some() && other.node == now.node && other.part == now.part && other.visit < now.visit
    };
    others.iter().filter(|other| other.resolution.is_some()).filter(is_before).max_by_key(|other| other.visit)
}

/// The correction that a round asked for: who asked, and their text. `None` if the round asked for none.
pub fn asked(round: &Review, me: Option<&str>) -> Option<(String, String)> {
    let resolution = round.resolution.as_ref().filter(|resolution| resolution.outcome == Outcome::Corrected)?;
    let decision: &Decision = resolution.decision.as_deref()?;
    // In the order in which the step that runs again gets it: the message of the option, then the comment.
    let first = match &decision.verdict {
        Verdict::Text { text } => Some(text.as_str()),
        Verdict::Choose { option, .. } => {
            round.options.iter().find(|offered| offered.id == *option).and_then(|chosen| chosen.message.as_deref())
        }
        Verdict::Actions { .. } => None,
    };
    let said = [first, decision.comment.as_deref()].into_iter().flatten().map(str::trim);
    let said: Vec<&str> = said.filter(|text| !text.is_empty()).collect();
    (!said.is_empty()).then(|| (words::authors_first(&resolution.authors(&round.decisions), me), said.join("\n")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::fixtures::review;

    fn draft(visit: u32, value: &str, more: Value) -> Review {
        let item = json!({ "key": "draft", "content_type": "text", "value": value, "editable": true });
        let mut patch = json!({ "items": [item], "visit": visit });
        patch.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        review(u8::try_from(visit).unwrap(), 1, patch)
    }

    #[test]
    fn a_value_is_compared_with_what_was_read_then_with_what_was_shown_before_a_vote_then_with_the_last_round() {
        let first = draft(1, "sea", json!({}));
        let now = draft(2, "ocean", json!({}));
        assert_eq!(value("draft", &now, None, None), None);
        assert_eq!(value("draft", &now, None, Some(&now)), None, "it is the same");
        assert_eq!(value("draft", &now, None, Some(&first)), Some((Since::Round(1), json!("sea"))));
        let vote = json!({"by": "tom", "at": "2026-11-20T10:05:00Z", "via": "human", "revision": 2,
            "digest": "sha256:bb", "verdict": {"type": "choose", "option": "approve"},
            "shown": {"revision": 1, "digest": "sha256:aa", "values": {"draft": "the sea"}}});
        let voted = draft(2, "ocean", json!({ "decisions": [vote] }));
        assert_eq!(
            value("draft", &voted, None, Some(&first)),
            Some((Since::Vote(vec!["tom".parse().unwrap()]), json!("the sea")))
        );
        assert_eq!(value("draft", &voted, Some(&first), None), Some((Since::Revision(1), json!("sea"))));
    }

    #[test]
    fn the_last_round_is_found_and_says_what_was_asked() {
        let resolution = json!({"status": "resolved", "outcome": "corrected", "by": ["ana"], "via": "human",
            "at": "2026-11-20T10:05:00Z", "decision": {"by": "ana", "at": "2026-11-20T10:05:00Z", "via": "human",
            "revision": 1, "digest": "sha256:aa", "verdict": {"type": "text", "text": " Mention whales "}}});
        let first = draft(1, "sea", json!({ "node": "review", "resolution": resolution }));
        let now = draft(2, "ocean", json!({ "node": "review" }));
        let others = [first.clone(), now.clone()];
        assert_eq!(round(&now, &others).map(|round| round.id), Some(first.id));
        assert_eq!(round(&first, &others), None);
        assert_eq!(asked(&first, Some("ana")), Some(("You".to_owned(), "Mention whales".to_owned())));
        assert_eq!(asked(&now, None), None);
        let mut chosen = first.clone();
        let decision = chosen.resolution.as_mut().unwrap().decision.as_mut().unwrap();
        decision.verdict = serde_json::from_value(json!({"type": "choose", "option": "shorten"})).unwrap();
        decision.comment = Some("And whales.".to_owned());
        assert_eq!(asked(&chosen, None), Some(("ana".to_owned(), "Shorter, please.\nAnd whales.".to_owned())));
    }
}
