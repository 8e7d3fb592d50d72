//! Signing in by an identity provider, as the login page and the server speak of it.

use serde::{Deserialize, Serialize};

/// Where a browser begins to sign in; `?next=` names the page to show afterwards.
pub const BEGIN: &str = "/api/v1/session/oidc";

/// `GET /api/v1/session`: how people may log in, beside a password or a link.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoginWays {
    /// What the identity provider is called, as in "Sign in with …"; none: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub single_sign_on: Option<String>,
}

/// Why somebody came back from the identity provider and was not let in: `trouble` in the query of the login page. The
/// provider's own words are never among them, since whoever makes a link could put theirs there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// It was not begun in this browser, or took too long, or was ended already.
    Attempt,
    /// The person, or the provider, said no.
    Denied,
    /// The provider cannot be reached, or does not answer as it should.
    Provider,
    /// What the provider answered cannot be trusted.
    Token,
    /// The provider does not say what is needed to know the person here.
    Claims,
    /// None of the person's groups lets them in.
    Groups,
    /// Nobody here is known by this account, and nobody is added by signing in.
    Unknown,
    /// The name is that of somebody else here.
    Taken,
    /// The person may no longer log in.
    Inactive,
    /// There is no identity provider.
    Off,
    /// Too many attempts, or the database is away.
    Busy,
}

impl Trouble {
    const ALL: [(Self, &str); 11] = [
        (Self::Attempt, "attempt"),
        (Self::Denied, "denied"),
        (Self::Provider, "provider"),
        (Self::Token, "token"),
        (Self::Claims, "claims"),
        (Self::Groups, "groups"),
        (Self::Unknown, "unknown"),
        (Self::Taken, "taken"),
        (Self::Inactive, "inactive"),
        (Self::Off, "off"),
        (Self::Busy, "busy"),
    ];

    /// The word in the query.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(trouble, _)| *trouble == self).map_or("provider", |(_, word)| word)
    }

    /// What a word in the query means.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == word).map(|(trouble, _)| *trouble)
    }
}

/// Whether `path` leads to a page of this console, and never to another site. Browsers take `\` for `/`, and leave out
/// tabs and line ends, so only what is plainly a path counts.
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

    #[test]
    fn every_trouble_has_a_word_of_its_own() {
        for (trouble, word) in Trouble::ALL {
            assert_eq!((trouble.as_str(), Trouble::of(word)), (word, Some(trouble)));
        }
        assert_eq!(Trouble::of("<script>"), None);
    }
}
