//! An authenticator app (TOTP).

use std::time::{SystemTime, UNIX_EPOCH};

/// The current code for a secret in base 32.
#[expect(clippy::disallowed_methods, reason = "an authenticator app has the real clock, as the server has here")]
pub fn code(secret: &str) -> String {
    let secret = totp_rs::Secret::try_from_base32(secret).expect("base 32");
    let totp = totp_rs::Builder::new().with_secret(secret).with_account_name("test").build().expect("a secret");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    totp.generate(now).to_string()
}
