//! People, reviews and numbers in words; lengths of time are in `durations`, verdicts and resolutions in `outcomes`.

use std::fmt::Display;

use serde_json::Value;
use shared::api::User;
use shared::author::Author;
use shared::decision::Via;
use shared::definition::Reviewers;
use shared::id::Username;
use shared::log::ReviewAct;
use shared::review::{AskedHandler, Review, ReviewKind};
use shared::run::Part;
use shared::time::Timestamp;
use shared::topic::beginning;

pub use super::durations::{ago, duration_ms, left, length, so_far};
use super::sentences::{listed, sentence};

/// The names of the months, short.
pub const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `1 call`, `2 calls`.
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// The position of an item in its list: `item 2 of 5`.
pub fn item(part: Option<Part>) -> Option<String> {
    part.map(|part| format!("item {} of {}", part.number, part.of))
}

/// The position of an item in its list, and the number of the visit, unless these go without saying: `item 2 of 5`,
/// `visit 3`.
pub fn visit(part: Option<Part>, visit: u32) -> Vec<String> {
    item(part).into_iter().chain(Part::again(part, visit).map(|visit| format!("visit {visit}"))).collect()
}

/// The number of times that the reviewed content was made: `draft, visit 2 of 5`. `None` the first time.
pub fn round(review: &Review) -> Option<String> {
    match review.source.as_ref().filter(|source| source.visits > 1) {
        Some(source) => Some(format!("{}, visit {} of {}", source.node.place(), source.visits, source.max_visits)),
        None => Part::again(review.part, review.visit?).map(|visit| format!("visit {visit}")),
    }
}

/// Who asks, if the prompt is nothing but their question.
pub fn who_asks(review: &Review) -> Option<String> {
    let alone = review.kind == ReviewKind::Clarification && review.node.is_none();
    alone.then(|| format!("{} asks:", review.requested_by))
}

/// The last eight characters of an id. Ids begin with the time, so their ends tell them apart.
pub fn tail(id: impl Display) -> String {
    let id = id.to_string();
    id.chars().skip(id.chars().count().saturating_sub(8)).collect()
}

/// The origin of a review that belongs to no flow.
pub fn asker(review: &Review) -> String {
    format!("asked by {}", review.requested_by)
}

/// The flow that asks, or who asks without one.
pub fn origin(review: &Review) -> String {
    let flow = review.flow_title.clone().or_else(|| review.flow.as_ref().map(ToString::to_string));
    flow.unwrap_or_else(|| asker(review))
}

/// A person in a list of people: `Tom Hale (tom)`.
pub fn user(user: &User) -> String {
    let name =
        user.display_name.as_deref().map(str::trim).filter(|name| !name.is_empty() && *name != user.username.as_str());
    name.map_or_else(|| user.username.to_string(), |name| format!("{name} ({})", user.username))
}

/// A person as `you`, or by name.
pub fn person(name: &str, me: Option<&str>) -> String {
    if me == Some(name) { "you".to_owned() } else { name.to_owned() }
}

/// Up to two capital letters that stand for a person.
pub fn initials(name: &str) -> String {
    let mut words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let letters: String = match (words.next(), words.next()) {
        (Some(first), Some(second)) => first.chars().take(1).chain(second.chars().take(1)).collect(),
        (Some(only), None) => only.chars().take(2).collect(),
        _ => "?".to_owned(),
    };
    letters.to_uppercase()
}

/// People as a list: `tom`, `tom and you`.
pub fn people(names: &[Username], me: Option<&str>) -> String {
    let names: Vec<_> = names.iter().map(|name| person(name, me)).collect();
    listed(&names)
}

/// Who did something, as a list: `tom`, `you and a token of tom`. A person themselves and a program with a token of
/// theirs never look the same.
pub fn authors(all: &[Author], me: Option<&str>) -> String {
    let one = |author: &Author| match author.token {
        Some(_) if me == Some(author.name.as_str()) => "your token".to_owned(),
        Some(_) => author.to_string(),
        None => person(&author.name, me),
    };
    let all: Vec<String> = all.iter().map(one).collect();
    listed(&all)
}

/// Like [`authors`], at the beginning of a sentence. Usernames are not capitalized.
pub fn authors_first(all: &[Author], me: Option<&str>) -> String {
    let text = authors(all, me);
    let is_name = |first: &Author| first.token.is_none() && me != Some(first.name.as_str());
    if all.first().is_some_and(is_name) { text } else { sentence(&text) }
}

/// A person at the beginning of a sentence. Usernames are not capitalized.
pub fn person_first(name: &str, me: Option<&str>) -> String {
    if me == Some(name) { "You".to_owned() } else { name.to_owned() }
}

/// People at the beginning of a sentence: `tom and you`, `You and tom`.
pub fn people_first(names: &[Username], me: Option<&str>) -> String {
    let text = people(names, me);
    if names.first().is_some_and(|name| me == Some(name.as_str())) { sentence(&text) } else { text }
}

/// The names of those who may decide: roles, and people. A name that is both appears once.
pub fn whom(reviewers: &Reviewers) -> Vec<String> {
    let is_both = |name: &str| reviewers.users.iter().any(|user| user.as_str() == name);
    let roles = reviewers.roles.iter();
    let roles = roles.map(|role| if is_both(role) { role.clone() } else { format!("the role {role}") });
    let users = reviewers.users.iter().filter(|user| !reviewers.roles.iter().any(|role| role == user.as_str()));
    roles.chain(users.map(ToString::to_string)).collect()
}

/// A note that a handler, such as a channel or a program, is asked while people can already decide.
pub fn asked_too(asked: &AskedHandler, now: Timestamp) -> String {
    let left = asked.until.and_then(|until| left(now, until));
    let left = left.map(|left| format!(", for {left} more")).unwrap_or_default();
    let where_to = match asked.via {
        Via::Slack => format!("Asked in {} (Slack){left}.", asked.by),
        _ => format!("{} is asked too{left}.", asked.by),
    };
    format!("{where_to} The first answer decides.")
}

/// The category of what is under review. Agents use predefined names, in which underscores become spaces; other
/// categories are the flow's own and stay as they are.
pub fn category(review: &Review) -> Option<String> {
    let category = review.stakes.category.as_ref()?;
    let ours = matches!(review.kind, ReviewKind::Clarification | ReviewKind::Escalation);
    Some(if ours { category.replace('_', " ") } else { category.clone() })
}

/// The name of a kind of reviews, given its word in the API: `tool calls`, `hand-off`.
pub fn kind(word: &str) -> String {
    if word == ReviewKind::Handoff.as_str() { "hand-off".to_owned() } else { word.replace('_', " ") }
}

/// The beginning of a text on one line, at most 120 characters.
pub fn cut(text: &str) -> String {
    beginning(text, 120)
}

/// An amount in US dollars, such as `$0.004` or `$1.20`.
pub fn dollars(usd: f64) -> String {
    if usd <= 0.0 {
        "$0".to_owned()
    } else if usd < 0.0005 {
        "under $0.001".to_owned()
    } else if usd < 0.01 {
        format!("${usd:.3}")
    } else {
        format!("${usd:.2}")
    }
}

/// An amount of money: `12.60 EUR`, `5,000 EUR`.
pub fn amount(amount: f64, currency: &str) -> String {
    let whole = if amount.fract() == 0.0 { amount.to_string().parse().ok() } else { None };
    match whole {
        Some(whole) => format!("{} {currency}", thousands(whole)),
        // Less than a hundredth would be rounded away.
        None if amount.abs() < 0.01 => format!("{amount} {currency}"),
        None => {
            let text = format!("{amount:.2}");
            let (whole, cents) = text.split_once('.').unwrap_or((&text, "00"));
            // A negative number, or one that is too large, has no commas.
            let whole = whole.parse().map_or_else(|_| whole.to_owned(), thousands);
            format!("{whole}.{cents} {currency}")
        }
    }
}

pub fn json(value: &Value) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A value as text: a string as it is, anything else as JSON.
pub fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| json(value), str::to_owned)
}

/// A whole number with commas between thousands.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// A number as in [`thousands`], with `+` if it is only a lower bound: `1,000+`.
pub fn counted(number: u64, at_least: bool) -> String {
    format!("{}{}", thousands(number), if at_least { "+" } else { "" })
}

/// The name of an act on a review, as in the filter of the audit log.
pub fn review_act(act: ReviewAct) -> &'static str {
    match act {
        ReviewAct::Decision => "Decisions",
        ReviewAct::Vote => "Votes",
        ReviewAct::Comment => "Comments",
        ReviewAct::Claim => "Claims and releases",
        ReviewAct::Delegation => "Delegations",
        ReviewAct::Reassignment => "Reassignments",
        ReviewAct::Withdrawal => "Withdrawals",
        ReviewAct::Timeout => "Expiries and escalations",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_and_a_person_of_one_name_are_said_once() {
        let reviewers = |roles: &[&str], users: &[&str]| -> Reviewers {
            serde_json::from_value(serde_json::json!({ "roles": roles, "users": users })).unwrap()
        };
        assert_eq!(whom(&reviewers(&["finance"], &["finance"])), ["finance"]);
        assert_eq!(whom(&reviewers(&["finance"], &["ana"])), ["the role finance", "ana"]);
    }

    #[test]
    fn a_channel_that_is_asked_is_no_person() {
        let mut asked = AskedHandler { by: "#approvals".into(), via: Via::Slack, until: None, reactions: false };
        assert_eq!(asked_too(&asked, Timestamp(0)), "Asked in #approvals (Slack). The first answer decides.");
        asked.until = Some(Timestamp(300_000_000));
        assert!(asked_too(&asked, Timestamp(0)).starts_with("Asked in #approvals (Slack), for 5 min more."));
        (asked.by, asked.via, asked.until) = ("ok.test".into(), Via::Webhook, None);
        assert_eq!(asked_too(&asked, Timestamp(0)), "ok.test is asked too. The first answer decides.");
    }

    #[test]
    fn an_item_of_a_list_is_no_visit() {
        let part = |inside| Some(Part { number: 2, of: 5, inside });
        assert_eq!(visit(part(false), 2), ["item 2 of 5"]);
        assert_eq!(visit(part(true), 3), ["item 2 of 5", "visit 3"]);
        assert_eq!((visit(None, 2), visit(None, 1)), (vec!["visit 2".to_owned()], vec![]));
    }

    #[test]
    fn amounts_are_short() {
        assert_eq!(count(1, "call", "calls"), "1 call");
        assert_eq!(
            (dollars(0.004).as_str(), dollars(1.2).as_str(), thousands(1_234_567).as_str()),
            ("$0.004", "$1.20", "1,234,567")
        );
        assert_eq!((dollars(12.006), dollars(0.009_96)), ("$12.01".into(), "$0.010".into()));
        assert_eq!(dollars(0.0003), "under $0.001");
        let said = [12.6, 5000.0, 0.004, 1_234_567.5, -2.5].map(|euros| amount(euros, "EUR"));
        assert_eq!(said, ["12.60 EUR", "5,000 EUR", "0.004 EUR", "1,234,567.50 EUR", "-2.50 EUR"]);
    }
}
