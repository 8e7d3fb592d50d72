//! Single sign-on by OpenID Connect: the authorization code flow with PKCE (OpenID Connect Core 1.0 §3.1, RFC 7636, RFC
//! 9207) against the one provider of the settings. Owns the protocol with the provider and the interpretation of its
//! claims; the commit that starts the session decides who is let in.

mod claims;
mod client;
mod configuration;
mod pending_login;
mod settings;

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use openidconnect::core::{
    CoreAuthenticationFlow, CoreClientAuthMethod, CoreErrorResponseType, CoreJwsSigningAlgorithm,
};
use openidconnect::{
    AccessTokenHash, AuthType, AuthorizationCode, ClaimsVerificationError, ClientId, CsrfToken, IdTokenVerifier, Nonce,
    OAuth2TokenResponse as _, PkceCodeChallenge, PkceCodeVerifier, RequestTokenError, Scope,
    SignatureVerificationError, TokenResponse as _,
};

use self::client::{Claims, Configuration, HttpClient, OidcClient, SignedToken};
use self::configuration::{ConfigurationCache, causes};
use self::pending_login::CookieKey;
use super::digest;
use crate::clock::SharedClock;

pub use self::claims::Profile;
pub use self::pending_login::{LIFE, PendingLogin};
pub use self::settings::{CheckedSettings, OidcSettings, SettingsError};

/// The accepted signature algorithms of ID tokens: those with a key pair of the provider. Never `none`, and never an
/// HMAC with the client's secret.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// The reason why a login failed. The messages are for the server's log, and contain no code, token or secret.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    /// The answer does not belong to an attempt that this browser began, or the attempt is too old.
    #[error("this login was begun in another browser, or took too long")]
    Attempt,
    /// The person or the provider refused.
    #[error("the provider refused: {0}")]
    Refused(String),
    /// The provider cannot be reached, or does not speak OpenID Connect.
    #[error("the provider cannot be reached: {0}")]
    Unreachable(String),
    /// The response is not valid: issuer, signature, audience, expiry or nonce.
    #[error("the provider's answer cannot be trusted: {0}")]
    Token(String),
    /// The provider did not send a claim that is needed to identify the person.
    #[error("the provider did not send {0}; check the scopes and claims in the settings")]
    Claim(String),
}

/// The parameters with which the provider sent the browser back.
#[derive(Default)]
pub struct Returned {
    /// The `state` of the attempt.
    pub state: Option<String>,
    /// The code to exchange for the ID token.
    pub code: Option<String>,
    /// The error in place of a code.
    pub error: Option<String>,
    /// The issuer that sends the person back (RFC 9207).
    pub issuer: Option<String>,
}

/// The provider of the settings.
pub struct Provider {
    checked: CheckedSettings,
    key: CookieKey,
    http: HttpClient,
    clock: SharedClock,
    configuration: ConfigurationCache,
}

impl Provider {
    /// Creates the provider of these settings. `key` encrypts the cookies of sign-ins in progress, and is the same on
    /// every server. The provider is not contacted before someone signs in, so that the server starts even if the
    /// provider is down.
    pub fn new(checked: CheckedSettings, key: &[u8; 32], clock: SharedClock) -> reqwest::Result<Self> {
        let (key, http) = (CookieKey::new(key), HttpClient::new()?);
        Ok(Self { checked, key, http, clock, configuration: ConfigurationCache::default() })
    }

    /// Returns the name of the provider for the login page.
    pub fn label(&self) -> &str {
        &self.checked.settings.label
    }

    /// Whether a person who signs in for the first time is added as a user.
    pub fn creates_people(&self) -> bool {
        self.checked.settings.create_people
    }

    /// Whether browsers return over https.
    pub fn is_https(&self) -> bool {
        self.checked.redirect.url().scheme() == "https"
    }

    /// Begins a sign-in. Returns the URL to send the browser to, and the cookie that it keeps meanwhile. With
    /// `max_age`, the provider is to ask the person who they are unless they told it that recently (OpenID Connect Core
    /// §3.1.2.1).
    pub async fn begin(&self, next: Option<String>, max_age: Option<Duration>) -> Result<(String, String), OidcError> {
        let client = self.client(&*self.configuration().await?);
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let scopes = self.checked.settings.scopes.iter().filter(|scope| *scope != "openid");
        let request = client
            .authorize_url(CoreAuthenticationFlow::AuthorizationCode, CsrfToken::new_random, Nonce::new_random)
            .add_scopes(scopes.cloned().map(Scope::new))
            .set_pkce_challenge(challenge);
        let request = match max_age {
            Some(max_age) => request.set_max_age(max_age),
            None => request,
        };
        let (url, state, nonce) = request.url();
        let begun = PendingLogin {
            state: state.into_secret(),
            nonce: nonce.secret().clone(),
            verifier: verifier.into_secret(),
            at: self.clock.now().0,
            next,
        };
        Ok((url.into(), self.key.seal(&begun, &*self.clock)))
    }

    /// Decrypts the cookie of a sign-in. `None` if it is not valid or too old.
    pub fn begun(&self, cookie: &str) -> Option<PendingLogin> {
        self.key.open(cookie, self.clock.now())
    }

    /// Completes a sign-in with the parameters that the browser brought back. Returns the person's profile.
    pub async fn finish(&self, begun: &PendingLogin, returned: Returned) -> Result<Profile, OidcError> {
        let Returned { state, code, error, issuer } = returned;
        // Digests are compared, so that the duration reveals nothing about the state.
        if digest(&state.unwrap_or_default()) != begun.digest() {
            return Err(OidcError::Attempt);
        }
        let configuration = self.configuration().await?;
        let names_itself = configuration.additional_metadata().authorization_response_iss_parameter_supported;
        if issuer.as_ref().map_or(names_itself, |issuer| *issuer != *self.checked.issuer.as_str()) {
            return Err(OidcError::Token("the response names a different issuer".to_owned()));
        }
        if let Some(error) = error {
            return Err(OidcError::Refused(plain(&error)));
        }
        let code = code.ok_or_else(|| OidcError::Refused("no code".to_owned()))?;
        let client = self.client(&configuration);
        let answer = client
            .exchange_code(AuthorizationCode::new(code))
            .map_err(|error| OidcError::Unreachable(error.to_string()))?
            .set_pkce_verifier(PkceCodeVerifier::new(begun.verifier.clone()))
            .request_async(&self.http)
            .await
            .map_err(|error| match error {
                RequestTokenError::ServerResponse(response) => OidcError::Refused(match response.error() {
                    CoreErrorResponseType::Extension(other) => plain(other),
                    known => known.to_string(),
                }),
                // Without the body, which may contain a token.
                RequestTokenError::Parse(error, _) => OidcError::Unreachable(format!("its answer: {}", error.path())),
                other => OidcError::Unreachable(causes(&other)),
            })?;
        let token = answer.id_token().ok_or_else(|| OidcError::Token("it has no ID token".to_owned()))?;
        let claims = self.verified(token, answer.access_token(), &begun.nonce, configuration).await?;
        self.profile(&claims)
    }

    /// Verifies a token and returns its claims. If none of the known keys matches, the provider may have new ones.
    async fn verified(
        &self,
        token: &SignedToken,
        access_token: &openidconnect::AccessToken,
        nonce: &str,
        configuration: Arc<Configuration>,
    ) -> Result<Claims, OidcError> {
        let nonce = Nonce::new(nonce.to_owned());
        let mut configuration = configuration;
        let mut verifier = self.verifier(&configuration);
        let mut claims = token.claims(&verifier, &nonce);
        if matches!(
            claims,
            Err(ClaimsVerificationError::SignatureVerification(SignatureVerificationError::NoMatchingKey))
        ) {
            configuration = self.configuration.refreshed(&self.checked.issuer, &self.http, self.clock.now()).await?;
            verifier = self.verifier(&configuration);
            claims = token.claims(&verifier, &nonce);
        }
        let claims = claims.map_err(|error| OidcError::Token(causes(&error)))?;
        // The access token must belong to this response (OpenID Connect Core §3.1.3.8).
        if let Some(expected) = claims.access_token_hash() {
            let broken = |error: &dyn std::fmt::Display| OidcError::Token(error.to_string());
            let algorithm = token.signing_alg().map_err(|error| broken(&error))?;
            let key = token.signing_key(&verifier).map_err(|error| broken(&error))?;
            let actual = AccessTokenHash::from_token(access_token, algorithm, key).map_err(|error| broken(&error))?;
            if actual != *expected {
                return Err(OidcError::Token("the access token does not belong to this response".to_owned()));
            }
        }
        Ok(claims.clone())
    }

    /// Returns a verifier of issuer, audience, expiry and signature. It does not have the client's secret, so an HMAC
    /// is never accepted.
    fn verifier(&self, configuration: &Configuration) -> IdTokenVerifier<'_, openidconnect::core::CoreJsonWebKey> {
        let now = u64::try_from(self.clock.now().0).unwrap_or(0);
        let client_id = ClientId::new(self.checked.settings.client_id.clone());
        IdTokenVerifier::new_public_client(client_id, self.checked.issuer.clone(), configuration.jwks().clone())
            .set_allowed_algs(ALGORITHMS)
            .set_time_fn(move || (UNIX_EPOCH + Duration::from_micros(now)).into())
    }

    async fn configuration(&self) -> Result<Arc<Configuration>, OidcError> {
        self.configuration.get(&self.checked.issuer, &self.http, self.clock.now()).await
    }

    fn client(&self, configuration: &Configuration) -> OidcClient {
        let client_id = ClientId::new(self.checked.settings.client_id.clone());
        let methods = configuration.token_endpoint_auth_methods_supported();
        let in_body = methods.is_some_and(|methods| {
            methods.contains(&CoreClientAuthMethod::ClientSecretPost)
                && !methods.contains(&CoreClientAuthMethod::ClientSecretBasic)
        });
        OidcClient::from_provider_metadata(configuration.clone(), client_id, self.checked.secret.clone())
            .set_redirect_uri(self.checked.redirect.clone())
            .set_auth_type(if in_body { AuthType::RequestBody } else { AuthType::BasicAuth })
    }
}

/// Returns the provider's error code, or a placeholder if it does not look like a code.
fn plain(error: &str) -> String {
    let is_code = error.len() <= 50 && error.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if is_code { error.to_owned() } else { "an error with an invalid code".to_owned() }
}
