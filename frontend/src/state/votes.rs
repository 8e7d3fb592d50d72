//! How the votes on a review stand, in words for one person. What is needed and who is missing is said by the server.

use shared::review::Review;

use super::story::sentence;
use super::words;

/// How the votes stand, and whether somebody should be alarmed; nothing where there is nothing to say.
pub fn standing(review: &Review, me: Option<&str>) -> Option<(bool, String)> {
    if !review.is_pending() {
        return None;
    }
    let mut parts: Vec<String> = review.problem.iter().map(|problem| sentence(problem)).collect();
    if let Some(voting) = &review.voting {
        parts.push(sentence(&voting.standing));
        for vote in &review.decisions {
            let who = words::person(&vote.by, me);
            parts.push(sentence(&format!("{who} {}", words::verdict(review, vote))));
        }
        if !voting.voided.is_empty() {
            let whose = words::people(&voting.voided, me);
            parts.push(sentence(&format!("what is shown has changed: vote again, {whose}")));
        }
        if review.decisions.iter().any(|vote| me == Some(vote.by.as_str())) {
            parts.push("Choosing again changes your vote".to_owned());
        }
    }
    (!parts.is_empty()).then(|| (review.problem.is_some(), parts.join(". ") + "."))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::fixtures::review;

    #[test]
    fn the_standing_says_who_voted_what_and_whose_vote_is_void() {
        let vote = json!({"by": "ana", "at": "2026-11-20T10:05:00Z", "via": "human", "revision": 1,
            "digest": "sha256:aa", "verdict": {"type": "choose", "option": "approve"}});
        let voting = json!({"voters": ["ana", "tom"], "votes": 1, "standing": "2 of 2 are needed", "voided": ["tom"]});
        let patch = json!({"policy": "majority", "decisions": [vote], "voting": voting});
        let said = standing(&review(1, 1, patch.clone()), Some("ana")).unwrap();
        let text = "2 of 2 are needed. You chose “Looks good”. What is shown has changed: vote again, tom. \
                    Choosing again changes your vote.";
        assert_eq!(said, (false, text.to_owned()));
        let mut troubled = patch;
        troubled["problem"] = json!("nobody may decide this");
        let (alarm, text) = standing(&review(1, 1, troubled), None).unwrap();
        assert!(alarm && text.starts_with("Nobody may decide this. 2 of 2"), "{text}");
        assert_eq!(standing(&review(1, 1, json!({})), None), None);
    }
}
