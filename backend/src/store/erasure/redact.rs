//! The removal of a person from stored JSON: of their name, where it is used as a name, and of the texts that they
//! typed.
//!
//! A name is found by its place, never by its text: a person may be called `admin`, `approve` or `max`. In data of
//! users ([`super::user_data_paths`]), only members that this program writes are such places.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::super::ProviderAccount;
use super::user_data_paths::is_user_data;

/// The replacement for a person's words.
pub(in crate::store) const ERASED: &str = "[erased]";
/// The shortest text, in characters, that is also searched for in the rest of the run, where an agent may have repeated
/// it; it must have several words. Shorter texts would match words of other people or of the engine.
const LONG: usize = 12;

/// Members whose value is a person, anywhere.
const ANYWHERE: [&str; 5] = ["actor", "by", "given_by", "on_behalf_of", "requested_by"];
/// Members whose value is a person or a list of people, in data of the engine.
const NAMES: [&str; 13] = [
    "added", "barred", "deputy", "lost", "made_by", "owner", "person", "saved_by", "user", "username", "users",
    "voided", "voters",
];

/// Members with sentences of the engine that may name people. In an error, also its message.
const SENTENCES: [&str; 3] = ["problem", "reason", "standing"];
/// Members in which the engine names people in backticks.
const QUOTES: [&str; 2] = ["prompt", "title"];

/// The account at the identity provider of the person to erase, in entries that do not name them: sign-ins with it that
/// were refused before it was linked to them, and what others did who had it before.
#[derive(Clone, Copy)]
pub(in crate::store) struct OwnAccount<'a> {
    pub account: &'a ProviderAccount,
    /// The names in such entries that belong to somebody.
    pub others: &'a BTreeSet<String>,
}

/// The person to erase, and what was found of their words.
pub(in crate::store) struct Redaction<'a> {
    name: &'a str,
    pseudonym: &'a str,
    account: Option<OwnAccount<'a>>,
    /// Their texts to search for elsewhere.
    words: BTreeSet<String>,
    /// Their texts that are not searched for elsewhere.
    kept: BTreeSet<String>,
    /// Texts found since the last call of [`Self::seek`].
    found: BTreeSet<String>,
}

impl<'a> Redaction<'a> {
    pub fn new(name: &'a str, pseudonym: &'a str) -> Self {
        let (words, kept, found) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        Self { name, pseudonym, account: None, words, kept, found }
    }

    /// Also removes what is said of this account at the identity provider.
    pub fn with_account(self, account: Option<OwnAccount<'a>>) -> Self {
        Self { account, ..self }
    }

    /// Removes the person's name and words from a stored value. `root` says what it is, as in [`super::user_data_paths`].
    pub fn redact(&mut self, root: &str, value: &mut Value) {
        self.walk(value, &mut vec![root.to_owned()], false);
    }

    /// Decides which of the texts found last are searched for elsewhere: all except those that were known before the
    /// person typed them.
    pub fn seek(&mut self, is_known: &dyn Fn(&str) -> bool) {
        for word in std::mem::take(&mut self.found) {
            if is_known(&word) {
                self.kept.insert(word)
            } else {
                self.words.insert(word)
            };
        }
    }

    /// Removes their texts wherever they were copied to.
    pub fn trace(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                // The longest first, since one may be a part of another.
                let mut words: Vec<&String> = self.words.iter().filter(|word| text.contains(word.as_str())).collect();
                words.sort_by_key(|word| std::cmp::Reverse(word.len()));
                for word in words {
                    *text = text.replace(word.as_str(), ERASED);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.trace(item)),
            Value::Object(members) => members.values_mut().for_each(|member| self.trace(member)),
            _ => {}
        }
    }

    fn walk(&mut self, value: &mut Value, path: &mut Vec<String>, users: bool) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item, path, users)),
            Value::Object(members) => {
                self.words_of(members);
                let is_error = members.contains_key("code");
                // Other objects also have `from` and `to`.
                let is_handed = members.contains_key("at") || members.get("input") == Some(&"delegate".into());
                for (key, member) in members.iter_mut() {
                    let key = key.as_str();
                    if ANYWHERE.contains(&key)
                        || (!users && (NAMES.contains(&key) || (is_handed && matches!(key, "from" | "to"))))
                    {
                        self.rename(member);
                    } else if let (false, Value::String(text)) = (users, &mut *member)
                        && text.contains(self.name)
                    {
                        if SENTENCES.contains(&key) || (is_error && key == "message") {
                            *text = self.renamed(text);
                        } else if QUOTES.contains(&key) {
                            *text = text.replace(&format!("`{}`", self.name), &format!("`{}`", self.pseudonym));
                        }
                    } else if key == "deciders" && !users {
                        let lists = member.as_object_mut().into_iter().flat_map(Map::values_mut);
                        lists.for_each(|list| self.rename(list));
                    } else if let ("people", false, Value::Object(people)) = (key, users, &mut *member)
                        && let Some(roles) = people.remove(self.name)
                    {
                        people.insert(self.pseudonym.to_owned(), roles);
                    }
                    path.push(key.to_owned());
                    self.walk(member, path, users || is_user_data(path));
                    path.pop();
                }
            }
            _ => {}
        }
    }

    /// Replaces the name by the pseudonym wherever it is a word of the sentence.
    fn renamed(&self, text: &str) -> String {
        let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let (mut renamed, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(at) = rest.find(self.name) {
            let (before, behind) = (&rest[..at], &rest[at + self.name.len()..]);
            let mut next = behind.chars();
            let ends = match next.next() {
                // A dot ends the sentence, or continues another name.
                Some('.') => !next.next().is_some_and(goes_on),
                other => !other.is_some_and(goes_on),
            };
            // If the text before was already copied, its end decides whether this is a part of another name.
            let begins =
                !before.chars().next_back().or(renamed.chars().next_back()).is_some_and(|c| goes_on(c) || c == '.');
            renamed.push_str(before);
            renamed.push_str(if begins && ends { self.pseudonym } else { self.name });
            rest = behind;
        }
        renamed + rest
    }

    /// Replaces the name in a value. One text may have several names, separated by commas.
    fn rename(&self, value: &mut Value) {
        match value {
            Value::String(text) if text.split(", ").any(|name| name == self.name) => {
                let names = text.split(", ").map(|name| if name == self.name { self.pseudonym } else { name });
                *text = names.collect::<Vec<_>>().join(", ");
            }
            Value::Array(items) => items.iter_mut().filter(|item| item.is_string()).for_each(|item| self.rename(item)),
            _ => {}
        }
    }

    /// Removes the words in an object that says whose they are.
    fn words_of(&mut self, members: &mut Map<String, Value>) {
        let is = |key: &str| members.get(key).is_some_and(|value| self.is_them(value));
        let (by, made_by, named, actor) = (is("by"), is("made_by"), is("username"), is("actor"));
        if by {
            self.erase(members, &["comment", "reason"]);
            // A comment on a review, as stored or as sent. Free text that is an answer has other members.
            if (members.contains_key("at") && members.len() == 3) || members.get("input") == Some(&"comment".into()) {
                self.erase(members, &["text"]);
            }
            if members.contains_key("aspect") {
                self.erase(members, &["content", "context"]);
            }
            if let Some(Value::Object(request)) = members.get_mut("request") {
                self.erase(request, &["comment"]);
                if let Some(Value::Object(verdict)) = request.get_mut("verdict") {
                    self.verdict(verdict);
                }
            }
            if let Some(Value::Object(feedback)) = members.get_mut("feedback") {
                self.erase(feedback, &["content", "context"]);
            }
            if let Some(Value::Object(verdict)) = members.get_mut("verdict") {
                self.verdict(verdict);
            }
        }
        if made_by {
            self.erase(members, &["note"]);
        }
        if named {
            account(members);
        } else if let Some(OwnAccount { others, .. }) = self.account.filter(|own| is_of(members, own.account)) {
            erase_subject(members);
            // Only a refused sign-in can have a name that the provider gave. Others may have had the account before.
            if members.contains_key("reason")
                && let Some(Value::String(name)) = members.get_mut("username")
                && !others.contains(name.as_str())
            {
                self.pseudonym.clone_into(name);
            }
        }
        let kind = members.get("kind").and_then(Value::as_str);
        let words: &[&str] = match kind.filter(|_| actor) {
            Some("run.cancelled") => &["reason"],
            Some("token.created") => &["name"],
            _ => &[],
        };
        if let Some(Value::Object(data)) = members.get_mut("data") {
            self.erase(data, words);
        }
    }

    /// Removes the instructions to an agent, and the reasons why actions were rejected.
    fn verdict(&mut self, verdict: &mut Map<String, Value>) {
        self.erase(verdict, &["instructions"]);
        let actions = verdict.get_mut("decisions").and_then(Value::as_object_mut);
        for action in actions.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut) {
            // The message of a response is the result of the call, and stays.
            if action.get("type") != Some(&"respond".into()) {
                self.erase(action, &["message"]);
            }
        }
    }

    fn erase(&mut self, members: &mut Map<String, Value>, keys: &[&str]) {
        for key in keys {
            if let Some(Value::String(text)) = members.get_mut(*key)
                && text != ERASED
                && !text.is_empty()
            {
                let word = text.trim().to_owned();
                let is_long = word.chars().count() >= LONG && word.contains(char::is_whitespace);
                if is_long && !self.kept.contains(&word) && !self.words.contains(&word) {
                    self.found.insert(word);
                }
                ERASED.clone_into(text);
            }
        }
    }

    /// Whether a value is the person: a name, a list with it, or a principal.
    fn is_them(&self, value: &Value) -> bool {
        match value {
            Value::String(name) => name == self.name,
            Value::Array(names) => names.iter().any(|name| name == self.name),
            Value::Object(principal) => principal.get("username").is_some_and(|name| name == self.name),
            _ => false,
        }
    }
}

/// Adds the names that objects about this account at the identity provider have.
pub(in crate::store) fn names_with(own: &ProviderAccount, value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| names_with(own, item, names)),
        Value::Object(members) => {
            if is_of(members, own) {
                names.extend(members.get("username").and_then(Value::as_str).map(str::to_owned));
            }
            members.values().for_each(|member| names_with(own, member, names));
        }
        _ => {}
    }
}

/// Whether an object is about this account at the identity provider.
fn is_of(members: &Map<String, Value>, own: &ProviderAccount) -> bool {
    members.get("single_sign_on").is_some_and(|account| {
        account.get("issuer").is_some_and(|issuer| *issuer == own.issuer)
            && account.get("subject").is_some_and(|subject| *subject == own.subject)
    })
}

/// Removes what an entry says about an account.
fn account(members: &mut Map<String, Value>) {
    members.remove("notifications");
    for key in ["display_name", "email"] {
        if let Some(Value::String(text)) = members.get_mut(key)
            && !text.is_empty()
        {
            ERASED.clone_into(text);
        }
    }
    erase_subject(members);
}

/// Removes the person's id at the identity provider.
fn erase_subject(members: &mut Map<String, Value>) {
    if let Some(Value::Object(account)) = members.get_mut("single_sign_on")
        && let Some(subject) = account.get_mut("subject")
    {
        *subject = ERASED.into();
    }
}

#[cfg(test)]
mod tests;
