//! Passwords: which ones are accepted, and their hashes, argon2id with the crate's defaults (OWASP's) as PHC strings.

use std::sync::Arc;

use argon2::Argon2;
use argon2::password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash};
use shared::error::Mistake;
use tokio::task::spawn_blocking;
use zxcvbn::{Score, zxcvbn};

use super::Error;
use super::hashing_queue::HashingQueue;
use crate::client_address::Network;
use crate::clock::SharedClock;

const MIN: usize = 12;
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

    /// Returns the PHC string of a new password. Refuses weak ones, naming `path` as the place of the mistake; `known`
    /// lists what others know of the person.
    pub async fn hash(&self, password: String, known: Vec<String>, path: &'static str) -> Result<String, Error> {
        let salt = self.clock.random();
        let work = move || {
            check(&password, &known).map_err(|why| Error::Invalid(vec![Mistake::new(path, "weak_password", why)]))?;
            hash(password.as_bytes(), &salt)
        };
        self.turns
            .take(None, async { spawn_blocking(work).await })
            .await?
            .map_err(|error| Error::Hash(error.to_string()))?
    }

    /// Whether the password matches `phc`. Without a hash it takes as long and returns `false`, so the duration does
    /// not reveal whether the user exists. `may` is called just before the work, when it is this call's turn. `network`
    /// is `None` for callers who are logged in.
    pub async fn verify<F>(
        &self,
        network: Option<Network>,
        password: String,
        phc: Option<String>,
        may: F,
    ) -> Result<bool, Error>
    where
        F: FnOnce() -> Result<(), Error> + Send + 'static,
    {
        let salt = self.clock.random();
        let work = async {
            may()?;
            let work = spawn_blocking(move || match phc {
                Some(phc) => Ok(Argon2::default().verify_password(password.as_bytes(), phc.as_str()).is_ok()),
                None => hash(password.as_bytes(), &salt).map(|_| false),
            });
            work.await.map_err(|error| Error::Hash(error.to_string()))?
        };
        self.turns.take(network, work).await?
    }
}

/// Returns why a password is refused.
fn check(password: &str, known: &[String]) -> Result<(), String> {
    let length = password.chars().count();
    if length < MIN {
        return Err(format!("a password needs at least {MIN} characters; several words in a row work well"));
    }
    if length > MAX {
        return Err(format!("a password can have at most {MAX} characters"));
    }
    let known: Vec<&str> = known.iter().map(String::as_str).chain(["countersign"]).collect();
    let estimate = zxcvbn(password, &known);
    if estimate.score() >= Score::Three {
        return Ok(());
    }
    let warning = estimate.feedback().and_then(zxcvbn::feedback::Feedback::warning);
    let why = warning.map_or_else(String::new, |warning| format!(" ({})", warning.to_string().trim_end_matches('.')));
    Err(format!("this password is easy to guess{why}; several unrelated words work well"))
}

fn hash(password: &[u8], salt: &[u8]) -> Result<String, Error> {
    let hash: Result<PasswordHash, _> = Argon2::default().hash_password_with_salt(password, salt);
    hash.map(|hash| hash.to_string()).map_err(|error| Error::Hash(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;

    #[tokio::test]
    async fn a_password_is_told_from_another() {
        let passwords = Passwords::new(Arc::new(SystemClock));
        let phc = passwords.hash("correct horse battery".to_owned(), Vec::new(), "").await.unwrap();
        assert!(phc.starts_with("$argon2id$"), "{phc}");
        let verify = |password: &str, phc: Option<String>| passwords.verify(None, password.to_owned(), phc, || Ok(()));
        assert!(verify("correct horse battery", Some(phc.clone())).await.unwrap());
        assert!(!verify("wrong horse battery", Some(phc)).await.unwrap());
        assert!(!verify("correct horse battery", None).await.unwrap());
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
            assert!(check(weak, &known).is_err(), "{weak}");
        }
        for good in ["correct horse battery", "unhurried-otter-41", "mKx8Tq2vPz0w", "лошадь батарея скрепка"]
        {
            assert_eq!(check(good, &known), Ok(()), "{good}");
        }
        assert!(check(&"длинно ".repeat(19), &known).is_err(), "133 characters");
    }
}
