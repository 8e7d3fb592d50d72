//! The settings of single sign-on: the table `[oidc]` of the settings file, and the client's secret beside it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use openidconnect::{ClientSecret, IssuerUrl, RedirectUrl};
use reqwest::Url;
use serde::Deserialize;

use crate::auth::user_setup::{check_roles, check_text};

const SECRET: &str = "COUNTERSIGN_OIDC_SECRET";
/// The path of this server to which the provider sends people back.
const CALLBACK: &str = "/api/v1/session/oidc/callback";

/// The settings of one identity provider.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OidcSettings {
    /// The issuer, such as `https://login.example.org/realms/main`. Its configuration is found below this URL.
    pub issuer: String,
    /// The id of this server as a client of the provider.
    pub client_id: String,
    /// A file with the client's secret, used if `COUNTERSIGN_OIDC_SECRET` is not set. Without either, the server is a
    /// public client, which has no secret.
    pub client_secret_file: Option<PathBuf>,
    /// The name of the provider on the login page, as in "Log in with …".
    #[serde(default = "default_label")]
    pub label: String,
    /// The scopes to request in addition to `openid`.
    #[serde(default = "default_scopes")]
    pub scopes: Vec<String>,
    /// The claim that gives people their username when they sign in for the first time: `preferred_username`, `sub`, or
    /// another.
    #[serde(default = "default_username_claim")]
    pub username_claim: String,
    /// The claim that lists the groups of a person. A name that begins with `/` is a JSON pointer.
    #[serde(default = "default_groups_claim")]
    pub groups_claim: String,
    /// The group that everyone who signs in must have. `None`: a group of `roles`, if there are any.
    pub required_group: Option<String>,
    /// Whether a person who signs in for the first time is added as a user.
    #[serde(default = "yes")]
    pub create_people: bool,
    /// The roles that each group gives. If empty, admins assign roles.
    #[serde(default)]
    pub roles: BTreeMap<String, Vec<String>>,
}

fn default_label() -> String {
    "single sign-on".to_owned()
}

fn default_scopes() -> Vec<String> {
    ["profile", "email"].map(str::to_owned).to_vec()
}

fn default_username_claim() -> String {
    "preferred_username".to_owned()
}

fn default_groups_claim() -> String {
    "groups".to_owned()
}

fn yes() -> bool {
    true
}

/// The reason why the settings of single sign-on are not valid.
#[derive(Debug, thiserror::Error)]
#[error("[oidc] {setting}: {why}")]
pub struct SettingsError {
    setting: &'static str,
    why: String,
}

fn wrong(setting: &'static str, why: impl Into<String>) -> SettingsError {
    SettingsError { setting, why: why.into() }
}

/// Settings that have been checked.
#[derive(Debug, Clone)]
pub struct CheckedSettings {
    pub(super) settings: OidcSettings,
    pub(super) issuer: IssuerUrl,
    pub(super) redirect: RedirectUrl,
    pub(super) secret: Option<ClientSecret>,
}

impl OidcSettings {
    /// Checks all settings. `public` is the URL at which browsers reach this server; `variable` reads the environment.
    pub fn check(
        self,
        public: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<CheckedSettings, SettingsError> {
        let issuer = IssuerUrl::new(self.issuer.clone()).map_err(|error| wrong("issuer", error.to_string()))?;
        if !is_private(issuer.url()) {
            return Err(wrong("issuer", format!("`{}` must begin with https://", self.issuer)));
        }
        if issuer.url().query().is_some() || issuer.url().fragment().is_some() {
            return Err(wrong("issuer", "it has no query and no fragment"));
        }
        let address = Url::parse(public).map_err(|error| wrong("redirect", format!("`{public}`: {error}")))?;
        if !is_private(&address) {
            let why = "the provider sends people back to the first of `origins`, which must begin with https://";
            return Err(wrong("redirect", format!("{why}, not `{public}`")));
        }
        let redirect = format!("{}{CALLBACK}", public.trim_end_matches('/'));
        let redirect = RedirectUrl::new(redirect).map_err(|error| wrong("redirect", error.to_string()))?;
        for (setting, text) in [
            ("client_id", &self.client_id),
            ("label", &self.label),
            ("username_claim", &self.username_claim),
            ("groups_claim", &self.groups_claim),
        ] {
            check_words(setting, text)?;
        }
        self.required_group.iter().try_for_each(|group| check_words("required_group", group))?;
        for scope in &self.scopes {
            if scope.is_empty() || !scope.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(wrong("scopes", format!("`{scope}` is not a scope")));
            }
        }
        for (group, roles) in &self.roles {
            check_roles(roles.clone()).map_err(|error| wrong("roles", format!("{group}: {error}")))?;
        }
        let secret = self.secret(variable)?.map(ClientSecret::new);
        Ok(CheckedSettings { settings: self, issuer, redirect, secret })
    }

    fn secret(&self, variable: impl Fn(&str) -> Option<String>) -> Result<Option<String>, SettingsError> {
        let of_environment =
            variable(SECRET).map(|secret| secret.trim().to_owned()).filter(|secret| !secret.is_empty());
        let (None, Some(path)) = (&of_environment, &self.client_secret_file) else { return Ok(of_environment) };
        let at = |why: String| wrong("client_secret_file", format!("{}: {why}", path.display()));
        let secret = std::fs::read_to_string(path).map_err(|error| at(error.to_string()))?.trim().to_owned();
        if secret.is_empty() { Err(at("it is empty".to_owned())) } else { Ok(Some(secret)) }
    }

    /// Returns the roles that these groups give, sorted and without duplicates. `None` if admins assign roles.
    pub(super) fn roles_of(&self, groups: &[String]) -> Option<Vec<String>> {
        let given = groups.iter().filter_map(|group| self.roles.get(group)).flatten();
        let mut roles: Vec<String> = given.cloned().collect();
        roles.sort_unstable();
        roles.dedup();
        (!self.roles.is_empty()).then_some(roles)
    }
}

/// Whether nobody on the way can change the traffic to this URL. Whoever could would sign in as anyone.
pub(super) fn is_private(url: &Url) -> bool {
    let is_local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    url.scheme() == "https" || (url.scheme() == "http" && is_local)
}

fn check_words(setting: &'static str, text: &str) -> Result<(), SettingsError> {
    if text.trim().is_empty() {
        return Err(wrong(setting, "it is empty"));
    }
    check_text(setting, Some(text)).map_err(|error| wrong(setting, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: &str = "https://reviews.example.org";

    fn settings(more: &str) -> OidcSettings {
        toml::from_str(&format!("issuer = \"https://login.example.org\"\nclient_id = \"countersign\"\n{more}")).unwrap()
    }

    fn check(settings: OidcSettings, public: &str) -> Result<CheckedSettings, String> {
        settings.check(public, |_| None).map_err(|error| error.to_string())
    }

    #[test]
    fn what_does_not_hold_is_named() {
        check(settings(""), PUBLIC).unwrap();
        check(settings(""), "http://127.0.0.1:8080/").unwrap();
        for (more, name) in [
            ("label = \"\"", "[oidc] label"),
            ("label = \"a\\nb\"", "[oidc] label"),
            ("scopes = [\"two words\"]", "[oidc] scopes"),
            ("groups_claim = \" \"", "[oidc] groups_claim"),
            ("required_group = \"\"", "[oidc] required_group"),
            ("client_secret_file = \"/nowhere/at/all\"", "[oidc] client_secret_file: /nowhere/at/all"),
            ("[roles]\neditors = [\"No Role\"]", "[oidc] roles: editors"),
        ] {
            let error = check(settings(more), PUBLIC).unwrap_err();
            assert!(error.starts_with(name), "{more}: {error}");
        }
        for issuer in ["http://login.example.org", "ftp://127.0.0.1", "login.example.org", "https://x.example/?a=b"] {
            let wrong = OidcSettings { issuer: issuer.to_owned(), ..settings("") };
            let error = check(wrong, PUBLIC).unwrap_err();
            assert!(error.starts_with("[oidc] issuer"), "{issuer}: {error}");
        }
        let error = check(settings(""), "http://reviews.example.org").unwrap_err();
        assert!(error.starts_with("[oidc] redirect") && error.contains("origins"), "{error}");
        let unknown = "issuer = \"https://x.example\"\nclient_id = \"a\"\nclient_secret = \"s\"";
        assert!(toml::from_str::<OidcSettings>(unknown).unwrap_err().to_string().contains("client_secret"));
    }

    #[test]
    fn the_secret_is_of_the_environment_or_else_of_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        let named = OidcSettings { client_secret_file: Some(file.clone()), ..settings("") };
        std::fs::write(&file, "of the file\n").unwrap();
        assert_eq!(named.secret(|_| None).unwrap().as_deref(), Some("of the file"));
        let variable = |name: &str| (name == SECRET).then(|| "of the environment ".to_owned());
        assert_eq!(named.secret(variable).unwrap().as_deref(), Some("of the environment"));
        std::fs::write(&file, "\n").unwrap();
        assert!(named.secret(|_| None).is_err());
        assert_eq!(settings("").secret(|_| None).unwrap(), None);
    }

    #[test]
    fn groups_give_roles_once_and_no_map_gives_none() {
        let some = settings("[roles]\na = [\"reviewer\", \"editor\"]\nb = [\"developer\", \"reviewer\"]");
        let groups = ["b", "unknown", "a"].map(str::to_owned);
        assert_eq!(some.roles_of(&groups).unwrap(), ["developer", "editor", "reviewer"]);
        assert_eq!(some.roles_of(&[]).unwrap(), Vec::<String>::new());
        assert_eq!(settings("").roles_of(&groups), None);
    }
}
