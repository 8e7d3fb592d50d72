//! Interprets the claims of an ID token.

use serde_json::Value;
use shared::JsonMap;
use shared::id::Username;

use super::client::Claims;
use super::{OidcError, Provider};
use crate::auth::user_setup::check_text;
use crate::limits;
use crate::store::ProviderAccount;

/// The longest subject, by the standard.
const MAX_SUBJECT: usize = 255;

/// Who the provider says has signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// By what they are known for ever.
    pub account: ProviderAccount,
    /// The name that they would have here, where the claim of it is one.
    pub username: Option<Username>,
    /// Their full name.
    pub display_name: Option<String>,
    /// Their address, where the provider says that it is theirs.
    pub email: Option<String>,
    /// The roles that their groups give; none: roles are given here.
    pub roles: Option<Vec<String>>,
    /// Whether their groups let them in.
    pub admitted: bool,
}

impl Provider {
    /// What verified claims mean.
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
            admitted,
        })
    }
}

/// A name as names are here: in small letters, and of an address what stands before the `@`. Two people may come to one
/// name so: the second is refused, like everybody whose name is taken.
fn local_username(name: &str) -> Option<Username> {
    let (name, _) = name.split_once('@').unwrap_or((name, ""));
    name.to_ascii_lowercase().parse().ok()
}

/// A claim by its name, or by the JSON pointer to it.
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
        // Not even the sign for kelvin, which is a small k to Unicode.
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
