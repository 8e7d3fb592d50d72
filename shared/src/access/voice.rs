//! On whose behalf a person decides a review: their own, that of a person who delegated it to them, or that of an
//! absent person. A vote is never doubled: it has one owner and one holder, and a person who has voted on a review can
//! only change that vote.

use super::{Principal, REVIEWER, barred, is_for};
use crate::id::Username;
use crate::review::Review;

/// Returns on whose behalf the principal decides the review; `None` for their own. The error says why they may not
/// decide it.
pub fn voice(principal: &Principal, review: &Review) -> Result<Option<Username>, &'static str> {
    let me = &principal.username;
    let mut voices = voices(principal, review);
    if review.is_pending()
        && let Some(cast) = review.votes().iter().find(|vote| vote.by == *me)
    {
        voices.retain(|owner| *owner == cast.on_behalf_of);
    }
    let Some(first) = voices.into_iter().next() else {
        let gave = review.delegations.iter().any(|handed| handed.from == *me);
        return Err(if gave {
            "you delegated this review"
        } else if let Some(why) = barred(me, review).filter(|_| is_for(principal, review)) {
            // They are not among the voters because they are barred; say why.
            why
        } else if is_wider_than_token(principal, review) {
            "your vote counts for a role that this token does not have: vote without a token, or with one that has it"
        } else if review.voting.is_some() && is_for(principal, review) {
            "the voters were fixed when the review was requested"
        } else {
            "this review is for other reviewers"
        });
    };
    barred(me, review).map_or(Ok(first), Err)
}

/// Returns the owners of the votes that the principal may delegate: `None` for their own vote, and the owners of votes
/// that were delegated to them. A deputy may cast the vote of an absent person, but not delegate it.
pub fn votes_to_hand_over(principal: &Principal, review: &Review) -> Vec<Option<Username>> {
    let alone = Principal { stands_for: Vec::new(), ..principal.clone() };
    voices(&alone, review)
}

/// Whether the principal has a vote of their own on the review, no matter who casts it. If votes are counted, those who
/// have one at the time of the request are the voters.
pub fn has_vote(principal: &Principal, review: &Review) -> bool {
    is_for(principal, review) && barred(&principal.username, review).is_none()
}

/// Whether the review may be delegated to `to`; the error says why not.
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

/// Returns the owners of the votes that were delegated to the principal, and that they have not delegated further.
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

/// Returns everyone on whose behalf the principal could decide, beginning with themselves (`None`).
fn voices(principal: &Principal, review: &Review) -> Vec<Option<Username>> {
    let mut voices = alone(principal, review);
    for absent in &principal.stands_for {
        let voted = review.is_pending() && review.votes().iter().any(|vote| vote.by == absent.username);
        if voted || barred(&absent.username, review).is_some() {
            continue;
        }
        let theirs = alone(&absent.principal(), review)
            .into_iter()
            .map(|owner| owner.unwrap_or_else(|| absent.username.clone()));
        voices.extend(theirs.map(|owner| (owner != principal.username).then_some(owner)));
    }
    voices
}

/// The same as [`voices`], but without absent people.
fn alone(principal: &Principal, review: &Review) -> Vec<Option<Username>> {
    let mut voices = Vec::new();
    let kept = review.delegations.is_empty()
        || review.holders().get(&principal.username).is_none_or(|holder| **holder == principal.username);
    let own = review.may_vote(&principal.username) && is_for(principal, review);
    if kept && own && !is_wider_than_token(principal, review) {
        voices.push(None);
    }
    let handed = handed_to(principal, review).into_iter().filter(|owner| *owner != principal.username);
    voices.extend(handed.map(Some));
    voices
}

/// Whether the caller is a token, and their vote would count for a group whose role the token does not have: one person
/// has one vote, for all groups that they are in.
fn is_wider_than_token(principal: &Principal, review: &Review) -> bool {
    let mut groups = review.voting.iter().flat_map(|voting| &voting.groups);
    principal.token && groups.any(|group| group.voters.contains(&principal.username) && !principal.has(&group.role))
}
