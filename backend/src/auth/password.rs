//! Passwords: argon2id with the crate's defaults (OWASP's), as PHC strings.

use std::sync::Arc;

use argon2::Argon2;
use argon2::password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::Error;
use crate::clock::SharedClock;

/// How many hashes are computed at once: each takes 19 MiB and some tens of milliseconds of a core.
const AT_ONCE: usize = 2;

/// Hashes and checks passwords away from the threads that serve requests. Cheap to clone.
#[derive(Clone)]
pub struct Passwords {
    clock: SharedClock,
    permits: Arc<Semaphore>,
}

impl Passwords {
    /// A hasher that takes its salts from `clock`.
    pub fn new(clock: SharedClock) -> Self {
        Self { clock, permits: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// The PHC string of a password.
    pub async fn hash(&self, password: String) -> Result<String, Error> {
        let salt = self.clock.random();
        self.run(move || hash(password.as_bytes(), &salt)).await?
    }

    /// Whether the password is that of `phc`. Without one it takes as long, and the answer is no: the time does not
    /// tell whether there is such a person. `may` is asked just before the work, when it is this call's turn.
    pub async fn verify<F>(&self, password: String, phc: Option<String>, may: F) -> Result<bool, Error>
    where
        F: FnOnce() -> Result<(), Error> + Send + 'static,
    {
        let salt = self.clock.random();
        self.run(move || {
            may()?;
            match phc {
                Some(phc) => Ok(Argon2::default().verify_password(password.as_bytes(), phc.as_str()).is_ok()),
                None => hash(password.as_bytes(), &salt).map(|_| false),
            }
        })
        .await?
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
        let _permit = self.permits.acquire().await.map_err(|error| Error::Hash(error.to_string()))?;
        spawn_blocking(work).await.map_err(|error| Error::Hash(error.to_string()))
    }
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
        let phc = passwords.hash("correct horse".to_owned()).await.unwrap();
        assert!(phc.starts_with("$argon2id$"), "{phc}");
        assert!(passwords.verify("correct horse".to_owned(), Some(phc.clone()), || Ok(())).await.unwrap());
        assert!(!passwords.verify("wrong horse".to_owned(), Some(phc), || Ok(())).await.unwrap());
        assert!(!passwords.verify("correct horse".to_owned(), None, || Ok(())).await.unwrap());
    }
}
