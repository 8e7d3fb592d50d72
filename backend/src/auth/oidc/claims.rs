//! Interprets the claims of an ID token.

use serde_json::Value;
use shared::JsonMap;
use shared::id::Username;
use shared::time::Timestamp;

use super::client::Claims;
use super::{OidcError, Provider};
use crate::auth::user_setup::check_text;
use crate::limits;
use crate::store::ProviderAccount;

/// The maximum length of a subject, by the standard.
const MAX_SUBJECT: usize = 255;

/// The person who has signed in, according to the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The account at the provider, which identifies the person permanently.
    pub account: ProviderAccount,
    /// The username that the person would get here. `None` if the claim is missing or not a valid username.
    pub username: Option<Username>,
    /// The full name of the person.
    pub display_name: Option<String>,
    /// The email address, if the provider has verified it.
    pub email: Option<String>,
    /// The roles by the person's groups. `None` if the settings map no groups, so admins assign roles.
    pub roles: Option<Vec<String>>,
    /// When the person last proved to the provider who they are, if it says so.
    pub authenticated_at: Option<Timestamp>,
    /// Whether the person's groups permit a login.
    pub admitted: bool,
}

impl Provider {
    /// Interprets verified claims.
    pub(super) fn profile(&self, claims: &Claims) -> Result<Profile, OidcError> {
        let settings = &self.checked.settings;
        let others = &claims.additional_claims().0;
        limits::check_map(others).map_err(|exceeded| OidcError::Claim(format!("what can be read: {exceeded}")))?;
        let subject = claims.subject().as_str();
        if subject.is_empty() || subject.len() > MAX_SUBJECT || subject.chars().any(char::is_control) {
            return Err(OidcError::Claim("a usable `sub`".to_owned()));
        }
        let email = claims.email().filter(|_| claims.email_verified() == Some(true)).map(|email| email.to_string());
        let username = match settings.username_claim.as_str() {
            "sub" => Some(subject.to_owned()),
            "preferred_username" => claims.preferred_username().map(|name| name.to_string()),
            "email" => email.clone(),
            other => claim(others, other).and_then(Value::as_str).map(str::to_owned),
        };
        let groups: Vec<String> = match claim(others, &settings.groups_claim) {
            Some(Value::Array(groups)) => groups.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            Some(Value::String(group)) => vec![group.clone()],
            _ => Vec::new(),
        };
        let roles = settings.roles_of(&groups);
        let admitted = match &settings.required_group {
            Some(required) => groups.contains(required),
            None => roles.as_ref().is_none_or(|roles| !roles.is_empty()),
        };
        let shown = |text: &String| !text.trim().is_empty() && check_text("", Some(text)).is_ok();
        Ok(Profile {
            account: ProviderAccount { issuer: self.checked.issuer.as_str().to_owned(), subject: subject.to_owned() },
            username: username.as_deref().and_then(local_username),
            display_name: claims.name().and_then(|name| name.get(None)).map(|name| name.to_string()).filter(shown),
            email: email.filter(shown),
            roles,
            authenticated_at: claims.auth_time().map(|at| Timestamp(at.timestamp_micros())),
            admitted,
        })
    }
}

/// Converts a name to a username: in lower case and, if it is an address, only the part before the `@`. If two people
/// get the same username, the second is refused as for any name that is taken.
fn local_username(name: &str) -> Option<Username> {
    let (name, _) = name.split_once('@').unwrap_or((name, ""));
    name.to_ascii_lowercase().parse().ok()
}

/// Finds a claim by its name, or by the JSON pointer to it.
fn claim<'c>(claims: &'c JsonMap, name: &str) -> Option<&'c Value> {
    let Some(path) = name.strip_prefix('/') else { return claims.get(name) };
    let (first, rest) = path.split_once('/').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let value = claims.get(&first.replace("~1", "/").replace("~0", "~"))?;
    rest.map_or(Some(value), |rest| value.pointer(&format!("/{rest}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_of_the_provider_become_names_of_here() {
        let named = |name: &str| local_username(name).map(|name| name.to_string());
        assert_eq!(named("Nora.Lind").as_deref(), Some("nora.lind"));
        assert_eq!(named("nora@example.org").as_deref(), Some("nora"));
        // The Kelvin sign is not accepted either, although its lower case is `k` in Unicode.
        for wrong in ["", "@example.org", "Nora Lind", "\u{212a}arl", "nöra"] {
            assert_eq!(named(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_claim_is_found_by_name_or_by_pointer() {
        let claims = json!({
            "groups": ["a"], "https://example.org/groups": "b", "realm_access": { "roles": ["c"] }, "a/b": { "c": 1 }
        });
        let claims = claims.as_object().unwrap();
        let found = |name: &str| claim(claims, name).cloned();
        assert_eq!(found("groups"), Some(json!(["a"])));
        assert_eq!(found("https://example.org/groups"), Some(json!("b")));
        assert_eq!(found("/realm_access/roles"), Some(json!(["c"])));
        assert_eq!(found("/groups"), Some(json!(["a"])));
        assert_eq!(found("/a~1b/c"), Some(json!(1)));
        assert_eq!((found("realm_access.roles"), found("/realm_access/none"), found("/")), (None, None, None));
    }
}
