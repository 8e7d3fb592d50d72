//! The types for `openidconnect`, and its requests: confidential (https, or this machine), without redirects, bounded
//! in time and size.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use openidconnect::core::{
    CoreAuthDisplay, CoreAuthPrompt, CoreClaimName, CoreClaimType, CoreClientAuthMethod, CoreErrorResponseType,
    CoreGenderClaim, CoreGrantType, CoreJsonWebKey, CoreJweContentEncryptionAlgorithm, CoreJweKeyManagementAlgorithm,
    CoreJwsSigningAlgorithm, CoreResponseMode, CoreResponseType, CoreRevocableToken, CoreRevocationErrorResponse,
    CoreSubjectIdentifierType, CoreTokenIntrospectionResponse, CoreTokenType,
};
use openidconnect::{
    AdditionalClaims, AdditionalProviderMetadata, AsyncHttpClient, Client, EmptyExtraTokenFields, EndpointMaybeSet,
    EndpointNotSet, EndpointSet, HttpRequest, HttpResponse, IdToken, IdTokenClaims, IdTokenFields, ProviderMetadata,
    StandardErrorResponse, StandardTokenResponse,
};
use serde::{Deserialize, Serialize};
use shared::JsonMap;

use super::settings::is_private;
use crate::http_client::{self, USER_AGENT};

const TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum length of a response, in bytes.
const MAX_ANSWER: usize = 1024 * 1024;

/// The claims of an ID token in addition to the standard ones.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct OtherClaims(pub JsonMap);

impl AdditionalClaims for OtherClaims {}

/// The provider's metadata in addition to the standard ones (RFC 9207).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct OtherMetadata {
    /// Whether the provider identifies itself with `iss` when it sends people back.
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
}

impl AdditionalProviderMetadata for OtherMetadata {}

/// The provider's configuration, with its keys.
pub(super) type Configuration = ProviderMetadata<
    OtherMetadata,
    CoreAuthDisplay,
    CoreClientAuthMethod,
    CoreClaimName,
    CoreClaimType,
    CoreGrantType,
    CoreJweContentEncryptionAlgorithm,
    CoreJweKeyManagementAlgorithm,
    CoreJsonWebKey,
    CoreResponseMode,
    CoreResponseType,
    CoreSubjectIdentifierType,
>;

/// An ID token, as it was sent.
pub(super) type SignedToken =
    IdToken<OtherClaims, CoreGenderClaim, CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm>;

pub(super) type Claims = IdTokenClaims<OtherClaims, CoreGenderClaim>;

type TokenFields = IdTokenFields<
    OtherClaims,
    EmptyExtraTokenFields,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJwsSigningAlgorithm,
>;

/// A client whose endpoints come from the provider's configuration.
pub(super) type OidcClient = Client<
    OtherClaims,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    StandardTokenResponse<TokenFields, CoreTokenType>,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

pub(super) struct HttpClient(reqwest::Client);

#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    #[error(transparent)]
    Request(#[from] reqwest::Error),
    #[error("the answer cannot be read: {0}")]
    Answer(#[from] openidconnect::http::Error),
    #[error("the answer is larger than {MAX_ANSWER} bytes")]
    TooLarge,
    #[error("`{0}` is not https")]
    Insecure(String),
}

impl HttpClient {
    pub fn new() -> reqwest::Result<Self> {
        http_client::builder().no_proxy().timeout(TIMEOUT).user_agent(USER_AGENT).build().map(Self)
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let request: reqwest::Request = request.try_into()?;
        if !is_private(request.url()) {
            return Err(HttpError::Insecure(request.url().origin().ascii_serialization()));
        }
        let answer = self.0.execute(request).await?;
        let mut response = openidconnect::http::Response::builder().status(answer.status());
        for (name, value) in answer.headers() {
            response = response.header(name, value);
        }
        let body = http_client::whole(answer, MAX_ANSWER).await?.ok_or(HttpError::TooLarge)?;
        Ok(response.body(body)?)
    }
}

impl<'c> AsyncHttpClient<'c> for HttpClient {
    type Error = HttpError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.send(request))
    }
}
