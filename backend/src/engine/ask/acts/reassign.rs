//! Reassigns a review: an admin says who decides it from now on, usually because nobody is left who could.
//!
//! Only the named reviewers change. Everything else that the flow says stays in force: the policy, tags, who is
//! excluded, the deadline and what follows it. Votes are rechecked as after a change of rights, so those of people who
//! still may decide count, and others do not. Whoever reassigns a review is excluded from it: otherwise an admin could
//! decide anything, alone, without having the role.

use shared::access::{Act, Principal, has_vote, voice};
use shared::decision::Via;
use shared::definition::Policy;
use shared::error::Mistake;
use shared::id::ReviewId;
use shared::log::ReviewChange;
use shared::reassignment::{Assignee, Reassign, Reassignment};
use shared::review::Review;

use crate::engine::ask::vote;
use crate::engine::builder::Builder;
use crate::engine::transition::Refusal;

/// The maximum number of reassignments of one review: each version of it holds all of them.
const MAX_REASSIGNMENTS: usize = 20;
/// The longest reason, in bytes.
const MAX_REASON: usize = 1000;
/// What to do if too few people could decide.
const REMEDY: &str = "choose a role with enough people who may decide this review";

impl Builder<'_> {
    /// Gives a review to others. Claims on it end.
    pub(in crate::engine) fn reassign(
        &mut self,
        id: ReviewId,
        by: &Principal,
        via: Via,
        request: &Reassign,
    ) -> Result<(), Refusal> {
        let before = self.pending_review(id, by, Act::Reassign)?.clone();
        let reason = reason(&before, &request.reason).map_err(|mistake| Refusal::Invalid(vec![mistake]))?;
        let mut after = before.clone();
        let from = replace(&mut after, request).map_err(|mistake| Refusal::Invalid(vec![mistake]))?;
        if let Assignee::User(name) = &request.to {
            self.consult([name]);
        }
        let (at, to) = (self.now, request.to.clone());
        after.reassignments.push(Reassignment { by: by.username.clone(), at, from, to, reason });
        after.claimed_by = None;
        let may = self.recheck(&mut after, |person| is_meant(&request.to, person)).may;
        if let Some((code, message)) = self.cannot_be_decided(&after, &request.to, may) {
            return Err(Refusal::Invalid(vec![Mistake::new("/to", code, message)]));
        }
        if let Some(review) = self.change_review(id, |review| *review = after) {
            self.emit_updated(&review, Some(by.into()), ReviewChange::Reassigned { via });
        }
        self.settle_votes(id);
        Ok(())
    }

    /// Returns why a reassigned review could not be decided, as the code and the message of a mistake.
    fn cannot_be_decided(&self, review: &Review, to: &Assignee, may: usize) -> Option<(&'static str, String)> {
        if let Assignee::User(name) = to {
            let mut people = self.people.iter().flat_map(|people| people.iter());
            let Some(person) = people.find(|person| person.username == *name) else {
                return Some(("unknown", format!("there is no active user `{name}`")));
            };
            if !has_vote(person, review) {
                let why = voice(person, review).err().unwrap_or_default();
                return Some(("not_allowed", format!("`{name}` may not decide this review: {why}")));
            }
        }
        if let Some(why) = vote::shortage(review, may) {
            return Some(("not_allowed", format!("{why}: {REMEDY}")));
        }
        // These policies also count if there is only one voter, but then nobody would check what that person decides.
        let is_alone = review.voting.as_ref().is_some_and(|voting| voting.voters.len() < 2);
        (is_alone && matches!(review.policy, Policy::Majority | Policy::Unanimous))
            .then(|| ("not_allowed", format!("several people vote on this review, but only 1 person would: {REMEDY}")))
    }
}

/// Whether a person is named, or has the named role.
fn is_meant(assignee: &Assignee, person: &Principal) -> bool {
    match assignee {
        Assignee::User(name) => person.username == *name,
        Assignee::Role(role) => person.has(role),
    }
}

/// Returns the reason if it fits, and the review may be reassigned once more.
fn reason(review: &Review, reason: &str) -> Result<String, Mistake> {
    let reason = reason.trim();
    let wrong = |code, message: String| Err(Mistake::new("/reason", code, message));
    if review.reassignments.len() >= MAX_REASSIGNMENTS {
        let message = format!("this review was reassigned {MAX_REASSIGNMENTS} times: withdraw it, or cancel its run");
        return Err(Mistake::new("/to", "too_many", message));
    }
    if reason.is_empty() {
        return wrong("required", "say why, for those who see the review later".to_owned());
    }
    if reason.len() > MAX_REASON {
        return wrong("too_long", format!("longer than {MAX_REASON} bytes"));
    }
    Ok(reason.to_owned())
}

/// Replaces the named reviewers, also those whom an escalation has added. Returns whom it has removed.
fn replace(review: &mut Review, Reassign { from, to, .. }: &Reassign) -> Result<Vec<Assignee>, Mistake> {
    let before = review.reviewers.clone();
    let named = Assignee::named_in(&before);
    let removed = match from {
        None => named,
        Some(from) if named.contains(from) => vec![from.clone()],
        Some(from) => {
            let named: Vec<_> = named.iter().map(ToString::to_string).collect();
            let named = if named.is_empty() { "every reviewer".to_owned() } else { named.join(", ") };
            return Err(Mistake::new("/from", "unknown", format!("this review is for {named}, not for {from}")));
        }
    };
    let stays = |assignee: &Assignee| !removed.contains(assignee);
    let reviewers = &mut review.reviewers;
    reviewers.roles.retain(|role| stays(&Assignee::Role(role.clone())));
    reviewers.users.retain(|user| stays(&Assignee::User(user.clone())));
    review.escalated.retain(|role| stays(&Assignee::Role(role.clone())));
    match to {
        Assignee::Role(role) if !reviewers.roles.contains(role) => reviewers.roles.push(role.clone()),
        Assignee::User(user) if !reviewers.users.contains(user) => reviewers.users.push(user.clone()),
        Assignee::Role(_) | Assignee::User(_) => {}
    }
    if *reviewers == before {
        return Err(Mistake::new("/to", "unchanged", format!("this review is already for {to}")));
    }
    Ok(removed)
}
