//! Passwords: which ones are accepted, and their hashes, argon2id with the crate's defaults (OWASP's) as PHC strings.

use std::sync::Arc;

use argon2::password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash};
use argon2::{Argon2, Params};
use shared::account::MIN_PASSWORD;
use shared::api::NewPassword;
use shared::error::Mistake;
use shared::id::Username;
use tokio::task::spawn_blocking;
use zxcvbn::{Score, zxcvbn};

use super::Error;
use super::hashing_queue::{HashingQueue, Origin};
use crate::clock::SharedClock;

/// Longer passwords cost the hash more work without more safety.
const MAX: usize = 128;

/// Hashes and verifies passwords on threads for blocking work. Cheap to clone.
#[derive(Clone)]
pub struct Passwords {
    clock: SharedClock,
    turns: Arc<HashingQueue>,
}

impl Passwords {
    /// Creates a hasher that takes its salts from `clock`.
    pub fn new(clock: SharedClock) -> Self {
        Self { clock, turns: Arc::new(HashingQueue::new()) }
    }

    /// Returns the PHC string of a new password, in the line of the person who sets it; `None` if the server does.
    /// Refuses weak passwords, naming `path` as the place of the mistake; `known` lists what others know of the person.
    pub async fn hash(
        &self,
        by: Option<&Username>,
        password: String,
        known: Vec<String>,
        path: &'static str,
    ) -> Result<String, Error> {
        let salt = self.clock.random();
        let work = move || {
            check(&password, &known, path)?;
            hash(password.as_bytes(), &salt)
        };
        self.in_turn(by.map(|person| Origin::Person(person.to_string())), work).await
    }

    /// Whether the password matches `phc`. Without a hash it takes as long and returns `false`, so the duration does
    /// not reveal whether the user exists. `may` is called just before the work, when it is this call's turn.
    pub(super) async fn verify(
        &self,
        origin: Origin,
        password: String,
        phc: Option<String>,
        may: impl FnOnce() -> Result<(), Error> + Send + 'static,
    ) -> Result<bool, Error> {
        let salt = self.clock.random();
        let work = move || {
            may()?;
            match phc {
                Some(phc) => Ok(matches(&password, &phc)),
                None => hash(password.as_bytes(), &salt).map(|_| false),
            }
        };
        self.in_turn(Some(origin), work).await
    }

    /// Returns the PHC string of a person's new password; `None` if they do not know the current one. `may` is called before anything
    /// is hashed; a weak password is refused before that.
    pub(super) async fn replace(
        &self,
        origin: Origin,
        NewPassword { current, new, .. }: NewPassword,
        phc: String,
        known: Vec<String>,
        may: impl FnOnce() -> Result<(), Error> + Send + 'static,
    ) -> Result<Option<String>, Error> {
        let salt = self.clock.random();
        let work = move || {
            check(&new, &known, "/new")?;
            may()?;
            if !matches(&current, &phc) {
                return Ok(None);
            }
            hash(new.as_bytes(), &salt).map(Some)
        };
        self.in_turn(Some(origin), work).await
    }

    /// Does the work when it is the turn of `origin`.
    async fn in_turn<T, F>(&self, origin: Option<Origin>, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce() -> Result<T, Error> + Send + 'static,
    {
        let turn = self.turns.turn(origin).await?;
        let work = spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        work.await.map_err(|error| Error::Hash(error.to_string()))?
    }
}

fn check(password: &str, known: &[String], path: &str) -> Result<(), Error> {
    weakness(password, known).map_or(Ok(()), |why| Err(Error::Invalid(vec![Mistake::new(path, "weak_password", why)])))
}

/// Returns why a password is refused. `None` if it is not.
fn weakness(password: &str, known: &[String]) -> Option<String> {
    let length = password.chars().count();
    if length < MIN_PASSWORD {
        return Some(format!("a password needs at least {MIN_PASSWORD} characters; several words in a row work well"));
    }
    if length > MAX {
        return Some(format!("a password can have at most {MAX} characters"));
    }
    let known: Vec<&str> = known.iter().map(String::as_str).chain(["countersign"]).collect();
    let estimate = zxcvbn(password, &known);
    if estimate.score() >= Score::Three {
        return None;
    }
    let warning = estimate.feedback().and_then(zxcvbn::feedback::Feedback::warning);
    let why = warning.map_or_else(String::new, |warning| format!(" ({})", warning.to_string().trim_end_matches('.')));
    Some(format!("this password is easy to guess{why}; several unrelated words work well"))
}

/// Returns the hasher of new passwords. The tests of this crate log people in by the thousand, so theirs is cheap; those
/// of the server as a whole use that of a release.
fn hasher() -> Argon2<'static> {
    if cfg!(test) {
        Params::new(Params::MIN_M_COST, 1, 1, None).map(Argon2::from).unwrap_or_default()
    } else {
        Argon2::default()
    }
}

fn matches(password: &str, phc: &str) -> bool {
    Argon2::default().verify_password(password.as_bytes(), phc).is_ok()
}

fn hash(password: &[u8], salt: &[u8]) -> Result<String, Error> {
    let hash: Result<PasswordHash, _> = hasher().hash_password_with_salt(password, salt);
    hash.map(|hash| hash.to_string()).map_err(|error| Error::Hash(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;

    #[tokio::test]
    async fn a_password_is_told_from_another() {
        let passwords = Passwords::new(Arc::new(SystemClock));
        let phc = passwords.hash(None, "correct horse battery".to_owned(), Vec::new(), "").await.unwrap();
        assert!(phc.starts_with("$argon2id$"), "{phc}");
        let ana = || Origin::Person("ana".to_owned());
        let verify = |password: &str, phc: Option<String>| passwords.verify(ana(), password.to_owned(), phc, || Ok(()));
        assert!(verify("correct horse battery", Some(phc.clone())).await.unwrap());
        assert!(!verify("wrong horse battery", Some(phc)).await.unwrap());
        assert!(!verify("correct horse battery", None).await.unwrap());
    }

    /// Settings that OWASP counts as equally strong, with one lane each: the memory in KiB, and the passes over it.
    /// <https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html#argon2id>
    const OWASP: [(u32, u32); 5] = [(47_104, 1), (19_456, 2), (12_288, 3), (9_216, 4), (7_168, 5)];

    #[test]
    fn the_hasher_of_a_release_works_as_hard_as_owasp_asks() {
        let hasher = Argon2::default();
        let work = hasher.params();
        assert_eq!(work.p_cost(), 1, "{work:?}");
        let suffices = |(memory, passes): &(u32, u32)| *memory <= work.m_cost() && *passes <= work.t_cost();
        assert!(OWASP.iter().any(suffices), "{work:?}");
    }

    #[test]
    fn a_password_is_long_and_not_known() {
        let known = ["ana".to_owned(), "Ana Novak".to_owned()];
        for weak in [
            "short",
            "eleven char",
            "            ",
            "aaaaaaaaaaaa",
            "123456789012",
            "abcabcabcabc",
            "password1234",
            "Password123!",
            "qwertyuiop12",
            "countersign1",
            "ana novak ana",
        ] {
            assert!(weakness(weak, &known).is_some(), "{weak}");
        }
        for good in ["correct horse battery", "unhurried-otter-41", "mKx8Tq2vPz0w", "лошадь батарея скрепка"]
        {
            assert_eq!(weakness(good, &known), None, "{good}");
        }
        assert!(weakness(&"длинно ".repeat(19), &known).is_some(), "133 characters");
    }
}
