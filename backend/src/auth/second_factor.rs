//! The second factor: time-based codes (TOTP, RFC 6238), and recovery codes that work once each.

use shared::api::{NewSecondFactor, RecoveryCodes, SecondFactorState};
use shared::error::{Code, Mistake, Problem};
use totp_rs::{Builder, Totp};

use super::login::FailedFactor;
use super::rate_limit::AttemptKey;
use super::{Authenticator, Error, Identity, digest};
use crate::clock::Clock;
use crate::store::{FactorChange, Operation, Proof, SecondFactor, UserRecord};

const ISSUER: &str = "Countersign";
const RECOVERY_CODES: usize = 10;
/// Letters and digits that are easy to tell apart.
const ALPHABET: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz123456789";

impl Authenticator {
    /// Checks a person's second factor and returns the proof. `None` if they have no second factor. Wrong codes are
    /// limited per account, and recorded.
    pub(super) fn prove(
        &self,
        person: &UserRecord,
        code: Option<&str>,
        in_session: bool,
    ) -> Result<Option<Proof>, Error> {
        let Some(factor) = person.confirmed_factor() else { return Ok(None) };
        let code = code.map(str::trim).filter(|code| !code.is_empty()).ok_or(Error::SecondFactorRequired)?;
        let recovery = hex::encode(digest(&plain(code)));
        if factor.recovery.contains(&recovery) {
            // 80 random bits: nobody guesses one, so the limit must not keep its owner from using it.
            return Ok(Some(Proof::Recovery(digest(&plain(code)))));
        }
        let username = &person.user.username;
        let key = if in_session { AttemptKey::SessionCodes } else { AttemptKey::Codes };
        let keys = [key(username.to_string())];
        self.limit.check(&keys, self.clock.uptime())?;
        if let Some(step) = step_of(&factor.secret, code, &*self.clock).filter(|step| *step > factor.used_step) {
            Ok(Some(Proof::Step(step)))
        } else {
            self.limit.count(&keys, self.clock.uptime());
            self.record_failure(username, FailedFactor::Code, in_session);
            Err(Error::Unauthenticated(WRONG))
        }
    }

    /// The same for somebody who is logged in: an error names the place in the body, since the session is valid.
    pub(super) fn prove_in_session(&self, person: &UserRecord, code: Option<&str>) -> Result<Option<Proof>, Error> {
        self.prove(person, code, true).map_err(|error| match error {
            Error::Unauthenticated(why) => Problem::invalid("/code", why).into(),
            Error::SecondFactorRequired => {
                Error::Invalid(vec![Mistake::new("/code", "required", "a code of your second factor is required")])
            }
            other => other,
        })
    }

    /// Returns the state of the caller's second factor.
    pub async fn second_factor(&self, identity: &Identity) -> Result<SecondFactorState, Error> {
        let person = self.person(identity).await?;
        let on = person.confirmed_factor();
        Ok(SecondFactorState {
            enabled: on.is_some(),
            required: self.policy.second_factor.includes(&person),
            recovery_codes_left: on.map_or(0, |factor| u32::try_from(factor.recovery.len()).unwrap_or(u32::MAX)),
        })
    }

    /// Sets a new secret, which takes effect once it is confirmed. Whoever has only a session must not lock its owner
    /// out, so the password is required, or, for people who have none, a recent login.
    pub async fn begin_second_factor(
        &self,
        identity: &Identity,
        password: Option<String>,
    ) -> Result<NewSecondFactor, Error> {
        let person = self.person(identity).await?;
        self.check_password(identity, &person, password).await?;
        let mut bytes = [0; 20];
        bytes[..16].copy_from_slice(&self.clock.random());
        bytes[16..].copy_from_slice(&self.clock.random()[..4]);
        let secret = hex::encode(bytes);
        self.change(identity, FactorChange::Begin(secret.clone())).await?;
        let totp = totp(&secret, identity.principal.username.as_str());
        let uri = totp.as_ref().and_then(|totp| totp.to_url().ok()).ok_or_else(unreadable)?;
        let shown = uri.split(['?', '&']).find_map(|part| part.strip_prefix("secret=")).unwrap_or_default().to_owned();
        Ok(NewSecondFactor { secret: shown, qr_svg: qr_svg(&uri), uri })
    }

    /// Turns the second factor on, given a current code. Returns the recovery codes.
    pub async fn confirm_second_factor(&self, identity: &Identity, code: &str) -> Result<RecoveryCodes, Error> {
        let person = self.person(identity).await?;
        let Some(SecondFactor { secret, .. }) = person.second_factor.filter(|factor| !factor.confirmed) else {
            let detail = "there is no second factor to confirm; start with POST /api/v1/me/totp";
            return Err(Problem::new(Code::Conflict).detail(detail).into());
        };
        let keys = [AttemptKey::SessionCodes(person.user.username.to_string())];
        self.limit.check(&keys, self.clock.uptime())?;
        let Some(step) = step_of(&secret, code, &*self.clock) else {
            self.limit.count(&keys, self.clock.uptime());
            return Err(Problem::invalid("/code", WRONG).into());
        };
        let codes: Vec<String> = (0..RECOVERY_CODES).map(|_| recovery_code(&*self.clock)).collect();
        let recovery = codes.iter().map(|code| hex::encode(digest(&plain(code)))).collect();
        self.change(identity, FactorChange::Confirm { secret, step, recovery }).await?;
        self.invalidate();
        Ok(RecoveryCodes { recovery_codes: codes })
    }

    /// Turns the second factor off, given a current code or a recovery code.
    pub async fn remove_second_factor(&self, identity: &Identity, code: &str) -> Result<(), Error> {
        let person = self.person(identity).await?;
        // There is no confirmed second factor to remove. `Remove(None)` is for admins.
        let Some(proof) = self.prove_in_session(&person, Some(code))? else { return Ok(()) };
        self.change(identity, FactorChange::Remove(Some(proof))).await?;
        self.invalidate();
        Ok(())
    }

    async fn change(&self, identity: &Identity, change: FactorChange) -> Result<(), Error> {
        let username = identity.principal.username.clone();
        self.commit(identity, Operation::ChangeSecondFactor { username, change }).await
    }

    pub(super) async fn person(&self, identity: &Identity) -> Result<UserRecord, Error> {
        let person = self.store.user(&identity.principal.username).await?;
        person.ok_or(Error::Unauthenticated("the session has ended; log in again"))
    }
}

const WRONG: &str = "the code is wrong, or was used before; wait for the next one";

fn unreadable() -> Error {
    Error::Store(crate::store::Error::Stored("the secret of a second factor".to_owned()))
}

fn totp(secret: &str, account: &str) -> Option<Totp> {
    let bytes = hex::decode(secret).ok()?;
    Builder::new().with_secret(bytes).with_account_name(account).with_issuer(Some(ISSUER)).build().ok()
}

/// Returns the time step of a code, which may be the current, the previous or the next one. `None` if the code is
/// wrong.
fn step_of(secret: &str, code: &str, clock: &dyn Clock) -> Option<u64> {
    let seconds = u64::try_from(clock.now().0 / 1_000_000).ok()?;
    let code: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    totp(secret, "account")?.check(&code, seconds)
}

/// Creates a recovery code: sixteen characters in four groups, 80 random bits.
fn recovery_code(clock: &dyn Clock) -> String {
    let letters = clock.random().map(|byte| char::from(ALPHABET[usize::from(byte % 32)]));
    let groups: Vec<String> = letters.chunks(4).map(|group| group.iter().collect()).collect();
    groups.join("-")
}

/// Normalises a recovery code for hashing, however it was typed.
fn plain(code: &str) -> String {
    code.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Draws a QR code as SVG. Empty if the text is too long.
fn qr_svg(text: &str) -> String {
    use std::fmt::Write as _;
    let Ok(code) = qrcodegen::QrCode::encode_text(text, qrcodegen::QrCodeEcc::Medium) else { return String::new() };
    let (size, border) = (code.size(), 4);
    let mut path = String::new();
    for (x, y) in (0..size).flat_map(|y| (0..size).map(move |x| (x, y))).filter(|(x, y)| code.get_module(*x, *y)) {
        let _ = write!(path, "M{},{}h1v1h-1z", x + border, y + border);
    }
    let side = size + 2 * border;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {side} {side}\"><path fill=\"#fff\" \
         d=\"M0,0h{side}v{side}h-{side}z\"/><path d=\"{path}\"/></svg>"
    )
}

#[cfg(test)]
pub(crate) fn code_at(secret: &str, seconds: u64) -> String {
    let secret = totp_rs::Secret::try_from_base32(secret).unwrap();
    let totp = Builder::new().with_secret(secret).with_account_name("test").build().unwrap();
    totp.generate(seconds).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;

    #[test]
    fn a_recovery_code_is_random_and_may_be_typed_freely() {
        let code = recovery_code(&SystemClock);
        assert_eq!(code.len(), 19);
        assert_ne!(code, recovery_code(&SystemClock));
        assert_eq!(plain(&code), plain(&format!("  {} ", code.to_uppercase().replace('-', " "))));
    }
}
