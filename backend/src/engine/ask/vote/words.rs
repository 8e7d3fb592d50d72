//! The state of the votes on a review, in words for any reader. While votes are secret, the words do not reveal who has
//! voted, or how.

use shared::definition::Policy;
use shared::id::Username;
use shared::review::Review;
use shared::voting::Voting;

use super::tally::{self, MAX_VOTERS};

/// The maximum number of people who are named.
const NAMED: usize = 3;

/// Brings the count and the words of a review up to date with its votes.
pub(in crate::engine::ask) fn refresh(review: &mut Review) {
    let Some(voting) = &review.voting else { return };
    let standing = standing(review, voting);
    let votes = u32::try_from(review.decisions.len()).unwrap_or(u32::MAX);
    if let Some(voting) = &mut review.voting {
        (voting.votes, voting.standing) = (votes, standing);
    }
}

/// Returns the state of the votes, such as `2 of 3 votes for it are needed, 1 is there; tom and eva have not voted`.
fn standing(review: &Review, voting: &Voting) -> String {
    let secret = review.is_secret();
    let accepting = tally::accepting(review);
    let there = |count: usize| match (secret, count) {
        (true, _) | (_, 0) => String::new(),
        (false, 1) => ", 1 is there".to_owned(),
        (false, many) => format!(", {many} are there"),
    };
    let needs = match &review.policy {
        Policy::Groups(groups) => {
            let one = |(role, needed): (&String, &u32)| {
                let got = tally::of_group(voting, role, &accepting);
                if secret { format!("{needed} of {role}") } else { format!("{needed} of {role} ({got} so far)") }
            };
            format!("needed: {}", listed(&groups.iter().map(one).collect::<Vec<_>>(), usize::MAX))
        }
        policy => {
            let needed = tally::needed(policy, voting);
            let (of, there) = (voting.voters.len(), there(accepting.len()));
            format!(
                "{needed} of {of} {} needed{there}",
                if needed == 1 { "votes for it is" } else { "votes for it are" }
            )
        }
    };
    let deny = match review.deny {
        Some(1) => "; 1 vote against ends it".to_owned(),
        Some(deny) => format!("; {deny} votes against end it"),
        None => String::new(),
    };
    let voted = |name: &&Username| review.decisions.iter().any(|vote| vote.voter() == *name);
    let open: Vec<_> = voting.voters.iter().filter(|name| !voted(name)).map(ToString::to_string).collect();
    let waits = match (secret, open.len()) {
        (true, _) => match review.decisions.len() {
            1 => "; 1 has voted, secretly".to_owned(),
            votes => format!("; {votes} have voted, secretly"),
        },
        (false, 0) => String::new(),
        (false, 1) => format!("; {} has not voted", open[0]),
        (false, _) => format!("; {} have not voted", listed(&open, NAMED)),
    };
    format!("{needs}{deny}{waits}")
}

/// Returns why nobody can resolve a review at present, with the remedy; `may` is the number of people who may decide it.
pub(super) fn problem(review: &Review, may: usize) -> Option<String> {
    let remedy = if review.voting.is_some() && may > MAX_VOTERS {
        "name roles or people in `reviewers`"
    } else {
        "an admin can give someone the role or reassign the review, or it can be withdrawn"
    };
    shortage(review, may).map(|why| format!("{why}: {remedy}"))
}

/// Returns why nobody can resolve a review at present; `may` is the number of people who may decide it.
pub(in crate::engine::ask) fn shortage(review: &Review, may: usize) -> Option<String> {
    let Some(voting) = &review.voting else {
        return (may == 0).then(|| format!("nobody may decide this{}", whom(review)));
    };
    if tally::is_possible(&review.policy, voting) {
        return None;
    }
    if may > MAX_VOTERS {
        return Some(format!("{may} people may vote here, but the limit is {MAX_VOTERS}"));
    }
    Some(match &review.policy {
        Policy::Groups(groups) => {
            let all = voting.voters.iter().collect();
            let short = groups.iter().filter_map(|(role, needed)| {
                let there = tally::of_group(voting, role, &all);
                let votes = if *needed == 1 { "vote" } else { "votes" };
                (there < *needed)
                    .then(|| format!("{role} needs {needed} {votes}, but {} with this role may vote", people(there)))
            });
            short.collect::<Vec<_>>().join("; ")
        }
        policy => {
            let there = u32::try_from(voting.voters.len()).unwrap_or(u32::MAX);
            format!("{} votes in favour are needed, but {} may vote", tally::needed(policy, voting), people(there))
        }
    })
}

/// Returns whom a review is for, such as `, which is for legal and ana`.
fn whom(review: &Review) -> String {
    let reviewers = &review.reviewers;
    // A handoff to a name is for the role and the person of that name.
    let users = reviewers.users.iter().map(ToString::to_string).filter(|user| !reviewers.roles.contains(user));
    let named: Vec<_> = reviewers.roles.iter().cloned().chain(users).collect();
    if named.is_empty() { String::new() } else { format!(", which is for {}", listed(&named, NAMED)) }
}

fn people(count: u32) -> String {
    match count {
        0 => "nobody".to_owned(),
        1 => "only 1 person".to_owned(),
        many => format!("only {many} people"),
    }
}

fn listed(names: &[String], most: usize) -> String {
    if names.len() > most {
        return format!("{} and {} more", names[..most].join(", "), names.len() - most);
    }
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} and {last}", before.join(", ")),
        None => String::new(),
    }
}
