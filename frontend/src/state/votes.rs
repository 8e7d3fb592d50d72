//! The state of the votes on a review, in words for one person. What is required and who is missing come from the
//! server.

use shared::decision::Decision;
use shared::review::Review;

use super::outcomes::{self, Quotes};
use super::sentences::sentence;
use super::words;

/// The state of the votes in words, after whether it is a problem; `None` if there is nothing to say.
pub fn standing(review: &Review, me: Option<&str>) -> Option<(bool, String)> {
    if !review.is_pending() {
        return None;
    }
    let mut parts: Vec<String> = review.problem.iter().map(|problem| sentence(problem)).collect();
    if let Some(voting) = &review.voting {
        // The requirement adds nothing if there are too few people to meet it.
        if review.problem.is_none() {
            parts.push(sentence(&voting.standing));
        }
        for vote in &review.decisions {
            let who = words::authors_first(&[vote.into()], me);
            parts.push(format!("{who} {}", outcomes::verdict(review, vote, Quotes::Beginning)));
        }
        if !voting.voided.is_empty() {
            let whose = words::people_first(&voting.voided, me);
            parts.push(format!("{whose} must vote again: the content has changed"));
        }
        if review.decisions.iter().any(|vote| me == Some(vote.by.as_str())) {
            parts.push("Choosing again changes your vote".to_owned());
        }
    }
    (!parts.is_empty()).then(|| (review.problem.is_some(), parts.join(". ") + "."))
}

/// The effect of a decision. If several people vote, `follows` happens only once enough of them agree.
pub fn does(review: &Review, accepts: bool, follows: String) -> String {
    match (&review.voting, accepts) {
        (None, _) => follows,
        (Some(_), true) => format!("Votes yes. Once enough people agree: {follows}"),
        (Some(_), false) => format!("Votes no. Once enough people do: {follows}"),
    }
}

/// Carries this person's own secret vote over to `now`, and that they must vote again: shared messages contain neither. A
/// vote on an earlier revision counts as void. Of a vote that was cast elsewhere, only the API tells.
pub fn keep_own(before: &Review, now: &mut Review) {
    if !now.is_secret() || !now.decisions.is_empty() {
        return;
    }
    now.decisions.extend(before.decisions.iter().filter(|own| own.revision == now.revision).cloned());
    let Some(voting) = now.voting.as_mut().filter(|_| now.decisions.is_empty()) else { return };
    let known = before.voting.iter().flat_map(|before| &before.voided);
    for own in known.chain(before.decisions.iter().map(Decision::voter)) {
        if !voting.voided.contains(own) {
            voting.voided.push(own.clone());
        }
    }
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
        let text = "2 of 2 are needed. You chose “Looks good”. tom must vote again: the content has changed. \
                    Choosing again changes your vote.";
        assert_eq!(said, (false, text.to_owned()));
        let mut troubled = patch;
        troubled["problem"] = json!("nobody may decide this");
        let (alarm, text) = standing(&review(1, 1, troubled), None).unwrap();
        assert!(alarm && text.starts_with("Nobody may decide this. ana chose"), "{text}");
        assert_eq!(standing(&review(1, 1, json!({})), None), None);
    }

    #[test]
    fn a_vote_is_not_said_to_move_the_run() {
        let voting = json!({"voters": ["ana", "tom"], "votes": 1, "standing": "2 of 2 are needed"});
        let voted = review(1, 1, json!({"policy": "unanimous", "voting": voting}));
        assert_eq!(does(&review(1, 1, json!({})), true, "It goes on.".into()), "It goes on.");
        assert_eq!(does(&voted, true, "It goes on.".into()), "Votes yes. Once enough people agree: It goes on.");
        assert!(does(&voted, false, "It ends.".into()).starts_with("Votes no."));
    }
}
