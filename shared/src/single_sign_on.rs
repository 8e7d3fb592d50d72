//! Single sign-on, as shared by the login page and the server.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// The path at which a browser begins a login with the provider; `?next=` names the page to show afterwards.
pub const BEGIN: &str = "/api/v1/session/oidc";

/// `GET /api/v1/session`: the login methods besides passwords and links.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoginWays {
    /// The name of the identity provider, as in "Log in with …", if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub single_sign_on: Option<String>,
}

/// The reason for a failed login: `trouble` in the query of the login page. It never contains the provider's own
/// words, because anyone could put their own words into a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Trouble {
    /// The login was begun in another browser, took too long, or was already completed.
    Attempt,
    /// The person or the provider refused.
    Denied,
    /// The provider cannot be reached, or does not answer correctly.
    Provider,
    /// The provider's answer cannot be trusted.
    Token,
    /// The provider's answer lacks the data that identify the person.
    Claims,
    /// None of the person's groups may log in.
    Groups,
    /// There is no user with this account, and a login does not add users.
    Unknown,
    /// The username belongs to someone else.
    Taken,
    /// The person may no longer log in.
    Inactive,
    /// There is no identity provider.
    Off,
    /// Too many attempts, or the database is not available.
    Busy,
}

/// Whether `path` leads to a page of this console, and never to another site. Browsers treat `\` as `/` and skip tabs
/// and line breaks, so only unambiguous paths are accepted.
pub fn is_own_page(path: &str) -> bool {
    path.starts_with('/')
        && !path.starts_with("//")
        && path.len() <= 1_000
        && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
        && !["/login", "/api/"].iter().any(|other| path.starts_with(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signing_in_leads_to_no_other_site() {
        for own in ["/", "/inbox", "/runs/1?a=%2F&b=//x#c"] {
            assert!(is_own_page(own), "{own}");
        }
        for other in [
            "",
            "inbox",
            "//evil.example",
            "/\\evil.example",
            "/\t/evil.example",
            "/\n/evil.example",
            "https://evil.example",
            "/login?next=/x",
            "/api/v1/session/oidc",
            "/über",
        ] {
            assert!(!is_own_page(other), "{other}");
        }
        assert!(!is_own_page(&format!("/{}", "a".repeat(1_000))));
    }
}
