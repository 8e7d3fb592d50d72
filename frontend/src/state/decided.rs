//! Reviews that a person decided, as rows of a list: what they decided, when, and what came of it.

use shared::decision::Decision;
use shared::id::{ReviewId, Username};
use shared::review::{Outcome, Review, ReviewStatus};
use shared::time::Timestamp;

use super::outcomes::{self, Quotes};
use super::sentences::sentence;
use super::{record, words};

/// A review that a person decided.
#[derive(Debug, Clone, PartialEq)]
pub struct DecidedRow {
    pub id: ReviewId,
    pub title: String,
    /// The flow that asked, or who asked without one.
    pub origin: String,
    /// What they decided last, as a sentence.
    pub said: String,
    pub at: Timestamp,
    /// The CSS class of the outcome, and its name.
    pub outcome: (&'static str, &'static str),
    /// Who else brought about the outcome, and how.
    pub others: Option<String>,
}

impl DecidedRow {
    /// Returns `None` if the review has no decision of this person.
    pub fn of(review: &Review, me: &Username) -> Option<Self> {
        let own = |decision: &&Decision| decision.by == *me && decision.grant.is_none();
        let decision = review.decisions.iter().filter(own).max_by_key(|decision| decision.at)?;
        let resolution = review.resolution.as_ref();
        let by_others = resolution.filter(|resolution| resolution.by != [me.clone()]);
        Some(Self {
            id: review.id,
            title: review.title.clone(),
            origin: words::origin(review),
            said: sentence(&outcomes::verdict(review, decision, Quotes::Beginning)),
            at: decision.at,
            outcome: outcome(review),
            others: by_others
                .map(|resolution| outcomes::resolution_first(review, resolution, Some(me.as_str()), Quotes::Beginning)),
        })
    }
}

/// The outcome of a review in a word or two, after the CSS class of its tag.
fn outcome(review: &Review) -> (&'static str, &'static str) {
    let Some(resolution) = &review.resolution else { return ("tag warn", "still pending") };
    let word = outcomes::word(review, resolution.outcome);
    match (review.status, resolution.outcome) {
        (ReviewStatus::Expired, _) | (_, Outcome::Expired) => ("tag", "expired"),
        (ReviewStatus::Withdrawn, _) | (_, Outcome::Withdrawn) => ("tag", "withdrawn"),
        _ if !resolution.vetoes.is_empty() && record::nothing_happens(review) => ("tag stop", "blocked"),
        (_, Outcome::Corrected) => ("tag warn", word),
        // Neither approved nor rejected.
        _ if word == "decided" => ("tag", word),
        _ if matches!(word, "rejected" | "stopped") => ("tag stop", word),
        _ => ("tag go", word),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::fixtures;

    #[test]
    fn a_row_says_what_the_person_decided_and_what_came_of_it() {
        let (ana, tom): (Username, Username) = ("ana".parse().unwrap(), "tom".parse().unwrap());
        let mut review = fixtures::resolved(1, 2, "tom");
        let row = DecidedRow::of(&review, &tom).unwrap();
        assert_eq!((row.said.as_str(), row.outcome, row.others), ("Chose “Looks good”", ("tag go", "approved"), None));
        assert_eq!(DecidedRow::of(&review, &ana), None);
        // ana voted against it.
        let vote = json!({"by": "ana", "at": "2026-11-20T10:04:00Z", "via": "human", "revision": 1,
            "digest": "sha256:aa", "verdict": {"type": "choose", "option": "reject"}});
        review.decisions.push(serde_json::from_value(vote).unwrap());
        let row = DecidedRow::of(&review, &ana).unwrap();
        assert_eq!((row.said.as_str(), row.others.as_deref()), ("Chose “Reject”", Some("tom chose “Looks good”")));
        review.resolution = None;
        assert_eq!(DecidedRow::of(&review, &ana).unwrap().outcome.1, "still pending");
    }
}
