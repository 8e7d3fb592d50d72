//! To whom a review can be reassigned, and the values of the menus that choose it.

use std::collections::BTreeSet;

use shared::access::{Principal, has_vote};
use shared::api::User;
use shared::id::Username;
use shared::reassignment::Assignee;
use shared::review::Review;

use super::words;

/// Those to whom a review can be reassigned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choices {
    /// Roles of which somebody could decide it.
    pub roles: Vec<Assignee>,
    /// People who could decide it, each with the text that is shown.
    pub people: Vec<(Assignee, String)>,
}

impl Choices {
    /// Returns the choices of this person, who cannot choose themselves. The server checks more, such as whether a role
    /// has enough people for the votes.
    pub fn of(review: &Review, users: &[User], me: &Username) -> Self {
        let mut review = review.clone();
        let active = users.iter().filter(|user| user.active && user.username != *me);
        let people: Vec<_> = active
            .map(|user| (user, Principal::new(user.username.clone(), user.roles.iter().cloned().collect())))
            .collect();
        let mut could = |person: &Principal, assignee: &Assignee| {
            let (roles, users) = match assignee {
                Assignee::Role(role) => (vec![role.clone()], Vec::new()),
                Assignee::User(user) => (Vec::new(), vec![user.clone()]),
            };
            (review.reviewers.roles, review.reviewers.users) = (roles, users);
            review.escalated.clear();
            has_vote(person, &review)
        };
        let roles: BTreeSet<&String> = people.iter().flat_map(|(_, person)| &person.roles).collect();
        let roles = roles.into_iter().cloned().map(Assignee::Role);
        let roles = roles.filter(|role| people.iter().any(|(_, person)| could(person, role))).collect();
        let people = people.iter().filter_map(|(user, person)| {
            let assignee = Assignee::User(user.username.clone());
            could(person, &assignee).then(|| (assignee, words::user(user)))
        });
        Self { roles, people: people.collect() }
    }

    /// Whether this is one of the choices.
    pub fn has(&self, assignee: &Assignee) -> bool {
        self.roles.contains(assignee) || self.people.iter().any(|(person, _)| person == assignee)
    }
}

/// The value by which a menu names somebody.
pub fn value(assignee: &Assignee) -> String {
    match assignee {
        Assignee::User(name) => format!("user:{name}"),
        Assignee::Role(role) => format!("role:{role}"),
    }
}

/// Returns whom the value of a menu names; `None` if nothing is chosen.
pub fn of_value(value: &str) -> Option<Assignee> {
    match value.split_once(':')? {
        ("user", name) => name.parse().ok().map(Assignee::User),
        ("role", role) => Some(Assignee::Role(role.to_owned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::fixtures::review;

    #[test]
    fn a_review_is_offered_only_to_those_who_could_decide_it() {
        let user = |name: &str, roles: &[&str], active: bool| -> User {
            let user =
                json!({ "username": name, "roles": roles, "active": active, "created_at": "2026-11-20T10:00:00Z" });
            serde_json::from_value(user).unwrap()
        };
        let users = [
            user("boss", &["admin"], true),
            user("mia", &["legal"], true),
            user("ana", &["editor"], true),
            user("tom", &["editor"], false),
            user("eva", &["reviewer"], true),
        ];
        let reviewers = json!({ "users": ["tom"], "not_requester": true });
        let review = review(1, 1, json!({ "reviewers": reviewers, "barred": ["eva"] }));
        let choices = Choices::of(&review, &users, &"boss".parse().unwrap());
        let shown = |all: &[Assignee]| all.iter().map(value).collect::<Vec<_>>();
        assert_eq!(shown(&choices.roles), ["role:editor"]);
        let people: Vec<_> = choices.people.iter().map(|(person, _)| person.clone()).collect();
        assert_eq!(shown(&people), ["user:ana"]);
        for choice in people.iter().chain(&choices.roles) {
            assert!(of_value(&value(choice)).is_some_and(|again| choices.has(&again)));
        }
        assert_eq!(of_value(""), None);
    }
}
