//! In whose name somebody decides a review: in their own, in that of somebody who handed them the review, or in that of
//! somebody who is away. A vote is never doubled: it has one owner and one holder, and who has voted once on a review
//! keeps to that name.

use super::{Principal, REVIEWER, barred, is_for};
use crate::id::Username;
use crate::review::Review;

/// In whose name somebody decides: `None` for their own. `Err` says why they may not.
pub fn voice(principal: &Principal, review: &Review) -> Result<Option<Username>, &'static str> {
    let me = &principal.username;
    let mut voices = voices(principal, review);
    if review.is_pending()
        && let Some(cast) = review.decisions.iter().find(|decision| decision.by == *me)
    {
        voices.retain(|owner| *owner == cast.on_behalf_of);
    }
    let Some(first) = voices.into_iter().next() else {
        let gave = review.delegations.iter().any(|handed| handed.from == *me);
        return Err(if gave {
            "you delegated this review"
        } else if let Some(why) = barred(me, review).filter(|_| is_for(principal, review)) {
            // Votes are counted without them: so said, why.
            why
        } else if review.voting.is_some() && is_for(principal, review) {
            "the voters were fixed when the review was requested"
        } else {
            "this review is for other reviewers"
        });
    };
    barred(me, review).map_or(Ok(first), Err)
}

/// The votes that somebody may hand over: their own, and those that were handed to them. Whoever stands in for somebody
/// decides, or leaves it: the vote is not theirs to give away.
pub fn votes_to_hand_over(principal: &Principal, review: &Review) -> Vec<Option<Username>> {
    let alone = Principal { stands_for: Vec::new(), ..principal.clone() };
    voices(&alone, review)
}

/// Whether somebody has a vote of their own on a review, whoever casts it: where several are counted, that is fixed by
/// those who have one when it is asked.
pub fn has_vote(principal: &Principal, review: &Review) -> bool {
    is_for(principal, review) && barred(&principal.username, review).is_none()
}

/// Whether a review may be handed to somebody; `Err` says why not.
pub fn may_be_handed(to: &Principal, review: &Review) -> Result<(), &'static str> {
    if !to.has(REVIEWER) {
        return Err("they do not have the role reviewer");
    }
    if let Some(why) = barred(&to.username, review) {
        return Err(why);
    }
    if !review.policy.is_first() && !votes_to_hand_over(to, review).is_empty() {
        return Err("they already have a vote on this review, and no one has two");
    }
    Ok(())
}

/// The owners of the votes that were handed to somebody, and that they have not handed on.
pub(super) fn handed_to(principal: &Principal, review: &Review) -> Vec<Username> {
    if review.delegations.is_empty() || !principal.has(REVIEWER) {
        return Vec::new();
    }
    review
        .holders()
        .into_iter()
        .filter(|(owner, holder)| **holder == principal.username && review.may_vote(owner))
        .map(|(owner, _)| owner.clone())
        .collect()
}

/// Every name in which somebody could decide, their own first.
fn voices(principal: &Principal, review: &Review) -> Vec<Option<Username>> {
    let mut voices = alone(principal, review);
    for absent in &principal.stands_for {
        let decided = review.is_pending() && review.decisions.iter().any(|decision| decision.by == absent.username);
        if decided || barred(&absent.username, review).is_some() {
            continue;
        }
        let theirs = alone(&absent.principal(), review)
            .into_iter()
            .map(|owner| owner.unwrap_or_else(|| absent.username.clone()));
        voices.extend(theirs.map(|owner| (owner != principal.username).then_some(owner)));
    }
    voices
}

/// The same, without standing in for anybody.
fn alone(principal: &Principal, review: &Review) -> Vec<Option<Username>> {
    let mut voices = Vec::new();
    let kept = review.delegations.is_empty()
        || review.holders().get(&principal.username).is_none_or(|holder| **holder == principal.username);
    if kept && review.may_vote(&principal.username) && is_for(principal, review) {
        voices.push(None);
    }
    let handed = handed_to(principal, review).into_iter().filter(|owner| *owner != principal.username);
    voices.extend(handed.map(Some));
    voices
}
