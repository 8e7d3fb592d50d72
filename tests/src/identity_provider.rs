//! An OpenID Connect provider on loopback, as strict as a real one, that can be told to misbehave.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Form, Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as BASE64};
use hmac::{Hmac, KeyInit as _, Mac as _};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The id of the one client that the provider knows.
pub const CLIENT: &str = "countersign";
/// The secret of that client, with a character that must be encoded in a header.
pub const SECRET: &str = "the secret";

/// A mistake that the provider makes on purpose. "The token" is the ID token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The token is signed with a foreign key, under the id of the provider's own key.
    ForeignKey,
    /// The token is not signed (`alg: none`).
    NoSignature,
    /// The token is signed with the client's secret (`alg: HS256`).
    ClientSecret,
    /// The token is issued for another client.
    OtherAudience,
    /// The token is issued for this client and another one.
    MoreAudiences,
    /// The token names another issuer.
    OtherIssuer,
    /// The token has the nonce of another login attempt.
    OtherNonce,
    /// The token has no nonce.
    NoNonce,
    /// The token has expired.
    Expired,
    /// The token has the hash (`at_hash`) of another access token.
    OtherAccessToken,
    /// The redirect back to the client names another issuer (RFC 9207).
    OtherSender,
    /// The redirect back to the client names no issuer, though the provider's configuration promises one.
    NoSender,
    /// The person refuses the login (`access_denied`).
    Denied,
    /// The provider has not verified the person's email address.
    UnverifiedEmail,
    /// Every request is answered with 503.
    Down,
}

/// A person who logs in at the provider.
#[derive(Debug, Clone)]
pub struct Person {
    /// The claim `sub`, by which the provider identifies the person.
    pub subject: String,
    /// The claim `preferred_username`; also the local part of the email address.
    pub username: String,
    /// The claim `groups`.
    pub groups: Vec<String>,
    /// How many seconds ago the person proved who they are, if the provider says so (`auth_time`).
    pub authenticated_ago: Option<u64>,
}

impl Person {
    /// A person with these claims.
    pub fn new(subject: &str, username: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        Self { subject: subject.to_owned(), username: username.to_owned(), groups, authenticated_ago: None }
    }
}

struct SigningKey {
    id: String,
    pair: EcdsaKeyPair,
}

struct Inner {
    issuer: String,
    key: Mutex<SigningKey>,
    foreign: SigningKey,
    /// The parameters of the authorization request, by the code that was issued for it.
    codes: Mutex<HashMap<String, HashMap<String, String>>>,
    person: Mutex<Person>,
    fault: Mutex<Option<Fault>>,
    /// The paths of all requests so far.
    asked: Mutex<Vec<String>>,
}

/// A running provider on a free port of this machine.
pub struct IdentityProvider {
    /// The issuer, which is also the URL of the provider.
    pub issuer: String,
    inner: Arc<Inner>,
}

impl SigningKey {
    fn new(id: &str) -> Self {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).expect("a key");
        Self { id: id.to_owned(), pair }
    }
}

fn held<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn random() -> String {
    format!("{:032x}", rand::random::<u128>())
}

impl IdentityProvider {
    /// Starts a provider at which this person logs in.
    pub async fn start(person: Person) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let issuer = format!("http://{}", listener.local_addr().expect("it has an address"));
        let inner = Arc::new(Inner {
            issuer: issuer.clone(),
            key: Mutex::new(SigningKey::new("1")),
            foreign: SigningKey::new("1"),
            codes: Mutex::default(),
            person: Mutex::new(person),
            fault: Mutex::default(),
            asked: Mutex::default(),
        });
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(configuration))
            .route("/keys", get(keys))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .layer(from_fn_with_state(Arc::clone(&inner), watch))
            .with_state(Arc::clone(&inner));
        tokio::spawn(axum::serve(listener, router).into_future());
        Self { issuer, inner }
    }

    /// Makes this mistake in every answer from now on; `None` ends that.
    pub fn fail_with(&self, fault: Option<Fault>) {
        *held(&self.inner.fault) = fault;
    }

    /// Lets this person log in from now on.
    pub fn seat(&self, person: Person) {
        *held(&self.inner.person) = person;
    }

    /// Replaces the signing key by a new one with this id.
    pub fn change_key(&self, id: &str) {
        *held(&self.inner.key) = SigningKey::new(id);
    }

    /// Returns the number of requests to a path so far.
    pub fn requests_to(&self, path: &str) -> usize {
        held(&self.inner.asked).iter().filter(|asked| *asked == path).count()
    }
}

async fn watch(State(inner): State<Arc<Inner>>, request: Request, next: Next) -> Response {
    held(&inner.asked).push(request.uri().path().to_owned());
    if *held(&inner.fault) == Some(Fault::Down) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    next.run(request).await
}

async fn configuration(State(inner): State<Arc<Inner>>) -> Json<Value> {
    let issuer = &inner.issuer;
    Json(json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/keys"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        // The server must refuse `HS256` and `none`, though the provider offers them.
        "id_token_signing_alg_values_supported": ["ES256", "HS256", "none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    }))
}

async fn keys(State(inner): State<Arc<Inner>>) -> Json<Value> {
    let key = held(&inner.key);
    // An uncompressed point: 4, x, y.
    let (x, y) = key.pair.public_key().as_ref()[1..].split_at(32);
    let key = json!({ "kty": "EC", "use": "sig", "alg": "ES256", "kid": key.id, "crv": "P-256",
        "x": BASE64.encode(x), "y": BASE64.encode(y) });
    Json(json!({ "keys": [key] }))
}

/// Logs the person in without a page, and redirects back to the client; unless they proved
/// who they are within `max_age`, they do so now. Answers 400 to a malformed request.
async fn authorize(State(inner): State<Arc<Inner>>, Query(asked): Query<HashMap<String, String>>) -> Response {
    let is = |name: &str, value: &str| asked.get(name).is_some_and(|given| given == value);
    let has = |name: &str| asked.get(name).is_some_and(|given| given.len() >= 20);
    let scopes: Vec<&str> = asked.get("scope").map(|scope| scope.split(' ').collect()).unwrap_or_default();
    if !is("response_type", "code")
        || !is("client_id", CLIENT)
        || !is("code_challenge_method", "S256")
        || !["code_challenge", "state", "nonce", "redirect_uri"].into_iter().all(has)
        || !scopes.contains(&"openid")
    {
        return (StatusCode::BAD_REQUEST, format!("{asked:?}")).into_response();
    }
    if let Some(max_age) = asked.get("max_age").and_then(|age| age.parse::<u64>().ok()) {
        let person = &mut *held(&inner.person);
        person.authenticated_ago = Some(person.authenticated_ago.filter(|ago| *ago <= max_age).unwrap_or(0));
    }
    let fault = *held(&inner.fault);
    let code = random();
    let mut answer = match fault {
        Some(Fault::Denied) => {
            format!("error=access_denied&error_description=%3Cb%3Eno%3C/b%3E&state={}", asked["state"])
        }
        _ => format!("code={code}&state={}&session_state=x", asked["state"]),
    };
    match fault {
        Some(Fault::NoSender) => {}
        Some(Fault::OtherSender) => answer.push_str("&iss=http://127.0.0.1:1"),
        _ => answer = format!("{answer}&iss={}", inner.issuer),
    }
    let back = format!("{}?{answer}", asked["redirect_uri"]);
    held(&inner.codes).insert(code, asked);
    (StatusCode::FOUND, [(header::LOCATION, back)]).into_response()
}

async fn token(
    State(inner): State<Arc<Inner>>,
    headers: HeaderMap,
    Form(sent): Form<HashMap<String, String>>,
) -> Response {
    let refuse = |error: &str| {
        let words = json!({ "error": error, "error_description": "what only the server's log may hold, if anything" });
        (StatusCode::BAD_REQUEST, Json(words)).into_response()
    };
    let client = format!("Basic {}", STANDARD.encode(format!("{CLIENT}:{}", SECRET.replace(' ', "+"))));
    if headers.get(header::AUTHORIZATION).is_none_or(|given| given.as_bytes() != client.as_bytes()) {
        return refuse("invalid_client");
    }
    // A code can be redeemed once.
    let Some(asked) = sent.get("code").and_then(|code| held(&inner.codes).remove(code)) else {
        return refuse("invalid_grant");
    };
    let verifier = sent.get("code_verifier").map(|verifier| BASE64.encode(Sha256::digest(verifier)));
    if verifier.as_ref() != asked.get("code_challenge") || sent.get("redirect_uri") != asked.get("redirect_uri") {
        return refuse("invalid_grant");
    }
    let access_token = random();
    let id_token = inner.id_token(&asked["nonce"], &access_token);
    Json(json!({ "access_token": access_token, "token_type": "Bearer", "expires_in": 60, "id_token": id_token }))
        .into_response()
}

impl Inner {
    fn id_token(&self, nonce: &str, access_token: &str) -> String {
        let fault = *held(&self.fault);
        let is = |one: Fault| fault == Some(one);
        let person = held(&self.person).clone();
        let now = UNIX_EPOCH.elapsed().expect("it is after 1970").as_secs();
        let hashed = if is(Fault::OtherAccessToken) { "another" } else { access_token };
        let audience = match fault {
            Some(Fault::OtherAudience) => json!("another-client"),
            Some(Fault::MoreAudiences) => json!([CLIENT, "another-client"]),
            _ => json!(CLIENT),
        };
        let mut claims = json!({
            "iss": if is(Fault::OtherIssuer) { "http://127.0.0.1:1" } else { &self.issuer },
            "aud": audience,
            "sub": person.subject,
            "iat": now - 60,
            "exp": if is(Fault::Expired) { now - 30 } else { now + 60 },
            "nonce": if is(Fault::OtherNonce) { "another" } else { nonce },
            "at_hash": BASE64.encode(&Sha256::digest(hashed)[..16]),
            "preferred_username": person.username,
            "name": format!("{} of {}", person.username, person.subject),
            "email": format!("{}@example.org", person.username),
            "email_verified": !is(Fault::UnverifiedEmail),
            "groups": person.groups,
        });
        if let Some(ago) = person.authenticated_ago {
            claims["auth_time"] = json!(now - ago);
        }
        if is(Fault::NoNonce) {
            claims.as_object_mut().expect("an object").remove("nonce");
        }
        let key = held(&self.key);
        let key = if is(Fault::ForeignKey) { &self.foreign } else { &*key };
        let algorithm = match fault {
            Some(Fault::NoSignature) => "none",
            Some(Fault::ClientSecret) => "HS256",
            _ => "ES256",
        };
        let head = BASE64.encode(json!({ "alg": algorithm, "typ": "JWT", "kid": key.id }).to_string());
        let signed = format!("{head}.{}", BASE64.encode(claims.to_string()));
        let signature = match algorithm {
            "none" => Vec::new(),
            "HS256" => {
                let mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("any length will do");
                mac.chain_update(&signed).finalize().into_bytes().to_vec()
            }
            _ => key.pair.sign(&SystemRandom::new(), signed.as_bytes()).expect("it signs").as_ref().to_vec(),
        };
        format!("{signed}.{}", BASE64.encode(signature))
    }
}
