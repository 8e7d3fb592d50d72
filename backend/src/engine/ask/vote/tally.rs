//! Counts votes. Pure, and dependent only on the review.
//!
//! An accept option is a vote for; a stop, a correction and free text are votes against. With `deny`, that many votes
//! against end the review; without, it ends when it can no longer be accepted. If neither `deny` nor acceptance can be
//! reached any more, it ends too: no review waits in vain.
//!
//! Among several accept options, the run follows the one with the most votes, or the first in the flow if they tie.
//! Among several votes against, the one with the most wins (each option is one, and free text is one); a tie goes to
//! stop, then to the first in the flow.

use std::collections::BTreeSet;

use shared::decision::{Decision, Verdict};
use shared::definition::{ChoiceKind, Policy};
use shared::id::Username;
use shared::review::Review;
use shared::voting::Voting;

/// The most people who may vote on one review.
pub(super) const MAX_VOTERS: usize = 1000;

/// What a vote is for: an option, or free text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VoteFor {
    /// The kind of the option; a correction for free text.
    pub kind: ChoiceKind,
    /// The id of the option; `None` for free text.
    pub option: Option<String>,
}

/// The outcome of the votes so far.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum VoteOutcome {
    /// The votes so far neither accept nor refuse, or the review has no votes.
    Open,
    Accepted(VoteFor),
    /// It is not accepted, for the choice with the most votes against.
    Refused(VoteFor),
}

pub(super) fn choice(review: &Review, vote: &Decision) -> VoteFor {
    let free = VoteFor { kind: ChoiceKind::Correct, option: None };
    let Verdict::Choose { option, .. } = &vote.verdict else { return free };
    let offered = review.options.iter().find(|offered| offered.id == *option);
    offered.map_or(free, |offered| VoteFor { kind: offered.kind, option: Some(offered.id.clone()) })
}

/// Returns the outcome of the votes so far.
pub(super) fn outcome(review: &Review) -> VoteOutcome {
    let Some(voting) = &review.voting else { return VoteOutcome::Open };
    let votes = Votes::of(review, voting);
    if is_enough(&review.policy, voting, &votes.accepting) {
        return most(review, |kind| kind == ChoiceKind::Accept).map_or(VoteOutcome::Open, VoteOutcome::Accepted);
    }
    let against = count(votes.against);
    let can_be_denied = review.deny.is_some_and(|deny| against + count(votes.open.len()) >= deny);
    let denied = review.deny.is_some_and(|deny| against >= deny);
    let ended = !can_be_accepted(review, voting, &votes) && !can_be_denied && is_possible(&review.policy, voting);
    if denied || ended {
        return most(review, |kind| kind != ChoiceKind::Accept).map_or(VoteOutcome::Open, VoteOutcome::Refused);
    }
    VoteOutcome::Open
}

/// Whether the voters could accept at all, if all of them did.
pub(super) fn is_possible(policy: &Policy, voting: &Voting) -> bool {
    is_enough(policy, voting, &voting.voters.iter().collect())
}

/// Returns the number of accepting votes that a policy without groups needs.
pub(super) fn needed(policy: &Policy, voting: &Voting) -> u32 {
    let all = count(voting.voters.len());
    match policy {
        Policy::First | Policy::Groups(_) => 1,
        Policy::Majority => all / 2 + 1,
        Policy::Unanimous => all.max(1),
        Policy::Quorum(needed) => *needed,
    }
}

/// Returns how many of these voters are in a group.
pub(super) fn of_group(voting: &Voting, role: &str, names: &BTreeSet<&Username>) -> u32 {
    let members = voting.groups.iter().filter(|group| group.role == role).flat_map(|group| &group.voters);
    count(members.filter(|name| names.contains(name)).count())
}

/// Returns the voters who accept so far.
pub(super) fn accepting(review: &Review) -> BTreeSet<&Username> {
    let accepts = |vote: &&Decision| choice(review, vote).kind == ChoiceKind::Accept;
    review.decisions.iter().filter(accepts).map(Decision::voter).collect()
}

/// The votes of a review: who accepts, how many are against, and who has not voted.
struct Votes<'a> {
    accepting: BTreeSet<&'a Username>,
    against: usize,
    open: BTreeSet<&'a Username>,
}

impl<'a> Votes<'a> {
    fn of(review: &'a Review, voting: &'a Voting) -> Self {
        let voted: BTreeSet<_> = review.decisions.iter().map(Decision::voter).collect();
        let accepting = accepting(review);
        let open = voting.voters.iter().filter(|name| !voted.contains(name)).collect();
        Self { against: voted.len() - accepting.len(), accepting, open }
    }
}

fn can_be_accepted(review: &Review, voting: &Voting, votes: &Votes<'_>) -> bool {
    is_enough(&review.policy, voting, &votes.accepting.union(&votes.open).copied().collect())
}

/// Whether these accepting voters are enough.
fn is_enough(policy: &Policy, voting: &Voting, accepting: &BTreeSet<&Username>) -> bool {
    match policy {
        Policy::Groups(groups) => groups.iter().all(|(role, needed)| of_group(voting, role, accepting) >= *needed),
        _ => count(accepting.len()) >= needed(policy, voting),
    }
}

/// Returns the choice with the most votes, among those of the wanted kinds; `None` if they have no votes.
fn most(review: &Review, wanted: impl Fn(ChoiceKind) -> bool) -> Option<VoteFor> {
    let offered = review.options.iter().map(|option| VoteFor { kind: option.kind, option: Some(option.id.clone()) });
    let free = VoteFor { kind: ChoiceKind::Correct, option: None };
    let counted = offered.chain([free]).filter(|choice| wanted(choice.kind)).map(|choice| {
        let votes = review.decisions.iter().filter(|vote| self::choice(review, vote) == choice).count();
        (votes, choice)
    });
    let mut best: Option<(usize, VoteFor)> = None;
    for (votes, choice) in counted.filter(|(votes, _)| *votes > 0) {
        let stops = |choice: &VoteFor| choice.kind == ChoiceKind::Stop;
        let better = best
            .as_ref()
            .is_none_or(|(most, other)| votes > *most || (votes == *most && stops(&choice) && !stops(other)));
        if better {
            best = Some((votes, choice));
        }
    }
    best.map(|(_, choice)| choice)
}

fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}
