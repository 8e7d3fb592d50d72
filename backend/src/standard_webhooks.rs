//! The sender's part of Standard Webhooks: a message has an id and a time, and is signed with a secret that the
//! receiver shares. So the receiver can verify that a message is authentic and unchanged, and recognise repetitions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::hmac;
use shared::time::Timestamp;

/// The minimum length of a secret, in bytes; the maximum is 64.
const MIN_KEY: usize = 24;

/// The form of a secret, for error messages.
pub const SECRET: &str = "`whsec_` and the base64 of 24 to 64 random bytes";

/// The secrets with which messages are signed, the newest first. Each message is signed with all of them, so that a
/// receiver can change from one to the next.
#[derive(Clone)]
pub struct SigningKeys(Vec<Vec<u8>>);

impl SigningKeys {
    /// Parses secrets separated by spaces or commas. Returns `None` if one of them is not valid or there are none.
    pub fn read(secrets: &str) -> Option<Self> {
        let secrets = secrets.split([' ', ',']).filter(|secret| !secret.is_empty());
        let keys = secrets.map(|secret| {
            let key = BASE64.decode(secret.strip_prefix("whsec_")?).ok()?;
            (MIN_KEY..=64).contains(&key.len()).then_some(key)
        });
        let keys = keys.collect::<Option<Vec<_>>>()?;
        (!keys.is_empty()).then_some(Self(keys))
    }

    /// Returns the headers of a message: `webhook-id`, `webhook-timestamp` and `webhook-signature`.
    pub fn headers(&self, id: &str, now: Timestamp, body: &str) -> [(&'static str, String); 3] {
        let seconds = now.millis() / 1000;
        let signatures: Vec<String> = self.0.iter().map(|key| signature(key, id, seconds, body)).collect();
        [
            ("webhook-id", id.to_owned()),
            ("webhook-timestamp", seconds.to_string()),
            ("webhook-signature", signatures.join(" ")),
        ]
    }
}

impl std::fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keys({})", self.0.len())
    }
}

/// Returns `v1,` and the base64 of the HMAC-SHA256 of `id.timestamp.body`.
pub fn signature(key: &[u8], id: &str, seconds: i64, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let tag = hmac::sign(&key, format!("{id}.{seconds}.{body}").as_bytes());
    format!("v1,{}", BASE64.encode(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example from the specification.
    #[test]
    fn a_signature_is_that_of_standard_webhooks() {
        let key = BASE64.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = signature(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn what_is_no_secret_is_not_read_and_two_sign_both() {
        for wrong in ["", " ", "abc", "whsec_abc", "whsec_YWJj", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw abc"] {
            assert!(SigningKeys::read(wrong).is_none(), "{wrong}");
        }
        let two = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
        let [_, _, (_, signatures)] = SigningKeys::read(two).unwrap().headers("m", Timestamp::default(), "{}");
        assert_eq!(signatures.split(' ').count(), 2);
    }
}
